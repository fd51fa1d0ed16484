"""What turning questions into keywords brings without a language model: python -m benchmarks.transform DIR…

For each collection, the recipe `docs` over all records with the static model: nDCG@10 of the questions as they are, and
with what is embedded changed. The search by words always has the question itself. A second table has one slip of the
pen in the longest word of each question, made from a seed. Milliseconds are the median of the change alone.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import sennit
from sennit.analysis import is_stop, query_terms, words
from sennit.analysis.keywords import extract_keywords
from sennit.evaluation.datasets import Collection, read_collection
from sennit.evaluation.metrics import figures_of, mean
from sennit.llm.offline import corrected, keywords, widened
from sennit.recipes import BUILT_IN
from sennit.sources.base import share_of
from sennit.sources.wording import Wording

SEED: Final = 7
COMMON: Final = 0.1
"""The share of records above which a word that co-occurs says nothing."""

WORD: Final = re.compile(r"[^\W\d_]{3,24}")
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
RECIPE: Final = replace(BUILT_IN["docs"], collections=(), by_page=False)
WORDS: Final = BUILT_IN["keyword"]

Share = Callable[[str], float]
Change = Callable[[sennit.Database, str, Share], str]


def as_asked(_db: sennit.Database, query: str, _share: Share) -> str:
    return query


def telling(_db: sennit.Database, query: str, share: Share) -> str:
    return " ".join(extract_keywords(query, share, 32)) or query


def offline(_db: sennit.Database, query: str, share: Share) -> str:
    return keywords(query, share)


def question_and_keywords(_db: sennit.Database, query: str, share: Share) -> str:
    return widened(query, share)


def spelled(_db: sennit.Database, query: str, share: Share) -> str:
    """The question with only what the corpus does not know spelled anew."""
    wrong = [w for w in query.split() if w.isascii() and w.isalpha() and len(w) > 4 and not share(w)][:3]
    return " ".join(corrected(word, share) if word in wrong else word for word in query.split())


def co_occurring(query: str, texts: Sequence[str], share: Share, most: int) -> list[str]:
    """Words of the best records that the question does not have, the most telling first.

    A word counts by how often it stands in these texts and by how rare it is elsewhere (Rocchio's idea, with the
    records that were found first taken for relevant).
    """
    asked = words(query)
    counts: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for text in texts:
        found = [word.lower() for word in WORD.findall(text)]
        size = math.sqrt(len(found)) or 1.0
        for word, count in Counter(found).items():
            for term in query_terms(word)[:1]:
                if term.term not in asked and not is_stop(term.term):
                    spelled.setdefault(term.term, word)
                    counts[term.term] = counts.get(term.term, 0.0) + count / size
    weights = {
        term: count * -math.log(rare)
        for term, count in counts.items()
        if 0.0 < (rare := share(spelled[term])) < COMMON
    }
    best = sorted(weights, key=lambda term: (-weights[term], term))[:most]
    return [spelled[term] for term in best]


def feedback(texts: int, terms: int) -> Change:
    """The question with words of the best records by keyword."""

    def change(db: sennit.Database, query: str, share: Share) -> str:
        found = db.search(query, recipe=WORDS, limit=texts)
        return " ".join([query, *co_occurring(query, [hit.text for hit in found], share, terms)])

    return change


CHANGES: Final[dict[str, Change]] = {
    "as asked": as_asked,
    "telling words": telling,
    "keywords, parts, spelling": offline,
    "the question and these": question_and_keywords,
    "spelling alone": spelled,
    "+ 3 co-occurring of 3": feedback(3, 3),
    "+ 5 co-occurring of 5": feedback(5, 5),
    "+ 10 co-occurring of 10": feedback(10, 10),
}


def slip(query: str, luck: random.Random) -> str:
    """The question with one slip in its longest word."""
    word = max((w for w in query.split() if w.isalpha()), key=len, default="")
    if len(word) < 5:
        return query
    at = luck.randrange(1, len(word) - 1)
    wrong = luck.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + luck.choice(LETTERS) + word[at + 1 :],
            word[:at] + luck.choice(LETTERS) + word[at:],
        ]
    )
    return query.replace(word, wrong, 1)


def measure(
    db: sennit.Database, collection: Collection, queries: Sequence[tuple[str, str]], change: Change
) -> tuple[float, float]:
    """nDCG@10, and the median milliseconds of the change."""
    rankings, times = {}, []
    for name, text in queries:
        began = time.perf_counter()
        with db.store.snapshot(db.audience()) as snapshot:
            used = change(db, text, lambda word, snapshot=snapshot: share_of(snapshot, word))  # type: ignore[misc]
        times.append((time.perf_counter() - began) * 1000)
        found = db.search(text, recipe=RECIPE, limit=10, wording=Wording(used))
        rankings[name] = [hit.id for hit in found]
    figures = figures_of(collection.judgements, rankings)
    return mean(figures.values())["nDCG@10"], statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args()
    for folder in options.folders:
        collection = read_collection(folder)
        luck = random.Random(SEED)
        asked = [(query.id, query.text) for query in collection.queries][: options.queries]
        slipped = [(name, slip(text, luck)) for name, text in asked]
        with sennit.open(":memory:") as db:
            db.add(collection.documents)
            print(f"\n{collection.name}: {len(db):,} records, {len(asked)} questions")
            print(f"{'':28}nDCG@10   with a slip   ms")
            for name, change in CHANGES.items():
                plain, ms = measure(db, collection, asked, change)
                wrong, _ = measure(db, collection, slipped, change)
                print(f"{name:28}{plain:.4f}    {wrong:.4f}        {ms:.2f}", flush=True)


if __name__ == "__main__":
    main()
