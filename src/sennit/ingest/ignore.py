"""Patterns of .gitignore files, matched as git matches them, without catastrophic backtracking.

A pattern may come from an untrusted folder. Its regular expression therefore uses atomic groups: a part between two
stars matches at its first position and stays there, which for stars is as good as any later position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_PATTERN_CHARACTERS: Final = 1024
"""Operating systems limit paths to about this length, so longer patterns match nothing."""

MAX_PATTERNS: Final = 10_000

_CLASSES: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": r"\x21-\x7e", "lower": "a-z", "print": r"\x20-\x7e", "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\f\v", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive patterns with the same effect: to ignore, or to include again."""

    ignore: bool
    names: frozenset[str]
    """Names without wildcards. Most patterns are such names, and a lookup is fast."""
    folder_names: frozenset[str]
    expression: re.Pattern[str] | None


class IgnoreRules:
    """The patterns of one folder. The last pattern that matches decides."""

    __slots__ = ("_runs", "dropped")

    def __init__(self, patterns: Iterable[str]) -> None:
        self.dropped = 0
        """How many patterns are not used, because they are too long or too many."""
        runs: list[_Run] = []
        names: set[str] = set()
        folder_names: set[str] = set()
        expressions: list[str] = []
        ignore_current = True

        def end_run() -> None:
            if names or folder_names or expressions:
                joined = re.compile("|".join(expressions), re.DOTALL) if expressions else None
                runs.append(_Run(ignore_current, frozenset(names), frozenset(folder_names), joined))
            names.clear()
            folder_names.clear()
            expressions.clear()

        for number, line in enumerate(patterns):
            if number >= MAX_PATTERNS or len(line) > MAX_PATTERN_CHARACTERS:
                self.dropped += 1
                continue
            parsed = _parse_pattern(line)
            if parsed is None:
                continue
            ignore, anchored, only_folders, body = parsed
            if ignore != ignore_current:
                end_run()
                ignore_current = ignore
            if not anchored and not _SPECIAL.search(body):
                (folder_names if only_folders else names).add(body)
            else:
                regex = _to_regex(body, anchored=anchored)
                if regex is not None:
                    expressions.append(f"(?:{regex}{'/' if only_folders else '/?'}\\Z)")
        end_run()
        self._runs: Sequence[_Run] = runs[::-1]

    def __bool__(self) -> bool:
        return bool(self._runs)

    def decide(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """True to ignore the path, False to include it, None if no pattern matches.

        `path` is relative to the folder of the patterns.
        """
        candidate = f"{path}/" if is_folder else path
        for run in self._runs:
            if (
                name in run.names
                or (is_folder and name in run.folder_names)
                or (run.expression is not None and run.expression.match(candidate) is not None)
            ):
                return run.ignore
        return None


_SPECIAL: Final = re.compile(r"[*?\[\\]")


def _parse_pattern(line: str) -> tuple[bool, bool, bool, str] | None:
    """(ignore, anchored, only_folders, body), or None for a comment or a blank line."""
    line = line.removesuffix("\n").removesuffix("\r")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    ignore = not line.startswith("!")
    if not ignore:
        line = line[1:]
    only_folders = line.endswith("/")
    if only_folders:
        line = line[:-1]
    anchored = "/" in line
    body = line.removeprefix("/")
    return (ignore, anchored, only_folders, body) if body else None


def _to_regex(body: str, *, anchored: bool) -> str | None:
    """Translate a pattern to a regular expression without the end anchor; None if it can match nothing."""
    parts = body.split("/") if anchored else ["**", body]
    groups: list[list[str]] = [[]]
    for part in parts:
        if len(part) > 1 and not part.strip("*"):
            groups.append([])
        else:
            component = _component_regex(part)
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
        # Components between two ** keep their first match (an atomic group); only the last group must reach the end.
        out += rf"(?:[^/]+/)*{joined}" if last else rf"(?>(?:[^/]+/)*?{joined}(?=/))"
    if open_end:
        out = f"{out}/.+?" if out else ".+?"
    return out


def _component_regex(part: str) -> str | None:
    """Translate one path component with *, ? and [...]; None if a bracket is never closed."""
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
            found = _bracket_regex(part, at)
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


def _bracket_regex(part: str, at: int) -> tuple[str, int] | None:
    """Translate the bracket that opens just before `at`; returns the regular expression and the end index."""
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
            # For git, a reversed range matches its first character.
            inside.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low))
        else:
            inside.append(re.escape(low))
    return None


def _literal(part: str, at: int) -> tuple[str, int]:
    if part[at] == "\\" and at + 1 < len(part):
        return part[at + 1], at + 2
    return part[at], at + 1
