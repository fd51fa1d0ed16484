"""A record's score does not depend on which segment holds it, and follows docs/ranking-contract.md."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sennit
from sennit import Database, Record
from sennit.analysis import count_terms, query_terms
from sennit.recipes import BUILTIN_RECIPES, Recipe, SourceConfig
from sennit.stores.contract import BM25
from sennit.stores.embedded import keyword_index

from .helpers import scores

WORDS = "river flood valley spring bread yeast oven music oboe tune glacier ice bank rate goal".split()
QUERIES = ("river", "bread oven ice", "music music rate valley", "glacier unknownword")


def corpus(count: int, seed: int) -> list[Record]:
    """Records with few words and many ties."""
    chance = random.Random(seed)
    return [
        Record(
            id=f"{chance.randrange(10**6):06}-{n}",
            text=" ".join(chance.choices(WORDS, k=chance.randrange(1, 12))),
            title=" ".join(chance.choices(WORDS, k=chance.choice([0, 0, 2]))),
            kind=chance.choice(["note", "page"]),
            metadata={"n": n % 10},
        )
        for n in range(count)
    ]


def fill(db: Database, records: list[Record], seed: int, flush_after: set[int]) -> None:
    """Add the records in order and flush after those at `flush_after`; then change and remove a fixed sample."""
    for at, record in enumerate(records):
        db.add([record])
        if at in flush_after:
            db.maintainer.flush(wait=True)
    chance = random.Random(seed)
    changed = chance.sample(records, len(records) // 5)
    db.add(Record(id=record.id, text="river " + record.text, kind="note") for record in changed)
    db.remove(record.id for record in chance.sample(records, len(records) // 6))


def answers(db: Database, filters: str | None = None) -> list[list[tuple[str, float]]]:
    out = []
    for query in QUERIES:
        for recipe in ("keyword", "vector", "default", "rrf"):
            for limit in (3, 200):
                result = db.search(query, recipe=recipe, limit=limit, filters=filters)
                assert not result.degraded
                out.append(scores(result))
    return out


FILTERS = (None, "kind = 'note'", "n in (1, 2) or kind = 'page'", "not exists n")


@given(seed=st.integers(0, 10**6), flush_after=st.sets(st.integers(0, 39), max_size=6))
@settings(max_examples=6)
def test_rankings_do_not_depend_on_segmentation(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flush_after: set[int]
) -> None:
    records = corpus(40, seed)
    folder = tmp_path_factory.mktemp("scores") / "db"
    with sennit.open(":memory:", store__flush_at=10**6) as buffered:
        fill(buffered, records, seed, set())
        expected = [answers(buffered, filters) for filters in FILTERS]
    with sennit.open(folder, store__flush_at=10**6) as db:
        fill(db, records, seed, flush_after)
        arrangements: list[Callable[[], object]] = [
            lambda: None,
            db.maintainer.flush,
            db.maintainer.merge,
            db.admin.optimise,
        ]
        for arrange in arrangements:
            arrange()
            assert [answers(db, filters) for filters in FILTERS] == expected
    with sennit.open(folder) as db:
        assert [answers(db, filters) for filters in FILTERS] == expected


def reference(records: list[Record], query: str, bm25: BM25) -> dict[str, float]:
    """A direct implementation of BM25 with weighted fields."""
    fields = [("text", bm25.text_weight), ("title", bm25.title_weight)]
    lengths, counts = [], []
    for record in records:
        length = 0.0
        count: dict[int, float] = defaultdict(float)
        for name, weight in fields:
            found, size = count_terms(getattr(record, name))
            length += weight * size
            for term, times in found.items():
                count[term] += weight * times
        lengths.append(length)
        counts.append(count)
    average = sum(lengths) / len(lengths)
    terms_of = [{*count_terms(r.text)[0], *count_terms(r.title)[0]} for r in records]
    out: dict[str, float] = {}
    for record, length, count in zip(records, lengths, counts, strict=True):
        score = 0.0
        for query_term in query_terms(query):
            frequency = sum(query_term.hash in terms for terms in terms_of)
            idf = math.log(1 + (len(records) - frequency + 0.5) / (frequency + 0.5))
            frequency_here = count[query_term.hash]
            norm = bm25.k1 * (1 - bm25.b + bm25.b * length / average)
            if frequency_here:
                score += query_term.count * idf * frequency_here * (bm25.k1 + 1) / (frequency_here + norm)
        if score:
            out[record.id] = score
    return out


@pytest.mark.parametrize(
    "bm25",
    [
        BM25(),
        BM25(k1=0.9, b=0.4),
        BM25(k1=2.0, b=1.0, title_weight=3.0),
        BM25(k1=1.2, b=0.0, text_weight=0.5, title_weight=2.5),
        BM25(k1=0.0, b=0.75),
        BM25(title_weight=0.0),
    ],
)
@pytest.mark.parametrize("flushed", [False, True])
def test_keyword_scores_are_those_of_the_formula(bm25: BM25, flushed: bool) -> None:
    records = corpus(120, 7)
    recipe = Recipe(
        name="k",
        sources=(SourceConfig(source="keyword"),),
        fusion=BUILTIN_RECIPES["keyword"].fusion,
        bm25=bm25,
    )
    with sennit.open(":memory:") as db:
        db.add(records)
        if flushed:
            db.admin.optimise()
        for query in QUERIES:
            found = dict(scores(db.search(query, recipe=recipe, limit=500)))
            expected = reference(records, query, bm25)
            assert found.keys() == expected.keys()
            for name, score in found.items():
                assert score == pytest.approx(expected[name], rel=2e-6)


def test_equal_scores_are_ordered_by_id_across_segments(tmp_path: Path) -> None:
    names = ["b", "a", "ä", "Z", "10", "9", "😀", "ﬀ", "c"]
    with sennit.open(tmp_path / "db") as db:
        for at, name in enumerate(names):
            db.add([Record(id=name, text="the same words")])
            if at in (2, 5):
                db.maintainer.flush(wait=True)
        for recipe in ("keyword", "vector", "default"):
            for limit in (3, 5, 9):
                result = db.search("same words", recipe=recipe, limit=limit)
                assert [hit.id for hit in result] == sorted(names)[:limit], recipe
                assert len({hit.score for hit in result}) == 1


def test_score_does_not_depend_on_filter_or_limit(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(corpus(60, 3))
        db.admin.optimise()
        for recipe in ("keyword", "vector"):
            whole = dict(scores(db.search("river bread", recipe=recipe, limit=500)))
            few = dict(scores(db.search("river bread", recipe=recipe, limit=2, filters="kind = 'page'")))
            assert few
            assert all(whole[name] == score for name, score in few.items())


@pytest.mark.parametrize("capacity", [1, 50, 1 << 22])
def test_cached_impacts_give_the_scores_of_a_fresh_database(
    capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new record changes the mean length and with it every score, so cached impacts must not be reused."""
    monkeypatch.setattr(keyword_index, "CACHED_IMPACTS", capacity)
    monkeypatch.setattr(keyword_index, "CACHED_IMPACTS_PER_RECORD", 0)
    records = corpus(80, 3)
    with sennit.open(":memory:", store__flush_at=10**6) as db:
        db.add(records[:60])
        db.admin.optimise()
        before = None
        for count, times in ((60, 2), (63, 1), (66, 1), (70, 3), (72, 1), (72, 1), (80, 2)):
            db.add(records[:count])
            with sennit.open(":memory:") as fresh:
                fresh.add(records[:count])
                expected = answers(fresh)
            assert [answers(db) for _ in range(times)] == [expected] * times
            assert count == 72 or expected != before
            before = expected


def test_cached_impacts_are_not_shared_between_bm25_constants() -> None:
    """Searches with the same words alternate between parameters."""
    recipes = [
        Recipe(
            name="k",
            sources=(SourceConfig(source="keyword"),),
            fusion=BUILTIN_RECIPES["keyword"].fusion,
            bm25=bm25,
        )
        for bm25 in (BM25(), BM25(k1=0.9), BM25(b=0.9), BM25(title_weight=5.0), BM25(k1=0.0))
    ]
    with sennit.open(":memory:") as db:
        db.add(corpus(60, 5))
        db.admin.optimise()
        expected = []
        for recipe in recipes:
            with sennit.open(":memory:") as fresh:
                fresh.add(corpus(60, 5))
                expected.append(scores(fresh.search("river bread", recipe=recipe, limit=100)))
        for turns in (1, 2, 3):
            for recipe, scored in zip(recipes, expected, strict=True):
                for _ in range(turns):
                    assert scores(db.search("river bread", recipe=recipe, limit=100)) == scored


def test_impact_cache_evicts_the_least_recently_used_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword_index, "CACHED_IMPACTS", 8)
    cache = keyword_index.ScoreCache()
    counts = np.ones(4, np.float32)
    cache.put_impacts("constants", 1, counts)
    cache.put_impacts("constants", 2, counts)
    assert cache.get_impacts("constants", 1) is counts

    cache.put_impacts("constants", 3, counts)

    assert cache.get_impacts("constants", 2) is None
    assert cache.get_impacts("constants", 1) is counts
    assert cache.get_impacts("others", 1) is None
