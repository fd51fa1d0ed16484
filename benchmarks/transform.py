"""Query transforms without a language model: python -m benchmarks.transform DIR…

For each collection, nDCG@10 of the recipe `docs` over all records with the static model, with several transforms of the
text that is embedded. The keyword search always gets the original query. A second column has the queries with one typo
in the longest word, made from a seed. The milliseconds are the median of the transform alone.
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
from sennit.analysis import content_terms, is_stop_word, query_terms
from sennit.analysis.keywords import extract_keywords
from sennit.evaluation.datasets import Collection, read_collection
from sennit.evaluation.metrics import compute_metrics, mean_metrics
from sennit.llm.offline_transform import append_keywords, correct_spelling, make_keywords
from sennit.recipes import BUILTIN_RECIPES
from sennit.sources.base import QueryRewrite, document_share

SEED: Final = 7
MAX_DOCUMENT_SHARE: Final = 0.1
"""A word that occurs in a larger share of the records is not used for expansion."""

WORD: Final = re.compile(r"[^\W\d_]{3,24}")
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
RECIPE: Final = replace(BUILTIN_RECIPES["docs"], collections=(), stages=())
KEYWORD_RECIPE: Final = BUILTIN_RECIPES["keyword"]

Share = Callable[[str], float]
Transform = Callable[[sennit.Database, str, Share], str]


def unchanged(_db: sennit.Database, query: str, _share: Share) -> str:
    return query


def keep_keywords(_db: sennit.Database, query: str, share: Share) -> str:
    return " ".join(extract_keywords(query, share, 32)) or query


def offline_keywords(_db: sennit.Database, query: str, share: Share) -> str:
    return make_keywords(query, share)


def query_and_keywords(_db: sennit.Database, query: str, share: Share) -> str:
    return append_keywords(query, share)


def fix_spelling(_db: sennit.Database, query: str, share: Share) -> str:
    """The query with corrected spelling of words that the corpus does not contain."""
    wrong = [w for w in query.split() if w.isascii() and w.isalpha() and len(w) > 4 and not share(w)][:3]
    return " ".join(correct_spelling(word, share) if word in wrong else word for word in query.split())


def expansion_terms(query: str, texts: Sequence[str], share: Share, max_terms: int) -> list[str]:
    """Words of the best records that the query does not have, by weight.

    The weight grows with the frequency in these texts and with the rarity in the corpus. This is pseudo-relevance
    feedback after Rocchio: the records that are found first are assumed to be relevant.
    """
    known_terms = content_terms(query)
    counts: dict[str, float] = {}
    word_of_term: dict[str, str] = {}
    for text in texts:
        found = [word.lower() for word in WORD.findall(text)]
        size = math.sqrt(len(found)) or 1.0
        for word, count in Counter(found).items():
            for term in query_terms(word)[:1]:
                if term.term not in known_terms and not is_stop_word(term.term):
                    word_of_term.setdefault(term.term, word)
                    counts[term.term] = counts.get(term.term, 0.0) + count / size
    weights = {
        term: count * -math.log(doc_share)
        for term, count in counts.items()
        if 0.0 < (doc_share := share(word_of_term[term])) < MAX_DOCUMENT_SHARE
    }
    best = sorted(weights, key=lambda term: (-weights[term], term))[:max_terms]
    return [word_of_term[term] for term in best]


def expand_query(texts: int, terms: int) -> Transform:
    """The query with words of the best records of a keyword search."""

    def transform(db: sennit.Database, query: str, share: Share) -> str:
        found = db.search(query, recipe=KEYWORD_RECIPE, limit=texts)
        return " ".join([query, *expansion_terms(query, [hit.text for hit in found], share, terms)])

    return transform


TRANSFORMS: Final[dict[str, Transform]] = {
    "unchanged": unchanged,
    "keywords only": keep_keywords,
    "offline transform": offline_keywords,
    "query and keywords": query_and_keywords,
    "spelling correction": fix_spelling,
    "+ 3 terms of 3 records": expand_query(3, 3),
    "+ 5 terms of 5 records": expand_query(5, 5),
    "+ 10 terms of 10 records": expand_query(10, 10),
}


def add_typo(query: str, rng: random.Random) -> str:
    """The query with one typo in its longest word."""
    word = max((w for w in query.split() if w.isalpha()), key=len, default="")
    if len(word) < 5:
        return query
    at = rng.randrange(1, len(word) - 1)
    wrong = rng.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + rng.choice(LETTERS) + word[at + 1 :],
            word[:at] + rng.choice(LETTERS) + word[at:],
        ]
    )
    return query.replace(word, wrong, 1)


def measure(
    db: sennit.Database, collection: Collection, queries: Sequence[tuple[str, str]], transform: Transform
) -> tuple[float, float]:
    """nDCG@10, and the median milliseconds of the transform."""
    rankings, times = {}, []
    for name, text in queries:
        started = time.perf_counter()
        with db.store.snapshot(db.audience()) as snapshot:
            transformed = transform(db, text, lambda word, snapshot=snapshot: document_share(snapshot, word))  # type: ignore[misc]
        times.append((time.perf_counter() - started) * 1000)
        found = db.search(text, recipe=RECIPE, limit=10, rewrite=QueryRewrite(transformed))
        rankings[name] = [hit.id for hit in found]
    metrics = compute_metrics(collection.judgements, rankings)
    return mean_metrics(metrics.values())["nDCG@10"], statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args()
    for folder in options.folders:
        collection = read_collection(folder)
        rng = random.Random(SEED)
        queries = [(query.id, query.text) for query in collection.queries][: options.queries]
        with_typos = [(name, add_typo(text, rng)) for name, text in queries]
        with sennit.open(":memory:") as db:
            db.add(collection.documents)
            print(f"\n{collection.name}: {len(db):,} records, {len(queries)} queries")
            print(f"{'':28}nDCG@10   with a typo   ms")
            for name, transform in TRANSFORMS.items():
                ndcg, ms = measure(db, collection, queries, transform)
                typo_ndcg, _ = measure(db, collection, with_typos, transform)
                print(f"{name:28}{ndcg:.4f}    {typo_ndcg:.4f}        {ms:.2f}", flush=True)


if __name__ == "__main__":
    main()
