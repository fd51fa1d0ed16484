"""What a snapshot can answer by scanning its records: a start for a new backend, which overrides what it does faster."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from sennit.errors import SourceError
from sennit.filters import EVERYTHING, Condition, Filter, flatten, matches
from sennit.ranking.stages import read_fields
from sennit.records import Record
from sennit.stores.contract import Keys, Mask


class ScannedReads:
    """The reads of a `Snapshot` that need nothing but its visible records."""

    visible: Mapping[int, Record]
    """The records that the audience may see, by key."""

    def ids(self, keys: Keys) -> list[bytes]:
        visible = self.visible
        return [visible[key].full_id.encode() if key in visible else b"" for key in keys.tolist()]

    def exists(self, keys: Keys) -> Mask:
        return np.array([key in self.visible for key in keys.tolist()], bool)

    def select(self, keys: Keys, where: Filter) -> Mask:
        return np.array([self.matches(key, where) for key in keys.tolist()], bool)

    def matches(self, key: int, where: Filter) -> bool:
        return key in self.visible and matches(where, self.visible[key])

    def keys(self, where: Filter) -> Keys:
        return np.array(sorted(key for key in self.visible if self.matches(key, where)), np.int64)

    def count(self, where: Filter = EVERYTHING) -> int:
        return sum(self.matches(key, where) for key in self.visible)

    def has_any(self, condition: Condition) -> bool:
        return any(self.matches(key, condition) for key in self.visible)

    def records(self, keys: Iterable[int]) -> dict[int, Record]:
        return {key: self.visible[key] for key in keys if key in self.visible}

    def records_matching(self, where: Filter) -> list[Record]:
        return sorted(self.records(self.keys(where).tolist()).values(), key=lambda one: one.id)

    def iter_records(self) -> Iterator[Record]:
        return iter(sorted(self.visible.values(), key=lambda record: record.full_id))

    def page(self, where: Filter, limit: int, after: str | None = None) -> list[Record]:
        found = (one for one in self.iter_records() if matches(where, one))
        return list(islice((one for one in found if after is None or one.full_id > after), limit))

    def columns(self, keys: Keys, names: Sequence[str]) -> list[tuple[Any, ...]]:
        if not self.exists(keys).all():
            raise SourceError("a source requested a record that the caller may not see")
        return [read_fields(self.visible[key], names) for key in keys.tolist()]

    def text_counts(self, name: str, where: Filter = EVERYTHING) -> dict[str, int]:
        kept = [one for one in self.visible.values() if matches(where, one)]
        values = (value for one in kept for field, value in set(flatten(one)) if field == name)
        return Counter(value for value in values if isinstance(value, str))

    def children(self, parent: str | None, collection: str) -> list[Record]:
        own = (one for one in self.visible.values() if (one.parent, one.collection) == (parent, collection))
        return sorted((one for one in own if parent), key=lambda one: (one.position or 0, one.id))

    def siblings(self, record: Record, first: int, last: int) -> list[Record]:
        near = self.children(record.parent, record.collection)
        return [one for one in near if one.position is not None and first <= one.position <= last]

    def siblings_of_kind(self, record: Record, kinds: Sequence[str]) -> list[Record]:
        return [one for one in self.children(record.parent, record.collection) if one.kind in kinds]

    def adjacent(self, keys: Keys, where: Filter = EVERYTHING) -> dict[int, list[int]]:
        out: dict[int, list[int]] = {}
        for key, record in self.records(keys.tolist()).items():
            if record.position is None:
                continue
            near = self.siblings(record, record.position - 1, record.position + 1)
            found = [self.find_key(one.full_id) for one in near if one.position != record.position]
            if kept := [one for one in found if one is not None and self.matches(one, where)]:
                out[key] = kept
        return out

    def sample(self, where: Filter, count: int) -> Keys:
        keys = self.keys(where)
        return keys[np.unique(np.linspace(0, len(keys) - 1, min(count, len(keys))).astype(np.intp))]

    def newest(self, where: Filter, count: int) -> Keys:
        def age(key: int) -> tuple[float, int]:
            time = self.visible[key].timestamp
            return (math.inf if time is None else -time.timestamp(), -key)

        return np.array(sorted(self.keys(where).tolist(), key=age)[:count], np.int64)

    def find_key(self, record_id: str) -> int | None:
        return next((key for key, record in self.visible.items() if record.full_id == record_id), None)
