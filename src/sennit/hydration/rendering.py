"""A plan as a block for a prompt, and an entity that is too large as its signature and the lines that matter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from sennit.analysis import words
from sennit.context.plain import cleaned, one_line
from sennit.hydration.values import HydrationPlan, Unit

ELIDED: Final = "…"
_FENCE: Final = re.compile(r"`{3,}")


def rendered(plan: HydrationPlan) -> str:
    """The entries in order, each with its path and lines, fenced; empty when there are none."""
    return "".join(
        block(entry.path, entry.lines, entry.qualified, entry.language, entry.text) for entry in plan.entries
    )


def block_of(unit: Unit) -> str:
    """An entity as the prompt has it."""
    return block(unit.path, unit.lines, unit.qualified, unit.language, unit.text)


def block(path: str, lines: tuple[int, int] | None, qualified: str, language: str, text: str) -> str:
    """A text under a heading that says where it is; no fence inside it can end it."""
    inside = cleaned(text)
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCE.findall(inside))])
    place = f":{lines[0]}-{lines[1]}" if lines else ""
    name = f" {one_line(qualified)}" if qualified else ""
    return f"{one_line(path)}{place}{name}\n{fence}{one_line(language)}\n{inside}\n{fence}\n\n"


def shortened(unit: Unit, query: str, room: int, count: Callable[[str], int]) -> Unit | None:
    """The entity as its signature and the lines that share most words with the query, or None if that is too much.

    Lines are taken by how many different words of the query they hold, of equal ones the first; as many as fit. What
    is left out is marked with how many lines it was.
    """
    lines = unit.text.splitlines()
    head = _head(unit, lines)
    wanted = words(query)
    shared = [(len(wanted & words(line)), at) for at, line in enumerate(lines)]
    best = [at for score, at in sorted(shared, key=lambda one: (-one[0], one[1])) if score and at not in head]

    def made(number: int) -> Unit:
        return replace(unit, text=_only(lines, {*head, *best[:number]}))

    def fits(number: int) -> bool:
        return count(block_of(made(number))) <= room

    low, high = 0, len(best)
    if not fits(0):
        return None
    while low < high:
        # A line more is hardly ever fewer tokens; where it is, the plan is a line short, and never too long.
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return made(low)


def _head(unit: Unit, lines: list[str]) -> set[int]:
    """The numbers of the lines that the signature stands in."""
    squeezed = "".join(unit.signature.split())
    first = next(
        (
            at
            for at, line in enumerate(lines)
            if squeezed and _meets("".join(line.split()), squeezed, unit.name)
        ),
        0,
    )
    taken, seen = {first}, "".join(lines[first].split()) if lines else ""
    for at in range(first + 1, len(lines)):
        if not squeezed or len(seen) >= len(squeezed):
            break
        seen += "".join(lines[at].split())
        taken.add(at)
    return taken


def _meets(line: str, signature: str, name: str) -> bool:
    """Whether a signature begins in a line, both without spaces."""
    return bool(line) and name in line and (signature in line or signature.startswith(line))


def _only(lines: list[str], kept: Iterable[int]) -> str:
    """Some of the lines, with marks for the others."""
    out: list[str] = []
    at = 0
    for number in sorted(kept):
        out += _mark(number - at)
        if number < len(lines):
            out.append(lines[number])
        at = number + 1
    return "\n".join([*out, *_mark(len(lines) - at)])


def _mark(number: int) -> list[str]:
    return [f"{ELIDED} ({number} line{'' if number == 1 else 's'} left out)"] if number > 0 else []
