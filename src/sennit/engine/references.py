"""References: what a search prints, taken back.

A reference is an id, the beginning of an id, or a location: `path`, `path:line`, `path:first-last`, or `path#part` for a
file without lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Final

from sennit.engine.validation import check_id
from sennit.errors import AmbiguousReference, NotFound
from sennit.filters import Equal, Filter, In, Range
from sennit.folders import parse_location
from sennit.places import FOLDER_FIELD, Places
from sennit.records import FRAGMENT_FIELD, Record, full_id
from sennit.results import SearchResult, cite_record
from sennit.stores.contract import Snapshot

MIN_PREFIX_CHARACTERS: Final = 4
"""A shorter beginning of an id is more likely a mistake than a reference; git has the same bound."""

MAX_CANDIDATES: Final = 20
"""Candidates that an error about an ambiguous reference knows, and of which it names the first."""

MAX_NAMED: Final = 5
"""Candidates or similar records that an error names."""

MAX_COMPARED: Final = 2_000
"""Ids or paths that are compared to find the nearest to an unknown one."""

LAST_CHARACTER: Final = "\U0010ffff"

_GENERATED_ID: Final = re.compile(r"[0-9a-f]{12,}\Z")
"""The end of an id that sennit made: the digits of a hash or of a UUID."""


class ReferenceResolver:
    """Finds the records that references mean, among those that the audience of a snapshot may see."""

    def __init__(self, snapshot: Snapshot, tenant: str, places: Callable[[], Places]) -> None:
        """`places` returns the indexed folders."""
        self._snapshot = snapshot
        self._tenant = tenant
        self._places = places

    def find(self, reference: str) -> Record:
        """Return the one record that a reference means."""
        found = self.find_all(reference)
        if not found:
            raise self.unknown(reference)
        if len(found) > 1 and not _have_lines(found, reference):
            raise ambiguous_reference(reference, found)
        # A class that fills its file has the lines of its module, and both have the same text.
        return max(found, key=lambda record: (len(record.id), record.id))

    def find_all(self, reference: str) -> list[Record]:
        """Return the records that a reference may mean, MAX_CANDIDATES at most; empty if there are none.

        An exact id wins over a location, and a location over the beginning of an id. Of the records at a location,
        those with exactly its lines win over the shortest ones that cover it, and these over those that overlap it.
        """
        exact = self._exact(check_id(reference))
        if exact is not None:
            return [exact]
        return self._at_location(reference)[:MAX_CANDIDATES] or self._with_prefix(reference)

    def find_removable(self, reference: str) -> list[Record]:
        """Return the records that are removed by a reference: all of a file or of exactly its lines, else one.

        The beginning of an id counts only for ids that sennit made: a second `remove note-1` must not remove `note-17`.
        """
        exact = self._exact(check_id(reference))
        if exact is not None:
            return [exact]
        at_path = self._records_at(reference)
        if at_path:
            return at_path
        at_lines = self._at_location(reference)
        if _have_lines(at_lines, reference):
            return at_lines
        found = self.find(reference)
        if found.id.startswith(reference) and not is_short_id(reference, found.id):
            raise self.unknown(reference)
        return [found]

    def find_in_result(
        self, reference: str, result: SearchResult, find_ephemeral: Callable[[str], int | None]
    ) -> tuple[str, int]:
        """Return id and key of the record or passage that a reference means, which the result of a search may have."""
        key = self._snapshot.find_key(full_id(self._tenant, check_id(reference)))
        key = find_ephemeral(reference) if key is None else key
        if key is not None:
            return reference, key
        path, lines = parse_location(reference) or (reference, None)
        files = self._files(path)
        fragment = path.rpartition("#")[2] if lines is None else ""
        for hit in result:
            if fragment and hit.citation == reference:
                return hit.id, hit.key
            file = (hit.record.metadata.get(FOLDER_FIELD), hit.record.path)
            if lines is not None and hit.record.lines == lines and (hit.record.path == path or file in files):
                return hit.id, hit.key
        record = self.find(reference)
        key = self._snapshot.find_key(record.full_id)
        if key is None:
            raise self.unknown(reference)
        return record.id, key

    def _files(self, path: str) -> list[tuple[str, str]]:
        """Return the indexed files that a path may mean, each by folder and relative path, the likeliest first."""
        return [(folder.key, relative) for folder, relative in self._places().find_files(path)]

    def unknown(self, reference: str) -> NotFound:
        """Return the error about a reference that means nothing, with the nearest records."""
        near = self._nearest(reference)
        names = ", ".join(near) if near else ""
        advice = f" The nearest: {names}." if names else ""
        return NotFound(f"There is no record {reference!r}.{advice}")

    def _exact(self, record_id: str) -> Record | None:
        for name in (record_id, *self._places().find_ids(record_id)):
            key = self._snapshot.find_key(full_id(self._tenant, name))
            if key is not None:
                return self._snapshot.records([key]).get(key)
        return None

    def _at_location(self, reference: str) -> list[Record]:
        whole = self._records_at(reference) or self._at_fragment(reference)
        location = parse_location(reference)
        if whole or location is None:
            return whole
        path, lines = location
        return records_covering(self._records_at(path), lines)

    def _at_fragment(self, reference: str) -> list[Record]:
        """Return the records of a part of a file, such as `notes.ipynb#cell=3`."""
        path, _, fragment = reference.rpartition("#")
        if not path or "=" not in fragment:
            return []
        return [
            record for record in self._records_at(path) if record.metadata.get(FRAGMENT_FIELD) == fragment
        ]

    def _records_at(self, path: str) -> list[Record]:
        """Return the records of a file or of a URL, in the order of their lines."""
        files = (
            Equal("path", relative) & Equal(FOLDER_FIELD, folder) for folder, relative in self._files(path)
        )
        for where in (*files, Equal("path", path), Equal("url", path)):
            found = self._snapshot.records_matching(where)
            if found:
                return sorted(found, key=lambda record: (record.lines or (0, 0), record.id))
        return []

    def _with_prefix(self, reference: str) -> list[Record]:
        if len(reference) < MIN_PREFIX_CHARACTERS:
            return []
        for prefix in (reference, *self._places().find_ids(reference)):
            found = self._snapshot.page(self._ids_from(prefix), limit=MAX_CANDIDATES)
            if found:
                return found
        return self._with_hash(reference)

    def _with_hash(self, reference: str) -> list[Record]:
        """Return the records whose ids have a hash after `#`, as those of files do, which begins with the reference."""
        if not re.fullmatch("[0-9a-f]{4,}", reference):
            return []
        marked = f"#{reference}"
        matching = tuple(name for name in self._snapshot.text_counts("id") if marked in name)[:MAX_CANDIDATES]
        return self._snapshot.records_matching(In("id", matching)) if matching else []

    def _ids_from(self, prefix: str) -> Filter:
        return Range("id", prefix, prefix + LAST_CHARACTER)

    def _nearest(self, reference: str) -> list[str]:
        location = parse_location(reference)
        path = location[0] if location else reference
        at_path = self._records_at(path) if location else []
        if at_path:
            show = self._places().show
            return list(dict.fromkeys(cite_record(record, show(record)) for record in at_path))[:MAX_NAMED]
        begun = self._snapshot.page(self._ids_from(reference[: max(1, len(reference) // 2)]), MAX_COMPARED)
        ids = get_close_matches(reference, [record.id for record in begun], MAX_NAMED)
        return ids or self._similar_paths(path)

    def _similar_paths(self, path: str) -> list[str]:
        """Return the paths of records whose last parts are the same or similar."""
        by_name: dict[str, list[str]] = {}
        for stored in self._snapshot.text_counts("path"):
            by_name.setdefault(_last_part(stored), []).append(stored)
        name = _last_part(path)
        names = (
            [name] if name in by_name else get_close_matches(name, list(by_name)[:MAX_COMPARED], MAX_NAMED)
        )
        return [stored for similar in names for stored in sorted(by_name[similar])][:MAX_NAMED]


def _have_lines(records: Sequence[Record], reference: str) -> bool:
    """Return whether all records have exactly the lines that a reference names."""
    location = parse_location(reference)
    return bool(records) and location is not None and all(record.lines == location[1] for record in records)


def _last_part(path: str) -> str:
    return path.rpartition("/")[2]


def records_covering(records: Sequence[Record], lines: tuple[int, int]) -> list[Record]:
    """Return the records with exactly these lines, else the shortest that cover them, else the most overlapping."""
    first, last = lines
    spans = [(record, record.lines) for record in records if record.lines is not None]
    exact = [record for record, span in spans if span == lines]
    if exact:
        return exact
    covering = [(span[1] - span[0], record) for record, span in spans if span[0] <= first and last <= span[1]]
    if covering:
        shortest = min(length for length, _ in covering)
        return [record for length, record in covering if length == shortest]
    shared = [(min(last, span[1]) - max(first, span[0]) + 1, record) for record, span in spans]
    most = max((number for number, _ in shared), default=0)
    return [record for number, record in shared if number == most > 0]


def is_short_id(prefix: str, record_id: str) -> bool:
    """Return whether a text is the beginning of an id that sennit made, with at least four digits of its hash."""
    digits = _GENERATED_ID.search(record_id)
    return (
        digits is not None
        and record_id.startswith(prefix)
        and len(prefix) >= digits.start() + MIN_PREFIX_CHARACTERS
    )


def ambiguous_reference(reference: str, found: Sequence[Record]) -> AmbiguousReference:
    """Return the error about a reference that may mean several records."""
    names = []
    for record in found[:MAX_NAMED]:
        title = f" ({record.title})" if record.title else ""
        names.append(f"  {record.id}{title}")
    more = f"\n  and {len(found) - MAX_NAMED} or more others" if len(found) > MAX_NAMED else ""
    return AmbiguousReference(
        f"{reference!r} may mean one of several records; name one by its id or its lines:\n"
        + "\n".join(names)
        + more,
        candidates=tuple(record.id for record in found),
    )
