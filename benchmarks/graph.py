"""The graph source over many facts, with some hub entities: python -m benchmarks.graph --facts 1000000

The facts are generated from a seed. The subject of a tenth of them is one of ten hubs; all other entities have a few
facts each. A query names a hub, an ordinary entity, both, or no known entity. The times are those of the source alone,
and of a whole search with a recipe that has only this source.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import sennit
from sennit.facts import Fact
from sennit.ranking.fusion import Weighted
from sennit.recipes import Recipe, SourceConfig
from sennit.recipes.recipe import CandidateCount

SEED: Final = 20_260
WRITE_BATCH_SIZE: Final = 20_000
HUB_COUNT: Final = 10
HUB_SHARE: Final = 0.1
FACTS_PER_ENTITY: Final = 8
"""The average number of facts of an ordinary entity, as subject or object."""

QUERY_COUNT: Final = 400
LIMIT: Final = 10

RECIPE: Final = Recipe(
    name="facts",
    sources=(SourceConfig(source="graph", candidates=CandidateCount()),),
    fusion=Weighted({"graph": 1.0}, "none"),
)
SYLLABLES: Final = "ba de fi go lu mar nel pos ri sun ta vek wo xan yl zo kir dal hem jor".split()


def entity_name(number: int) -> str:
    """A name of two words, unique for each number."""
    parts = []
    while True:
        parts.append(SYLLABLES[number % len(SYLLABLES)])
        number //= len(SYLLABLES)
        if not number:
            break
    word = "".join(parts)
    return f"{word.capitalize()} {word[::-1].capitalize()}"


def generate_facts(count: int) -> Iterator[Fact]:
    """Generate facts, always the same for the same count."""
    rng = random.Random(SEED)
    entities = max(count * 2 // FACTS_PER_ENTITY, HUB_COUNT * 2)
    for number in range(count):
        is_hub = rng.random() < HUB_SHARE
        subject = rng.randrange(HUB_COUNT) if is_hub else rng.randrange(HUB_COUNT, entities)
        yield Fact(
            subject=entity_name(subject),
            relation="knows",
            object=entity_name(rng.randrange(HUB_COUNT, entities)),
            text=f"met for the {number}th time",
            weight=round(rng.random(), 3),
            id=f"f{number}",
        )


def generate_queries(count: int) -> dict[str, list[str]]:
    """The queries, by what they name."""
    rng = random.Random(SEED + 1)
    entities = max(count * 2 // FACTS_PER_ENTITY, HUB_COUNT * 2)

    def ordinary() -> str:
        return entity_name(rng.randrange(HUB_COUNT, entities))

    def hub() -> str:
        return entity_name(rng.randrange(HUB_COUNT))

    return {
        "an entity": [f"Who does {ordinary()} know?" for _ in range(QUERY_COUNT)],
        "a hub": [f"what is known of {hub().lower()} these days" for _ in range(QUERY_COUNT)],
        "a hub and an entity": [f"Did {hub()} meet {ordinary()} in March?" for _ in range(QUERY_COUNT)],
        "no known entity": ["Where did we put the blue umbrella last week?"] * QUERY_COUNT,
    }


def build_database(folder: Path, count: int) -> None:
    """Write the facts, and merge the segments."""
    with sennit.open(folder, embedding__provider="none") as db:
        batch = []
        for fact in generate_facts(count):
            batch.append(fact.to_record())
            if len(batch) == WRITE_BATCH_SIZE:
                db.add(batch)
                batch = []
        if batch:
            db.add(batch)
        db.admin.optimise()


def measure(db: sennit.Database, queries: Sequence[str]) -> tuple[list[float], list[float], float]:
    """The sorted milliseconds of the source and of the search, and the mean number of results."""
    source, search, found = [], [], 0
    for query in queries:
        started = time.perf_counter()
        result = db.search(query, recipe=RECIPE, limit=LIMIT)
        search.append((time.perf_counter() - started) * 1000)
        found += len(result)
        traced = db.search(query, recipe=RECIPE, limit=LIMIT, explain=True).trace
        if traced is not None:
            source.append(traced.sources[0].milliseconds)
    return sorted(source), sorted(search), found / len(queries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="keep the database here, and reuse it if it exists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sennit-graph-") as temporary:
        folder = options.folder or Path(temporary) / "db"
        if not folder.exists():
            started = time.perf_counter()
            build_database(folder, options.facts)
            print(f"{options.facts:,} facts written in {time.perf_counter() - started:.0f} s")
        with sennit.open(folder, embedding__provider="none") as db:
            started = time.perf_counter()
            db.search("warm up", recipe=RECIPE)
            print(f"{len(db):,} facts; first search {(time.perf_counter() - started) * 1000:.0f} ms\n")
            print(
                f"{'query names':<20} {'found':>6} {'source p50':>11} {'p99':>7} {'search p50':>11} {'p99':>7}"
            )
            for kind, queries in generate_queries(len(db)).items():
                source, search, found = measure(db, queries)
                p99 = len(queries) * 99 // 100
                print(
                    f"{kind:<20} {found:>6.1f} {source[len(source) // 2]:>9.2f} ms {source[p99]:>6.2f}"
                    f" {search[len(search) // 2]:>9.2f} ms {search[p99]:>6.2f}"
                )


if __name__ == "__main__":
    main()
