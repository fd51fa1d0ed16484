"""Patterns of .gitignore files, matched as git does, in time that no pattern can blow up.

A pattern comes from a folder that may be a stranger's, so its regular expression must not be able to
backtrack without end: a part between two stars is found at its first place and kept there, which for stars is
as good as any other place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_PATTERN: Final = 1024
"""Characters; no path that a system takes is matched by much more."""

MAX_PATTERNS: Final = 10_000

_CLASSES: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": r"\x21-\x7e", "lower": "a-z", "print": r"\x20-\x7e", "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\f\v", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Run:
    """Patterns in a row that say the same: ignore, or do not."""

    ignore: bool
    names: frozenset[str]
    """Plain names, which are most patterns, are looked up."""
    folder_names: frozenset[str]
    rest: re.Pattern[str] | None


class Rules:
    """The patterns of one folder; the last that matches decides."""

    __slots__ = ("_runs", "dropped")

    def __init__(self, patterns: Iterable[str]) -> None:
        self.dropped = 0
        """Patterns that are too long or too many to be used."""
        runs: list[_Run] = []
        names: set[str] = set()
        folder_names: set[str] = set()
        rest: list[str] = []
        current = True

        def close() -> None:
            if names or folder_names or rest:
                joined = re.compile("|".join(rest), re.DOTALL) if rest else None
                runs.append(_Run(current, frozenset(names), frozenset(folder_names), joined))
            names.clear()
            folder_names.clear()
            rest.clear()

        for number, line in enumerate(patterns):
            if number >= MAX_PATTERNS or len(line) > MAX_PATTERN:
                self.dropped += 1
                continue
            parsed = _parse(line)
            if parsed is None:
                continue
            ignore, anchored, folder, body = parsed
            if ignore != current:
                close()
                current = ignore
            if not anchored and not _SPECIAL.search(body):
                (folder_names if folder else names).add(body)
            else:
                expression = _expression(body, anchored=anchored)
                if expression is not None:
                    rest.append(f"(?:{expression}{'/' if folder else '/?'}\\Z)")
        close()
        self._runs: Sequence[_Run] = runs[::-1]

    def __bool__(self) -> bool:
        return bool(self._runs)

    def decide(self, path: str, name: str, *, folder: bool) -> bool | None:
        """True: ignored; False: wanted expressly; None: nothing is said. `path` is relative to the patterns."""
        marked = f"{path}/" if folder else path
        for run in self._runs:
            if (
                name in run.names
                or (folder and name in run.folder_names)
                or (run.rest is not None and run.rest.match(marked) is not None)
            ):
                return run.ignore
        return None


_SPECIAL: Final = re.compile(r"[*?\[\\]")


def _parse(line: str) -> tuple[bool, bool, bool, str] | None:
    """(ignores, is bound to its folder, is for folders only, the rest), or None when nothing is said."""
    line = line.removesuffix("\n").removesuffix("\r")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    ignore = not line.startswith("!")
    if not ignore:
        line = line[1:]
    folder = line.endswith("/")
    if folder:
        line = line[:-1]
    anchored = "/" in line
    body = line.removeprefix("/")
    return (ignore, anchored, folder, body) if body else None


def _expression(body: str, *, anchored: bool) -> str | None:
    """The regular expression of a pattern, without its end; None when the pattern can match nothing."""
    parts = body.split("/") if anchored else ["**", body]
    groups: list[list[str]] = [[]]
    for part in parts:
        if len(part) > 1 and not part.strip("*"):
            groups.append([])
        else:
            component = _component(part)
            if component is None:
                return None
            groups[-1].append(component)
    open_end = len(groups) > 1 and not groups[-1]
    if open_end:
        groups.pop()
    out = "/".join(groups[0])
    for index, group in enumerate(groups[1:], 1):
        if not group:
            continue
        if out:
            out += "/"
        last = index == len(groups) - 1
        joined = "/".join(group)
        # Components between two ** stay where they are found first; only the last group must reach the end.
        out += rf"(?:[^/]+/)*{joined}" if last else rf"(?>(?:[^/]+/)*?{joined}(?=/))"
    if open_end:
        out = f"{out}/.+?" if out else ".+?"
    return out


def _component(part: str) -> str | None:
    """One name of a path, with *, ? and [...]; None for a bracket that is never closed."""
    pieces: list[str] = [""]
    at = 0
    while at < len(part):
        character = part[at]
        at += 1
        if character == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif character == "?":
            pieces[-1] += "[^/]"
        elif character == "[":
            found = _bracket(part, at)
            if found is None:
                return None
            expression, at = found
            pieces[-1] += expression
        elif character == "\\":
            if at == len(part):
                return None
            pieces[-1] += re.escape(part[at])
            at += 1
        else:
            pieces[-1] += re.escape(character)
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1])
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}(?=/|\\Z)"


def _bracket(part: str, at: int) -> tuple[str, int] | None:
    """The expression of a bracket whose opening is before `at`, and where it ends."""
    negated = at < len(part) and part[at] in "!^"
    if negated:
        at += 1
    inside: list[str] = []
    first = at
    while at < len(part):
        if part[at] == "]" and at > first:
            body = "".join(inside)
            return (f"(?!/)[^{body}]" if negated else f"(?!/)[{body}]"), at + 1
        if part.startswith("[:", at):
            end = part.find(":]", at + 2)
            named = _CLASSES.get(part[at + 2 : end]) if end > 0 else None
            if named is not None:
                inside.append(named)
                at = end + 2
                continue
            if end > 0:
                return None
        low, at = _literal(part, at)
        if at + 1 < len(part) and part[at] == "-" and part[at + 1] != "]":
            high, at = _literal(part, at + 1)
            # For git, a range that runs backwards is still its first character.
            inside.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low))
        else:
            inside.append(re.escape(low))
    return None


def _literal(part: str, at: int) -> tuple[str, int]:
    if part[at] == "\\" and at + 1 < len(part):
        return part[at + 1], at + 2
    return part[at], at + 1
