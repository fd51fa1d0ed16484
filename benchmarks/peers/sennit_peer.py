"""sennit, through its public interface."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import sennit
from benchmarks.corpus import Corpus
from benchmarks.peers.base import CANDIDATE_LIMIT, LIMIT, Passage, PassageHit, iterate_batches
from sennit.ranking.fusion import RRF, Weighted
from sennit.recipes import CandidateCount, Recipe, SourceConfig

CANDIDATES: Final = CandidateCount(at_least=CANDIDATE_LIMIT)

MATCHED: Final = Recipe(
    name="matched",
    about="The same as the other systems: fifty candidates from each source, fused by RRF.",
    sources=(
        SourceConfig(source="keyword", candidates=CANDIDATES),
        SourceConfig(source="vector", candidates=CANDIDATES),
    ),
    fusion=RRF(k=60, first_rank=1),
)
NEAREST: Final = Recipe(
    name="nearest",
    sources=(SourceConfig(source="vector", candidates=CANDIDATES),),
    fusion=Weighted({"vector": 1.0}, "none"),
)


class SennitPeer:
    """An open database, used through sennit.open, add and search."""

    name = "sennit"
    label = "sennit"
    about = "embedded store; the search embeds the query itself"
    hybrid = True
    packages = ("sennit",)
    modules = ("sennit.engine", "sennit.embedding.static")
    efforts: tuple[int, ...] = ()
    concurrent_writes = True
    embeds_documents = True

    def __init__(self) -> None:
        self._db: sennit.Database | None = None

    @property
    def db(self) -> sennit.Database:
        assert self._db is not None, "open it first"
        return self._db

    def build(self, folder: Path, corpus: Corpus) -> float:
        started = time.perf_counter()
        with sennit.open(folder) as db:
            for batch in iterate_batches(corpus):
                db.add(map(_record, batch))
            searchable_seconds = time.perf_counter() - started
            db.admin.optimise()
        return searchable_seconds

    def open(self, folder: Path) -> None:
        self._db = sennit.open(folder)

    def close(self) -> None:
        self.db.close()

    def set_effort(self, group_limit: int | None, effort: int) -> None:
        raise NotImplementedError("sennit chooses its search effort itself")

    def search(self, text: str, group_limit: int | None) -> list[PassageHit]:
        return _hits(self.db.search(text, recipe=MATCHED, limit=LIMIT, filters=_where(group_limit)))

    def search_default(self, text: str, group_limit: int | None) -> list[PassageHit]:
        """The default recipe, as used when none is named."""
        return _hits(self.db.search(text, limit=LIMIT, filters=_where(group_limit)))

    def search_explained(self, text: str, group_limit: int | None) -> list[PassageHit]:
        """The default recipe with its trace."""
        return _hits(self.db.search(text, limit=LIMIT, filters=_where(group_limit), explain=True))

    def dense(self, text: str, group_limit: int | None) -> list[int]:
        result = self.db.search(text, recipe=NEAREST, limit=LIMIT, filters=_where(group_limit))
        return [int(hit.record.id) for hit in result.hits]

    def add(self, passage: Passage) -> None:
        self.db.add([_record(passage)])

    def remove(self, number: int) -> None:
        self.db.remove([str(number)])


def _record(passage: Passage) -> sennit.Record:
    return sennit.Record(id=str(passage.number), text=passage.text, metadata={"g": passage.group})


def _where(group_limit: int | None) -> dict[str, object] | None:
    return None if group_limit is None else {"g": {"lt": group_limit}}


def _hits(result: sennit.SearchResult) -> list[PassageHit]:
    if result.degraded:
        raise RuntimeError(f"a source failed: {result.degraded}")
    return [PassageHit(int(hit.record.id), hit.record.text) for hit in result.hits]
