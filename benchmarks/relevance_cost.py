"""What relevance costs: the same searches with and without it, in turns, in one process.

    python -m benchmarks.relevance_cost [--size 100000] [--queries 1500] [--recipe default]

Every query is searched with relevance and without it, in random order, so that other load on the machine affects both
alike. Without it, a pipeline gives every hit the relevance 0 and reads no evidence. The figures are CPU time of the
process. `share` is the difference as a part of a search without relevance: that of the medians, that of the means, and
the median of the differences of each query, which other load on the machine changes least.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np

import sennit
from benchmarks.corpus import SEED, load_corpus
from benchmarks.measurements import freeze_garbage_collection
from sennit.pipeline import search_pipeline
from sennit.ranking.relevance import Evidence

BATCH_RECORDS: Final = 4000
WARM_UP_QUERIES: Final = 100


class NoEvidence:
    """Stands in for the reader of evidence, and reads nothing."""

    def __init__(self, *_: object) -> None:
        pass

    def read(self, keys: np.ndarray[Any, Any], _lists: object) -> Evidence:
        nothing = [0.0] * len(keys)
        return Evidence(nothing, nothing, (), 0.0)


def measure(db: sennit.Database, queries: Sequence[str], recipe: str) -> dict[bool, list[float]]:
    """The milliseconds of each search, with and without relevance."""
    out: dict[bool, list[float]] = {True: [], False: []}
    chance = random.Random(SEED)
    without = mock.patch.multiple(
        search_pipeline, EvidenceReader=NoEvidence, estimate_relevance=lambda evidence: evidence.coverage
    )
    for query in queries:
        db.search(query, recipe=recipe, limit=10)  # caches the query vector, and what both read
        for with_relevance in chance.sample((True, False), 2):
            if not with_relevance:
                without.start()
            started = time.process_time()
            db.search(query, recipe=recipe, limit=10)
            out[with_relevance].append((time.process_time() - started) * 1000)
            if not with_relevance:
                without.stop()
    return out


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1500)
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--database", type=Path, help="folder that keeps the database for the next run")
    options = parser.parse_args(arguments)
    corpus = load_corpus(options.size, options.queries)
    with (
        tempfile.TemporaryDirectory(prefix="sennit-relevance-") as name,
        sennit.open(options.database or Path(name) / "db") as db,
    ):
        if not len(db):
            for start in range(0, len(corpus.texts), BATCH_RECORDS):
                batch = corpus.texts[start : start + BATCH_RECORDS]
                db.add([sennit.Record(id=str(start + at), text=text) for at, text in enumerate(batch)])
            db.admin.optimise()
        for query in corpus.trial_queries[:WARM_UP_QUERIES]:
            db.search(query, recipe=options.recipe)
        freeze_garbage_collection()
        found = measure(db, corpus.queries, options.recipe)
    print(f"{options.size:,} passages, {len(corpus.queries):,} queries, recipe {options.recipe}\n")
    print("| | with | without | difference | share |\n|---|---:|---:|---:|---:|")
    with_it, without = found[True], found[False]
    differences = [one - other for one, other in zip(with_it, without, strict=True)]
    for label, summary, difference in (
        ("median ms", statistics.median, None),
        ("mean ms", statistics.fmean, None),
        ("median of the differences", statistics.median, statistics.median(differences)),
    ):
        slower, faster = summary(with_it), summary(without)
        extra = slower - faster if difference is None else difference
        print(f"| {label} | {slower:.3f} | {faster:.3f} | {extra:.3f} | {extra / faster:.1%} |")


if __name__ == "__main__":
    main()
