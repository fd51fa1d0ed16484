"""What a source is: something that finds records for a question, and answers in keys and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import QueryTerm, query_terms
from sennit.analysis.keywords import extract_keywords
from sennit.embedding.vectors import normalised
from sennit.filters import EVERYTHING, Filter
from sennit.ranking.stages import value_of
from sennit.records import Record
from sennit.sources.wording import AS_ASKED, Wording
from sennit.stores.contract import BM25, Found
from sennit.stores.embedded.models import Model
from sennit.stores.embedded.snapshot import Snapshot

EmbedQuery = Callable[[Model | None, str], NDArray[np.float32]]


def share_of(snapshot: Snapshot, word: str) -> float:
    """The share of records that hold a word, by its rarest term."""
    return min((snapshot.document_share(term.hash) for term in query_terms(word)), default=0.0)


class Question:
    """What is asked, with what several sources need of it worked out once, and what they bring along."""

    def __init__(
        self,
        text: str,
        snapshot: Snapshot,
        embed: EmbedQuery,
        *,
        audience: Filter = EVERYTHING,
        keywords: Sequence[str] | None = None,
        now: datetime | None = None,
        wording: Wording = AS_ASKED,
    ) -> None:
        self.text = text
        self.wording = wording
        self.snapshot = snapshot
        self.now = datetime.now(UTC) if now is None else now
        self.audience = audience
        """What the caller may see, also of what is no record of the database."""
        self.notes: dict[tuple[str, int], str] = {}
        self.warnings: list[tuple[str, str]] = []
        self._keywords = keywords
        self._embed = embed
        self._brought: dict[int, Record] = {}
        self._read: dict[int, Record] = {}

    @cached_property
    def terms(self) -> list[QueryTerm]:
        return query_terms(self.text)

    @cached_property
    def weighted_terms(self) -> list[tuple[int, float]]:
        """Term hashes with how often each was said; hints of the wording count less, and not again."""
        weights = {term.hash: float(term.count) for term in self.terms}
        for hint in self.wording.hints:
            for term in query_terms(hint):
                weights.setdefault(term.hash, self.wording.hint_weight)
        return list(weights.items())

    @cached_property
    def vector(self) -> NDArray[np.float32]:
        """By the model whose vectors the snapshot searches."""
        wording = self.wording
        vector = self._embed(self.snapshot.model, wording.vector_text or self.text)
        if not wording.hints or not wording.hint_weight:
            return vector
        # Beside and not inside the text: ten words of an editor would outweigh a question of five.
        beside = self._embed(self.snapshot.model, " ".join(wording.hints))
        both: NDArray[np.float32] = normalised((vector + np.float32(wording.hint_weight) * beside)[None])[0]
        return both

    @property
    def names_keywords(self) -> bool:
        """Whether exact keywords were given: some that are not blank, and not the question itself again."""
        named = tuple(word for word in self._keywords or () if word.strip())
        return bool(named) and named != (self.text,)

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """Exact texts to look for: those that were named, or else the telling words of the question."""
        if self.names_keywords:
            return tuple(word for word in self._keywords or () if word.strip())
        return extract_keywords(self.text, self._share)

    def _share(self, word: str) -> float:
        return share_of(self.snapshot, word)

    def note(self, source: str, key: int, text: str) -> None:
        """Say of a record why a source found it; the trace repeats it."""
        self.notes[source, key] = text

    def warn(self, source: str, reason: str) -> None:
        """Say that a source answered, but not in full."""
        self.warnings.append((source, reason))

    def key_of(self, record_id: str) -> int | None:
        """The key of a passage that was brought."""
        return next((key for key, record in self._brought.items() if record.id == record_id), None)

    def bring(self, record: Record) -> int:
        """A key for a passage that is no record of the database, for the length of this search."""
        key = -1 - len(self._brought)
        self._brought[key] = self._read[key] = record
        return key

    def ids(self, keys: NDArray[np.int64]) -> list[bytes]:
        """The id of each record, or passage that was brought, as UTF-8."""
        if not self._brought:
            return self.snapshot.ids(keys)
        kept = self.snapshot.ids(keys)
        brought = self._brought
        return [
            brought[key].full_id.encode() if key in brought else name
            for key, name in zip(keys.tolist(), kept, strict=True)
        ]

    def columns(self, keys: NDArray[np.int64], names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Some fields of the records, and of the passages that were brought, in the order of the keys."""
        if not self._brought:
            return self.snapshot.columns(keys, names)
        kept = iter(self.snapshot.columns(keys[keys >= 0], names))
        return [next(kept) if key >= 0 else value_of(self._brought[key], names) for key in keys.tolist()]

    def records(self, keys: Iterable[int]) -> dict[int, Record]:
        """The records, and the passages that were brought, by key; each is read once in a search."""
        wanted = list(keys)
        self._read |= self.snapshot.records([key for key in wanted if key not in self._read])
        return {key: self._read[key] for key in wanted if key in self._read}


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of one source."""

    question: Question
    pool: int
    where: Filter
    bm25: BM25
    name: str = ""
    """What the list is called."""


class Source(Protocol):
    """Finds records. Called from any thread."""

    @property
    def inline(self) -> bool:
        """True: takes about a millisecond and cannot hang, so it runs in the searching thread."""
        ...

    def search(self, ask: Ask) -> Found:
        """At most `pool` records that pass the filter, best first."""
        ...

    def scores(self, ask: Ask, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """The score of each record for the question; nan where the source does not have it."""
        ...
