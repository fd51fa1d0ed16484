"""Anchors: entities that the query or its episode names. They are deterministic and never skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from sennit.hydration.mentions import (
    FileMention,
    PlainName,
    SymbolMention,
    file_mentions,
    lookup_names,
    mark_spans,
    matches_qualifier,
    plain_names,
    resolve_path,
    spelling_variants,
    symbol_mentions,
)
from sennit.hydration.plan import TYPE_KINDS, Anchor, CodeUnit
from sennit.hydration.stack_traces import find_frames

FILE_MENTION: Final = ("explicit_file_mention", 100)
SYMBOL_MENTION: Final = ("explicit_symbol_mention", 90)
PREVIOUS_TURN: Final = ("hydrated_previous_turn", 80)
SAME_FILE: Final = ("same_file", 70)
"""The rest of a file when the query names lines of it."""
INFERRED_MENTION: Final = ("inferred_mention", 70)
"""What a plain word of the query names."""
ENCLOSING_TYPE: Final = ("enclosing_type", 60)
CALLEE: Final = ("callee", 60)
CALLER: Final = ("caller", 60)

MAX_RELATED: Final = 5
"""Callees, and callers, of one named symbol."""

MAX_EXPANDED_ENTITIES: Final = 20
"""Entities whose callers, callees and types are looked up: a name that hundreds share, such as `get`, means none of
them in particular."""

MAX_MENTIONS: Final = 500
"""File mentions, and symbol mentions, of one query that are looked up: a pasted log is no list of files."""

MAX_RANGE_LINES: Final = 2000
"""Lines of a range that are looked up."""


MAX_INFERRED_TARGETS: Final = 3
"""Entities, files or folders that a plain word may name; a word that names more of them means none in particular."""

MAX_INFERRED_SHARE: Final = 0.05
"""The share of records that may contain a plain word that names something."""

FEW_RECORDS: Final = 8
"""A word that at most this many records contain is rare, however small the project."""

MAX_INFERRED_ENTITIES: Final = 3
"""Entities of a file or folder that a plain word names; the most relevant ones."""

Relevance: TypeAlias = Callable[[Sequence[CodeUnit]], Mapping[str, float]]
"""Returns how relevant entities are to the query, by key; entities that are not listed have 0."""


MINOR_KINDS: Final = frozenset(("constant", "passage"))
MINOR_SHARE: Final = 0.5
"""What the relevance of a constant or of a passage between entities counts for. Every record has the path of its file in
its title, so in a file that the query names, the shortest texts would come first."""


def no_relevance(_: Sequence[CodeUnit]) -> Mapping[str, float]:
    return {}


class Catalogue(Protocol):
    """The entities that the caller may see."""

    def files_named(self, names: frozenset[str]) -> Sequence[str]:
        """Return the paths of the files with one of these names."""
        ...

    def paths(self) -> Sequence[str]:
        """Return the paths of all files, sorted."""
        ...

    def occurrences(self, word: str) -> tuple[int, int]:
        """Return the number of records that contain a word, and the number of all records."""
        ...

    def in_file(self, path: str) -> Sequence[CodeUnit]:
        """Return the entities and passages of a file, in the order of the file."""
        ...

    def entities_named(self, names: Iterable[str]) -> Sequence[CodeUnit]:
        """Return the entities with one of these names, ordered by key."""
        ...

    def callers_of(self, name: str) -> Sequence[CodeUnit]:
        """Return the entities that call something with this name, ordered by key."""
        ...

    def with_keys(self, keys: Iterable[str]) -> Sequence[CodeUnit]:
        """Return the entities with these keys that still exist, in this order."""
        ...


@dataclass(frozen=True, slots=True)
class AnchorOptions:
    """Which kinds of anchors are enabled."""

    files: bool = True
    symbols: bool = True
    previous: bool = True


ALL_ANCHORS: Final = AnchorOptions()


def find_anchors(
    query: str,
    catalogue: Catalogue,
    previous: Sequence[str] = (),
    options: AnchorOptions = ALL_ANCHORS,
    relevance: Relevance = no_relevance,
) -> list[Anchor]:
    """Return every anchor once, by descending priority, then relevance; equal ones keep the order of the query."""
    traced, rest = find_frames(query)
    found: list[tuple[int, Anchor]] = []
    named: list[tuple[int, CodeUnit]] = []
    """Entities that the query names, with the offset: their callers, callees and types are looked up."""
    unresolved: list[SymbolMention] = []
    file_spans: list[tuple[int, int]] = []
    if options.files:
        for mention, paths in _resolve_mentions([*traced, *file_mentions(rest)], catalogue):
            if not paths and mention.function:
                unresolved.append(SymbolMention(tuple(mention.function.split(".")), mention.at))
            for path in paths:
                file_spans.append((mention.at, mention.end))
                for anchor in _file_anchors(mention, catalogue.in_file(path)):
                    found.append((mention.at, anchor))
                    if mention.lines and anchor.priority == FILE_MENTION[1]:
                        named.append((mention.at, anchor.unit))
    if options.symbols:
        free = symbol_mentions(_blank_out(rest, file_spans))
        unique = {(one.parts, one.type_only): one for one in reversed([*unresolved, *free])}
        mentions = sorted(unique.values(), key=lambda one: one.at)[:MAX_MENTIONS]
        for at, unit in _symbol_units(mentions, catalogue):
            found.append((at, Anchor(unit, SYMBOL_MENTION[1], SYMBOL_MENTION[0])))
            named.append((at, unit))
        found += _related_anchors(named, catalogue)
    if options.previous:
        earlier = catalogue.with_keys(previous)
        # They follow everything in the query, in the order of the turns.
        found += (
            (len(query) + n, Anchor(unit, PREVIOUS_TURN[1], PREVIOUS_TURN[0]))
            for n, unit in enumerate(earlier)
        )
    if options.symbols or options.files:
        plain = _inferred_units(plain_names(_blank_out(rest, file_spans)), catalogue, options, relevance)
        found += ((at, Anchor(unit, INFERRED_MENTION[1], INFERRED_MENTION[0])) for at, unit in plain)
    return _deduplicate(found, relevance)


def strip_extensions(query: str, catalogue: Catalogue) -> str:
    """Return the query with the extensions of the files that it names left out.

    Every file of a language has its extension in the path, so `go` in `auth.go` says nothing about a record.
    """
    spans = []
    for mention, paths in _resolve_mentions(file_mentions(query), catalogue):
        stem, dot, extension = mention.path.rpartition(".")
        at = query.find(mention.path, mention.at)
        if paths and stem and dot and at >= 0:
            spans.append((at + len(stem), at + len(stem) + 1 + len(extension)))
    return _blank_out(query, spans)


def _deduplicate(found: Sequence[tuple[int, Anchor]], relevance: Relevance) -> list[Anchor]:
    """Return each entity once, with its highest priority."""
    numbered = list(enumerate(found))
    # Equal priorities keep the order of mention, and within one mention the order of the file.
    numbered.sort(key=lambda one: (-one[1][1].priority, one[1][0], one[0], one[1][1].unit.key))
    out: dict[str, Anchor] = {}
    for _, (_, anchor) in numbered:
        out.setdefault(anchor.unit.key, anchor)
    if len(out) < 2:
        return list(out.values())
    scores = relevance([anchor.unit for anchor in out.values()])

    def rank(anchor: Anchor) -> tuple[int, float]:
        share = MINOR_SHARE if anchor.unit.kind in MINOR_KINDS else 1.0
        return -anchor.priority, -share * scores.get(anchor.unit.key, 0.0)

    return sorted(out.values(), key=rank)


def _blank_out(query: str, file_spans: Iterable[tuple[int, int]]) -> str:
    """Return the query with file mentions blanked out, so that `auth.go` is no symbol."""
    mask = mark_spans(query, file_spans)
    return "".join(
        " " if hidden and character != "\n" else character
        for character, hidden in zip(query, mask, strict=True)
    )


def _resolve_mentions(
    mentions: Sequence[FileMention], catalogue: Catalogue
) -> Iterator[tuple[FileMention, list[str]]]:
    """Yield each mention with the files that it can mean."""
    # A path that is repeated with the same lines adds nothing.
    first = {(one.path, one.lines, one.function): one for one in reversed(mentions)}
    unique = sorted(first.values(), key=lambda one: one.at)[:MAX_MENTIONS]
    if not unique:
        return
    known: dict[str, list[str]] = {}
    for path in catalogue.files_named(frozenset(one.path.rpartition("/")[2] for one in unique)):
        known.setdefault(path.rpartition("/")[2], []).append(path)
    for one in unique:
        yield one, resolve_path(one.path, known.get(one.path.rpartition("/")[2], ()))


def _file_anchors(mention: FileMention, units: Sequence[CodeUnit]) -> Iterator[Anchor]:
    """Yield the entities of a file in order; if lines are named, the entities there get the higher priority."""
    meant = _keys_at_lines(mention, units) if mention.lines else set()
    for unit in units:
        reason, priority = FILE_MENTION if not meant or unit.key in meant else SAME_FILE
        yield Anchor(unit, priority, reason)


def _keys_at_lines(mention: FileMention, units: Sequence[CodeUnit]) -> set[str]:
    first, last = mention.lines or (0, 0)
    found = set()
    for line in range(first, min(last, first + MAX_RANGE_LINES) + 1):
        around = [unit for unit in units if unit.has_line(line)]
        if around:
            found.add(min(around, key=lambda unit: (unit.span, unit.key)).key)
    name = mention.function.rpartition(".")[2]
    if name and not any(unit.name == name for unit in units if unit.key in found):
        # The lines have moved since the trace was written, but the function still has its name.
        found.update(unit.key for unit in units if unit.name == name)
    return found


def _symbol_units(mentions: Sequence[SymbolMention], catalogue: Catalogue) -> Iterator[tuple[int, CodeUnit]]:
    """Yield each entity that a symbol names: exactly, or else in another naming style."""
    if not mentions:
        return
    by_name: dict[str, list[CodeUnit]] = {}
    for unit in catalogue.entities_named(frozenset(lookup_names(mentions))):
        by_name.setdefault(unit.name, []).append(unit)
    for mention in mentions:
        for name in [mention.name] if mention.type_only else spelling_variants(mention.name):
            meant = [
                unit
                for unit in by_name.get(name, ())
                if (unit.kind in TYPE_KINDS or not mention.type_only)
                and matches_qualifier(mention, unit.qualified, unit.path)
            ]
            if meant:
                yield from ((mention.at, unit) for unit in meant)
                break


def _inferred_units(
    names: Sequence[PlainName], catalogue: Catalogue, options: AnchorOptions, relevance: Relevance
) -> Iterator[tuple[int, CodeUnit]]:
    """Yield the entities that plain words name exactly, where a word names few things and is rare."""
    by_name: dict[str, list[CodeUnit]] = {}
    if options.symbols:
        spellings = {spelling for name in names for spelling in name.spellings}
        for unit in catalogue.entities_named(spellings) if spellings else ():
            by_name.setdefault(unit.name, []).append(unit)
    by_stem: dict[str, list[str]] = {}
    if options.files and names:
        for path in catalogue.paths():
            for part in {
                path.rpartition("/")[2].partition(".")[0],
                path.rpartition("/")[0].rpartition("/")[2],
            }:
                by_stem.setdefault(part, []).append(path)
    inside: list[tuple[int, list[CodeUnit]]] = []
    for name in names:
        units = [unit for spelling in name.spellings for unit in by_name.get(spelling, ())]
        paths = [path for spelling in name.spellings for path in by_stem.get(spelling, ())]
        if not (units or paths) or (len(name.words) == 1 and not _is_rare(name.words[0], catalogue)):
            continue
        if len(units) <= MAX_INFERRED_TARGETS:
            yield from ((name.at, unit) for unit in units)
        if 0 < len(paths) <= MAX_INFERRED_TARGETS:
            inside.append((name.at, [unit for path in paths for unit in catalogue.in_file(path)]))
    scores = relevance([unit for _, units in inside for unit in units]) if inside else {}
    for at, units in inside:
        best = sorted(units, key=lambda unit: -scores.get(unit.key, 0.0))
        yield from ((at, unit) for unit in best[:MAX_INFERRED_ENTITIES])


def _is_rare(word: str, catalogue: Catalogue) -> bool:
    found, of = catalogue.occurrences(word)
    return found <= max(FEW_RECORDS, MAX_INFERRED_SHARE * of)


def _related_anchors(
    named: Sequence[tuple[int, CodeUnit]], catalogue: Catalogue
) -> Iterator[tuple[int, Anchor]]:
    """Yield the type that encloses a named entity, its callees and its callers."""
    first = {unit.key: (at, unit) for at, unit in reversed(named)}
    for at, unit in sorted(first.values(), key=lambda one: (one[0], one[1].key))[:MAX_EXPANDED_ENTITIES]:
        yield from (
            (at, Anchor(one, ENCLOSING_TYPE[1], ENCLOSING_TYPE[0]))
            for one in _enclosing_type(unit, catalogue)
        )
        called = (
            sorted(catalogue.entities_named(unit.calls), key=lambda one: _distance(unit, one))
            if unit.calls
            else []
        )
        nearest = {one.name: one for one in reversed(called) if one.key != unit.key}
        in_order = [nearest[name] for name in unit.calls if name in nearest]
        yield from ((at, Anchor(one, CALLEE[1], CALLEE[0])) for one in in_order[:MAX_RELATED])
        if unit.name:
            calling = sorted(catalogue.callers_of(unit.name), key=lambda one: _distance(unit, one))
            callers = [one for one in calling if one.key != unit.key]
            yield from ((at, Anchor(one, CALLER[1], CALLER[0])) for one in callers[:MAX_RELATED])


def _enclosing_type(unit: CodeUnit, catalogue: Catalogue) -> Sequence[CodeUnit]:
    if unit.outer:
        return catalogue.with_keys([unit.outer])
    # A method may be written outside its type, as in Go.
    outer = unit.qualified.rpartition(".")[0]
    if not outer:
        return ()
    found = catalogue.entities_named([outer.rpartition(".")[2]])
    near = [
        one
        for one in found
        if one.kind in TYPE_KINDS and one.qualified == outer and _distance(unit, one)[0] < 2
    ]
    return sorted(near, key=lambda one: _distance(unit, one))[:1]


def _distance(unit: CodeUnit, other: CodeUnit) -> tuple[int, str]:
    """Return the distance of two entities: 0 in one file, 1 in one folder, else 2; then the key."""
    if unit.path == other.path:
        return 0, other.key
    return (1 if unit.path.rpartition("/")[0] == other.path.rpartition("/")[0] else 2), other.key
