"""sennit itself, through its public interface."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import sennit
from benchmarks.corpus import Corpus
from benchmarks.peers.base import LIMIT, POOL, Found, Passage, passages
from sennit.ranking.fusion import RRF, Weighted
from sennit.recipes import Pool, Recipe, SourceUse

FIFTY: Final = Pool(at_least=POOL)

MATCHED: Final = Recipe(
    name="matched",
    about="What the other systems do: fifty from each source, by reciprocal rank.",
    sources=(SourceUse(source="keyword", pool=FIFTY), SourceUse(source="vector", pool=FIFTY)),
    fusion=RRF(k=60, first_rank=1),
)
NEAREST: Final = Recipe(
    name="nearest",
    sources=(SourceUse(source="vector", pool=FIFTY),),
    fusion=Weighted({"vector": 1.0}, "none"),
)


class SennitPeer:
    """An open database; every text goes in and comes out through sennit.open, add and search."""

    name = "sennit"
    label = "sennit"
    about = "embedded store, its own embedding of the query inside the call"
    hybrid = True
    packages = ("sennit",)
    modules = ("sennit.engine", "sennit.embedding.static")
    efforts: tuple[int, ...] = ()
    writes_beside_searches = True
    embeds = True

    def __init__(self) -> None:
        self._db: sennit.Database | None = None

    @property
    def db(self) -> sennit.Database:
        assert self._db is not None, "open it first"
        return self._db

    def build(self, folder: Path, corpus: Corpus) -> float:
        began = time.perf_counter()
        with sennit.open(folder) as db:
            for batch in passages(corpus):
                db.add(map(_record, batch))
            found = time.perf_counter() - began
            db.optimise()
        return found

    def open(self, folder: Path) -> None:
        self._db = sennit.open(folder)

    def close(self) -> None:
        self.db.close()

    def set_effort(self, below: int | None, effort: int) -> None:
        raise NotImplementedError("sennit chooses its effort by itself")

    def search(self, text: str, below: int | None) -> list[Found]:
        return _found(self.db.search(text, recipe=MATCHED, limit=LIMIT, filters=_where(below)))

    def search_default(self, text: str, below: int | None) -> list[Found]:
        """As a user has it who names no recipe."""
        return _found(self.db.search(text, limit=LIMIT, filters=_where(below)))

    def search_explained(self, text: str, below: int | None) -> list[Found]:
        """The default with its trace."""
        return _found(self.db.search(text, limit=LIMIT, filters=_where(below), explain=True))

    def dense(self, text: str, below: int | None) -> list[int]:
        result = self.db.search(text, recipe=NEAREST, limit=LIMIT, filters=_where(below))
        return [int(hit.record.id) for hit in result.hits]

    def add(self, passage: Passage) -> None:
        self.db.add([_record(passage)])

    def remove(self, number: int) -> None:
        self.db.remove([str(number)])


def _record(passage: Passage) -> sennit.Record:
    return sennit.Record(id=str(passage.number), text=passage.text, metadata={"g": passage.group})


def _where(below: int | None) -> dict[str, object] | None:
    return None if below is None else {"g": {"lt": below}}


def _found(result: sennit.Result) -> list[Found]:
    if result.degraded:
        raise RuntimeError(f"a source failed: {result.degraded}")
    return [Found(int(hit.record.id), hit.record.text) for hit in result.hits]
