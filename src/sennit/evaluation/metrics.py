"""Retrieval metrics of each query and their mean, computed by ir-measures (which runs trec_eval's code).

nDCG@10 uses the grades of the judgements as gains, so binary judgements give binary nDCG. R@k is the fraction of a
query's relevant documents among the first k. MRR@10 is the reciprocal rank of the first relevant document among ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sennit.errors import MissingExtra
from sennit.evaluation.datasets import Judgements

METRICS: Final = {"nDCG@10": "nDCG@10", "MRR@10": "RR@10", "R@5": "R@5", "R@10": "R@10", "R@100": "R@100"}
"""By our name, the name in ir-measures."""

DEEP_METRIC: Final = "R@100"
"""The only metric that needs more than the first ten results."""

MetricValues = Mapping[str, float]
"""The value of each metric, by name."""


def compute_metrics(judgements: Judgements, rankings: Mapping[str, Sequence[str]]) -> dict[str, MetricValues]:
    """The metrics of each query in `rankings`. Each ranking lists ids, best first."""
    try:
        import ir_measures
    except ImportError as error:
        raise MissingExtra("Evaluation", "eval") from error
    our_names = {library_name: name for name, library_name in METRICS.items()}
    qrels = {query: dict(judgements[query]) for query in rankings}
    # ir-measures sorts by score and breaks ties itself. Strictly falling scores keep our order.
    run = {
        query: {document: float(-rank) for rank, document in enumerate(ranking)}
        for query, ranking in rankings.items()
    }
    # A query without results is not part of a run. Its metrics are zero.
    out: dict[str, dict[str, float]] = {query: dict.fromkeys(METRICS, 0.0) for query in rankings}
    measures = [ir_measures.parse_measure(library_name) for library_name in our_names]
    for metric in ir_measures.iter_calc(measures, qrels, run):
        out[metric.query_id][our_names[str(metric.measure)]] = float(metric.value)
    return dict(out)


def mean_metrics(values: Iterable[MetricValues]) -> dict[str, float]:
    """The unweighted mean of each metric."""
    rows = list(values)
    return {name: sum(row[name] for row in rows) / len(rows) if rows else 0.0 for name in METRICS}
