"""The graph source over many facts, some of them of hubs: python -m benchmarks.graph --facts 1000000

Facts are made from a seed: a tenth of them are of one of ten hubs, the others between names that have a few each.
Questions name a hub, a plain name, both, or nothing known. Times are of the source alone, in process, and of a
whole search with the recipe that has nothing else.
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
from sennit.recipes import Recipe, SourceUse
from sennit.recipes.values import Pool

SEED: Final = 20_260
BATCH: Final = 20_000
HUBS: Final = 10
HUB_SHARE: Final = 0.1
PER_NAME: Final = 8
"""Facts of a plain name, on average, counted from both ends."""

QUESTIONS: Final = 400
LIMIT: Final = 10

RECIPE: Final = Recipe(
    name="facts", sources=(SourceUse(source="graph", pool=Pool()),), fusion=Weighted({"graph": 1.0}, "none")
)
SYLLABLES: Final = "ba de fi go lu mar nel pos ri sun ta vek wo xan yl zo kir dal hem jor".split()


def name(number: int) -> str:
    """Two words that no other number has."""
    parts = []
    while True:
        parts.append(SYLLABLES[number % len(SYLLABLES)])
        number //= len(SYLLABLES)
        if not number:
            break
    word = "".join(parts)
    return f"{word.capitalize()} {word[::-1].capitalize()}"


def facts(count: int) -> Iterator[Fact]:
    """The same facts for the same count."""
    chance = random.Random(SEED)
    names = max(count * 2 // PER_NAME, HUBS * 2)
    for number in range(count):
        hub = chance.random() < HUB_SHARE
        subject = chance.randrange(HUBS) if hub else chance.randrange(HUBS, names)
        yield Fact(
            subject=name(subject),
            relation="knows",
            object=name(chance.randrange(HUBS, names)),
            text=f"met for the {number}th time",
            weight=round(chance.random(), 3),
            id=f"f{number}",
        )


def questions(count: int) -> dict[str, list[str]]:
    """By kind."""
    chance = random.Random(SEED + 1)
    names = max(count * 2 // PER_NAME, HUBS * 2)

    def plain() -> str:
        return name(chance.randrange(HUBS, names))

    def hub() -> str:
        return name(chance.randrange(HUBS))

    return {
        "a plain name": [f"Who does {plain()} know?" for _ in range(QUESTIONS)],
        "a hub": [f"what is known of {hub().lower()} these days" for _ in range(QUESTIONS)],
        "a hub and a name": [f"Did {hub()} meet {plain()} in March?" for _ in range(QUESTIONS)],
        "nothing known": ["Where did we put the blue umbrella last week?"] * QUESTIONS,
    }


def fill(folder: Path, count: int) -> None:
    """Write the facts, and fold the indexes as they would be after a while."""
    with sennit.open(folder, embedding__provider="none") as db:
        batch = []
        for fact in facts(count):
            batch.append(fact.to_record())
            if len(batch) == BATCH:
                db.add(batch)
                batch = []
        if batch:
            db.add(batch)
        db.optimise()


def measure(db: sennit.Database, asked: Sequence[str]) -> tuple[list[float], list[float], float]:
    """Milliseconds of the source and of the search, ascending; and results per question."""
    source, search, found = [], [], 0
    for question in asked:
        began = time.perf_counter()
        result = db.search(question, recipe=RECIPE, limit=LIMIT)
        search.append((time.perf_counter() - began) * 1000)
        found += len(result)
        traced = db.search(question, recipe=RECIPE, limit=LIMIT, explain=True).trace
        if traced is not None:
            source.append(traced.sources[0].milliseconds)
    return sorted(source), sorted(search), found / len(asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="keep the database here, and use it if it is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sennit-graph-") as temporary:
        folder = options.folder or Path(temporary) / "db"
        if not folder.exists():
            began = time.perf_counter()
            fill(folder, options.facts)
            print(f"{options.facts:,} facts written in {time.perf_counter() - began:.0f} s")
        with sennit.open(folder, embedding__provider="none") as db:
            began = time.perf_counter()
            db.search("warm up", recipe=RECIPE)
            print(f"{len(db):,} facts; first search {(time.perf_counter() - began) * 1000:.0f} ms\n")
            print(
                f"{'question names':<18} {'found':>6} {'source p50':>11} {'p99':>7} {'search p50':>11} {'p99':>7}"
            )
            for kind, asked in questions(len(db)).items():
                source, search, found = measure(db, asked)
                last = len(asked) * 99 // 100
                print(
                    f"{kind:<18} {found:>6.1f} {source[len(source) // 2]:>9.2f} ms {source[last]:>6.2f}"
                    f" {search[len(search) // 2]:>9.2f} ms {search[last]:>6.2f}"
                )


if __name__ == "__main__":
    main()
