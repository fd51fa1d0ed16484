"""Render an entity for a prompt, and shorten one that does not fit: to its outline, or to its relevant lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from sennit.analysis import content_terms
from sennit.hydration.code_block import render_block
from sennit.hydration.plan import CodeUnit

ELLIPSIS: Final = "…"


def render_unit(unit: CodeUnit) -> str:
    """Return a unit as the prompt shows it."""
    return render_block(unit.location or unit.path, unit.lines, unit.qualified, unit.language, unit.text)


def outline_unit(unit: CodeUnit) -> CodeUnit | None:
    """Return the unit with its signature and the first line of its doc; None if that leaves nothing out.

    A passage between entities has no signature, and so no outline.
    """
    if not unit.signature:
        return None
    lines = unit.text.splitlines()
    kept = _signature_lines(unit, lines)
    first_doc_line = next((line.strip() for line in unit.doc.splitlines() if line.strip()), "")
    if first_doc_line:
        # The doc is above the signature or right below it.
        kept |= {next((at for at, line in enumerate(lines) if first_doc_line in line), min(kept))}
    if len(kept) >= len(lines):
        return None
    shown = [lines[at] for at in sorted(kept)]
    return replace(unit, text="\n".join([*shown, *_elision_mark(len(lines) - len(shown))]))


def shorten_unit(unit: CodeUnit, query: str, max_tokens: int, count: Callable[[str], int]) -> CodeUnit | None:
    """Return the unit with its signature and the lines that share most words with the query; None if that is too long.

    As many lines as fit are kept, by the number of different query words in them, then by position. A mark says how
    many lines are left out.
    """
    lines = unit.text.splitlines()
    head = _signature_lines(unit, lines)
    query_words = content_terms(query)
    shared = [(len(query_words & content_terms(line)), at) for at, line in enumerate(lines)]
    best = [at for score, at in sorted(shared, key=lambda one: (-one[0], one[1])) if score and at not in head]

    def with_lines(number: int) -> CodeUnit:
        return replace(unit, text=_join_lines(lines, {*head, *best[:number]}))

    def fits(number: int) -> bool:
        return count(render_unit(with_lines(number))) <= max_tokens

    low, high = 0, len(best)
    if not fits(0):
        return None
    while low < high:
        # A further line almost never lowers the token count. If it does, the result is a line short, never too long.
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return with_lines(low)


def _signature_lines(unit: CodeUnit, lines: list[str]) -> set[int]:
    """Return the indexes of the lines that hold the signature."""
    squeezed = "".join(unit.signature.split())
    first = next(
        (
            at
            for at, line in enumerate(lines)
            if squeezed and _begins_in("".join(line.split()), squeezed, unit.name)
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


def _begins_in(line: str, signature: str, name: str) -> bool:
    """Whether a signature begins in a line; both have no spaces."""
    return bool(line) and name in line and (signature in line or signature.startswith(line))


def _join_lines(lines: list[str], kept: Iterable[int]) -> str:
    """Return the kept lines, with marks for the others."""
    out: list[str] = []
    at = 0
    for number in sorted(kept):
        out += _elision_mark(number - at)
        if number < len(lines):
            out.append(lines[number])
        at = number + 1
    return "\n".join([*out, *_elision_mark(len(lines) - at)])


def _elision_mark(number: int) -> list[str]:
    return [f"{ELLIPSIS} ({number} line{'' if number == 1 else 's'} left out)"] if number > 0 else []
