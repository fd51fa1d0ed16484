"""Anchors: entities that the question, or the episode it is asked in, names. Deterministic, and never skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sennit.hydration.mentions import (
    FileMention,
    SymbolMention,
    covered,
    file_mentions,
    names_wanted,
    qualifies,
    resolve,
    spellings,
    symbol_mentions,
)
from sennit.hydration.traces import frames
from sennit.hydration.values import TYPES, Anchor, Unit

FILE: Final = ("explicit_file_mention", 100)
SYMBOL: Final = ("explicit_symbol_mention", 90)
PREVIOUS: Final = ("hydrated_previous_turn", 80)
SAME_FILE: Final = ("same_file", 70)
"""The rest of a file of which a line was named."""
OUTER: Final = ("enclosing_type", 60)
CALLEE: Final = ("callee", 60)
CALLER: Final = ("caller", 60)

MOST_RELATED: Final = 5
"""Callees, and callers, of one named symbol."""

MOST_LOOKED_AROUND: Final = 20
"""Entities whose surroundings are looked up: a name that hundreds have, such as `get`, points at none of them."""

MOST_MENTIONS: Final = 500
"""Files, and names, that one question is looked through for: a pasted log is no list of files."""

MOST_LINES: Final = 2000


class Catalogue(Protocol):
    """What there is, as the caller may see it."""

    def files(self, names: frozenset[str]) -> Sequence[str]:
        """The paths of the files that have one of these names."""
        ...

    def in_file(self, path: str) -> Sequence[Unit]:
        """The entities and passages of a file, in its order."""
        ...

    def named(self, names: Iterable[str]) -> Sequence[Unit]:
        """The entities with one of these names, by key."""
        ...

    def calling(self, name: str) -> Sequence[Unit]:
        """The entities that call something of this name, by key."""
        ...

    def with_keys(self, keys: Iterable[str]) -> Sequence[Unit]:
        """The entities with these keys that still exist, in this order."""
        ...


@dataclass(frozen=True, slots=True)
class Switches:
    """Which anchors are looked for."""

    files: bool = True
    symbols: bool = True
    previous: bool = True


EVERY: Final = Switches()


def find_anchors(
    query: str, catalogue: Catalogue, previous: Sequence[str] = (), switches: Switches = EVERY
) -> list[Anchor]:
    """Every anchor once, the highest priority first, those of equal priority in the order of the question."""
    traced, rest = frames(query)
    found: list[tuple[int, Anchor]] = []
    named: list[tuple[int, Unit]] = []
    """Entities that the question points at, with where: what is around them is looked up."""
    unplaced: list[SymbolMention] = []
    taken: list[tuple[int, int]] = []
    if switches.files:
        for mention, paths in _placed([*traced, *file_mentions(rest)], catalogue):
            if not paths and mention.function:
                unplaced.append(SymbolMention(tuple(mention.function.split(".")), mention.at))
            for path in paths:
                taken.append((mention.at, mention.end))
                for anchor in _of_file(mention, catalogue.in_file(path)):
                    found.append((mention.at, anchor))
                    if mention.lines and anchor.priority == FILE[1]:
                        named.append((mention.at, anchor.unit))
    if switches.symbols:
        free = symbol_mentions(_blanked(rest, taken))
        unique = {(one.parts, one.types): one for one in reversed([*unplaced, *free])}
        mentions = sorted(unique.values(), key=lambda one: one.at)[:MOST_MENTIONS]
        for at, unit in _of_symbols(mentions, catalogue):
            found.append((at, Anchor(unit, SYMBOL[1], SYMBOL[0])))
            named.append((at, unit))
        found += _around(named, catalogue)
    if switches.previous:
        earlier = catalogue.with_keys(previous)
        # After everything of the question, in the order of the turns.
        found += ((len(query) + n, Anchor(unit, PREVIOUS[1], PREVIOUS[0])) for n, unit in enumerate(earlier))
    return _merged(found)


def _merged(found: Iterable[tuple[int, Anchor]]) -> list[Anchor]:
    """Each entity once, with its highest priority."""
    numbered = list(enumerate(found))
    # Of equal priority: the order of mention; within one mention the order it gave, which is the file's.
    numbered.sort(key=lambda one: (-one[1][1].priority, one[1][0], one[0], one[1][1].unit.key))
    out: dict[str, Anchor] = {}
    for _, (_, anchor) in numbered:
        out.setdefault(anchor.unit.key, anchor)
    return list(out.values())


def _blanked(query: str, taken: Iterable[tuple[int, int]]) -> str:
    """The question with blanks where a file was found, so that `auth.go` is no symbol."""
    mask = covered(query, taken)
    return "".join(
        " " if hidden and character != "\n" else character
        for character, hidden in zip(query, mask, strict=True)
    )


def _placed(mentions: Sequence[FileMention], catalogue: Catalogue) -> Iterator[tuple[FileMention, list[str]]]:
    """Each mention with the files it means."""
    # A path that is named again with the same lines says nothing new.
    first = {(one.path, one.lines, one.function): one for one in reversed(mentions)}
    unique = sorted(first.values(), key=lambda one: one.at)[:MOST_MENTIONS]
    if not unique:
        return
    known: dict[str, list[str]] = {}
    for path in catalogue.files(frozenset(one.path.rpartition("/")[2] for one in unique)):
        known.setdefault(path.rpartition("/")[2], []).append(path)
    for one in unique:
        yield one, resolve(one.path, known.get(one.path.rpartition("/")[2], ()))


def _of_file(mention: FileMention, units: Sequence[Unit]) -> Iterator[Anchor]:
    """The entities of a file in its order; where a line is named, those around it before the rest."""
    meant = _at_lines(mention, units) if mention.lines else set()
    for unit in units:
        reason, priority = FILE if not meant or unit.key in meant else SAME_FILE
        yield Anchor(unit, priority, reason)


def _at_lines(mention: FileMention, units: Sequence[Unit]) -> set[str]:
    first, last = mention.lines or (0, 0)
    found = set()
    for line in range(first, min(last, first + MOST_LINES) + 1):
        around = [unit for unit in units if unit.has_line(line)]
        if around:
            found.add(min(around, key=lambda unit: (unit.span, unit.key)).key)
    name = mention.function.rpartition(".")[2]
    if name and not any(unit.name == name for unit in units if unit.key in found):
        # The lines have moved since the trace was written; the function still has its name.
        found.update(unit.key for unit in units if unit.name == name)
    return found


def _of_symbols(mentions: Sequence[SymbolMention], catalogue: Catalogue) -> Iterator[tuple[int, Unit]]:
    """Each entity that a symbol of the question names: exactly, or else in another style of writing."""
    if not mentions:
        return
    by_name: dict[str, list[Unit]] = {}
    for unit in catalogue.named(frozenset(names_wanted(mentions))):
        by_name.setdefault(unit.name, []).append(unit)
    for mention in mentions:
        for name in [mention.name] if mention.types else spellings(mention.name):
            meant = [
                unit
                for unit in by_name.get(name, ())
                if (unit.kind in TYPES or not mention.types) and qualifies(mention, unit.qualified, unit.path)
            ]
            if meant:
                yield from ((mention.at, unit) for unit in meant)
                break


def _around(named: Sequence[tuple[int, Unit]], catalogue: Catalogue) -> Iterator[tuple[int, Anchor]]:
    """The type that a named entity belongs to, what it calls, and what calls it."""
    first = {unit.key: (at, unit) for at, unit in reversed(named)}
    for at, unit in sorted(first.values(), key=lambda one: (one[0], one[1].key))[:MOST_LOOKED_AROUND]:
        yield from ((at, Anchor(one, OUTER[1], OUTER[0])) for one in _outer(unit, catalogue))
        called = sorted(catalogue.named(unit.calls), key=lambda one: _far(unit, one)) if unit.calls else []
        nearest = {one.name: one for one in reversed(called) if one.key != unit.key}
        in_order = [nearest[name] for name in unit.calls if name in nearest]
        yield from ((at, Anchor(one, CALLEE[1], CALLEE[0])) for one in in_order[:MOST_RELATED])
        if unit.name:
            calling = sorted(catalogue.calling(unit.name), key=lambda one: _far(unit, one))
            callers = [one for one in calling if one.key != unit.key]
            yield from ((at, Anchor(one, CALLER[1], CALLER[0])) for one in callers[:MOST_RELATED])


def _outer(unit: Unit, catalogue: Catalogue) -> Sequence[Unit]:
    if unit.outer:
        return catalogue.with_keys([unit.outer])
    # A method may be written beside its type, as in Go.
    outer = unit.qualified.rpartition(".")[0]
    if not outer:
        return ()
    found = catalogue.named([outer.rpartition(".")[2]])
    near = [one for one in found if one.kind in TYPES and one.qualified == outer and _far(unit, one)[0] < 2]
    return sorted(near, key=lambda one: _far(unit, one))[:1]


def _far(unit: Unit, other: Unit) -> tuple[int, str]:
    """How far apart two entities are: in one file, in one folder, elsewhere."""
    if unit.path == other.path:
        return 0, other.key
    return (1 if unit.path.rpartition("/")[0] == other.path.rpartition("/")[0] else 2), other.key
