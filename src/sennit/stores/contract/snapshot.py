"""What one search reads: one version of the records, as one audience sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sennit.filters import EVERYTHING, Condition, Filter
from sennit.ranking.calibration import CosineSample
from sennit.records import Record
from sennit.stores.contract.answers import Keys, Mask
from sennit.stores.contract.feed import Changes
from sennit.stores.contract.models import Model


class Snapshot(Protocol):
    """All reads of one search, of one version of the records, as one audience sees them.

    For this audience, the snapshot behaves as if hidden records had never been stored.
    """

    @property
    def seq(self) -> int:
        """The number of the last change."""
        ...

    @property
    def audience(self) -> Filter:
        """Which records are visible."""
        ...

    @property
    def model(self) -> Model | None:
        """The active embedding model."""
        ...

    def abandon(self) -> None:
        """Keep the read transaction open for a reading thread that is left behind."""
        ...

    def ids(self, keys: Keys) -> list[bytes]:
        """The full id of each record as UTF-8, which sorts in the order of code points; empty for other keys."""
        ...

    def exists(self, keys: Keys) -> Mask:
        """Which of the keys belong to visible records."""
        ...

    def select(self, keys: Keys, where: Filter) -> Mask:
        """Which of the keys belong to visible records that match a filter. A key may be any number."""
        ...

    def records(self, keys: Iterable[int]) -> dict[int, Record]:
        """The visible records among these keys, by key."""
        ...

    def columns(self, keys: Keys, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """The values of some fields of visible records: built-in fields, and top-level keys of the metadata."""
        ...

    def vectors(self, keys: Keys) -> NDArray[np.float32]:
        """The vector of each record by the active model, a row of zeros for a record without one."""
        ...

    def cosine_sample(self, query: NDArray[np.float32]) -> CosineSample:
        """The mean cosine of a query with a sample of the visible texts: those with the smallest hashes.

        So the sample depends on the texts alone. At most SAMPLE_RECORDS texts are in it, each once.
        """
        ...

    def siblings(self, record: Record, first: int, last: int) -> list[Record]:
        """The records with the same parent at these positions, in order; includes the record itself."""
        ...

    def siblings_of_kind(self, record: Record, kinds: Sequence[str]) -> list[Record]:
        """The records with the same parent and one of these kinds, in order."""
        ...

    def children(self, parent: str, collection: str) -> list[Record]:
        """The records of a collection with this parent, in order."""
        ...

    def adjacent(self, keys: Keys, where: Filter = EVERYTHING) -> dict[int, list[int]]:
        """For each record, the records of the same parent right before and after it that match a filter."""
        ...

    def records_matching(self, where: Filter) -> list[Record]:
        """The records that match a filter, ordered by id."""
        ...

    def keys(self, where: Filter) -> Keys:
        """The keys of the records that match a filter, in no order."""
        ...

    def page(self, where: Filter, limit: int, after: str | None = None) -> list[Record]:
        """The first `limit` records that match a filter and whose full ids are greater than `after`, by full id."""
        ...

    def text_counts(self, name: str, where: Filter = EVERYTHING) -> dict[str, int]:
        """The texts in a field of the records that match a filter, and how many records have each."""
        ...

    def iter_records(self) -> Iterator[Record]:
        """The visible records, ordered by id; read as they are used."""
        ...

    def sample(self, where: Filter, count: int) -> Keys:
        """The keys of at most `count` records that match a filter, evenly spaced."""
        ...

    def newest(self, where: Filter, count: int) -> Keys:
        """The keys of the records that match a filter and have the latest times, latest first.

        Records without a time come last. A backend may look only at the 20,000 records that were written last.
        """
        ...

    def hides_records_of(self, parent: str) -> bool:
        """Whether the audience may not see some record with this parent."""
        ...

    @property
    def has_files(self) -> bool:
        """Whether files are indexed."""
        ...

    def find_key(self, record_id: str) -> int | None:
        """The key of the visible record with this full id."""
        ...

    def matches(self, key: int, where: Filter) -> bool:
        """Whether a visible record matches a filter."""
        ...

    def count(self, where: Filter = EVERYTHING) -> int:
        """The number of visible records that match a filter."""
        ...

    def has_any(self, condition: Condition) -> bool:
        """Whether some visible record satisfies a condition; cheaper than counting."""
        ...

    def changes(self, after: int, limit: int) -> Changes:
        """The feed up to this version: at most `limit` changes after a number, of all records, visible or not.

        Raises ChangesLost when some of them are no longer known; the reader then begins again after 0.
        """
        ...

    def applied(self, index: str) -> int:
        """The last change that an index has recorded as applied, with `RecordsRole.set_applied`; 0 at first."""
        ...
