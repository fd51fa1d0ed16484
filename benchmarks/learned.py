"""Learned ranking beside the recipe that it would replace: on held-out folds, and on collections left out entirely.

    python -m benchmarks.learned --data ../shared/data --write docs/quality.md

For each collection a ranker is trained and compared with the recipe on held-out queries, by nested cross-validation, as
`sennit learn` does it. Then a ranker of all other collections ranks the collection that it has never seen. The public
collection for learning to rank has features of its own, and is compared with its best single feature. The last figure
is the time of the trees for 100 candidates.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

import sennit
from sennit.evaluation.datasets import read_collection
from sennit.evaluation.learning import (
    OWN_FEATURES,
    FeatureSet,
    LabelledQuery,
    TreeTrainer,
    compare_values,
    learn_trees,
    order_by,
)
from sennit.evaluation.learning_data import base_recipe, label_collection, read_svmlight
from sennit.evaluation.quality import KNOWN_SCOPES
from sennit.evaluation.run import index_collection, no_progress, with_model
from sennit.ranking.trees import TreeSum
from sennit.settings import Settings

COLLECTIONS: Final = ("scifact_train", "cranfield", "locomo_dev", "2wiki_dev", "musique_train")
BEGIN: Final = "<!-- learned:begin -->"
END: Final = "<!-- learned:end -->"
LEFT_OUT_TREES: Final = 60
"""The middle of the numbers from which folds choose."""

TIMED_ROWS: Final = 100
TIMED_RUNS: Final = 200


class Row(NamedTuple):
    """A line of the table."""

    collection: str
    queries: int
    baseline: float
    learned: float
    difference: float
    low: float
    high: float
    p: float

    def to_markdown(self) -> str:
        return (
            f"| {self.collection} | {self.queries:,} | {self.baseline:.4f} | {self.learned:.4f} "
            f"| {self.difference:+.4f} | {self.low:+.4f} to {self.high:+.4f} | {self.p:.4f} |"
        )


def label(data: Path, name: str, model: str) -> list[LabelledQuery]:
    """Index a collection and label the candidates of its queries."""
    settings = with_model(Settings(), model)
    collection = read_collection(data / name)
    with tempfile.TemporaryDirectory() as folder:
        index_collection(collection, settings, Path(folder) / "db", no_progress, name)
        with sennit.open(Path(folder) / "db", settings=settings) as db:
            return label_collection(
                db, collection, base_recipe(db.recipes["default"]), KNOWN_SCOPES.get(name)
            )


def held_out(name: str, queries: Sequence[LabelledQuery], features: FeatureSet) -> Row:
    """Compare with the recipe on held-out folds."""
    _, report = learn_trees(queries, features)
    one = report.whole
    return Row(
        name,
        one.test.queries,
        one.recipe,
        one.learned,
        one.test.difference,
        *one.test.interval,
        one.test.p_randomisation,
    )


def left_out(name: str, labelled: dict[str, list[LabelledQuery]]) -> tuple[Row, TreeSum]:
    """Train on all other collections, and compare on this one."""
    others = [query for other, queries in labelled.items() if other != name for query in queries]
    trees = TreeTrainer(OWN_FEATURES).train(others, LEFT_OUT_TREES)
    own = labelled[name]
    learned = [query.value(order_by(trees, OWN_FEATURES, query)) for query in own]
    one = compare_values(own, [query.value() for query in own], learned)[0]
    return (
        Row(
            name,
            one.test.queries,
            one.recipe,
            one.learned,
            one.test.difference,
            *one.test.interval,
            one.test.p_randomisation,
        ),
        trees,
    )


def time_trees(trees: TreeSum, queries: Sequence[LabelledQuery]) -> float:
    """Return the median milliseconds for 100 candidates."""
    rows = np.concatenate([query.features for query in queries])[:TIMED_ROWS]
    times = []
    for _ in range(TIMED_RUNS):
        began = time.perf_counter()
        trees.scores(rows)
        times.append((time.perf_counter() - began) * 1000)
    return float(np.median(times))


def table(rows: Sequence[Row]) -> str:
    head = "| collection | queries | recipe | learned | difference | 95 % interval | p |"
    return "\n".join(
        [head, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |", *(row.to_markdown() for row in rows)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--model", default="static")
    parser.add_argument("--write", type=Path, help="page to write the tables into, between its markers")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    labelled = {name: label(options.data, name, options.model) for name in COLLECTIONS}
    own = []
    for name, queries in labelled.items():
        own.append(held_out(name, queries, OWN_FEATURES))
        print(own[-1].to_markdown(), flush=True)
    public_queries, public_features = read_svmlight(options.data / "ltr" / "rank.train")
    own.append(held_out("ltr (public; best single feature)", public_queries, public_features))
    print(own[-1].to_markdown(), flush=True)
    unseen = []
    milliseconds = 0.0
    for name in COLLECTIONS:
        row, trees = left_out(name, labelled)
        unseen.append(row)
        milliseconds = max(milliseconds, time_trees(trees, labelled[name]))
        print(f"left out: {row.to_markdown()}", flush=True)
    text = (
        f"Held-out folds, nDCG@10, model `{options.model}`, recipe `default`:\n\n{table(own)}\n\n"
        f"Left out entirely: the ranker, of {LEFT_OUT_TREES} trees, was trained on the four other collections.\n\n{table(unseen)}\n\n"
        f"The trees take {milliseconds:.2f} ms for {TIMED_ROWS} candidates (median, the slowest of five rankers)."
    )
    print(text)
    if options.json is not None:
        options.json.write_text(json.dumps([row._asdict() for row in (*own, *unseen)], indent=1))
    if options.write is not None:
        page = options.write.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        options.write.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
