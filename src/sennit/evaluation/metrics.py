"""The measures, by ir-measures (which is trec_eval's own code): of each query, and their mean.

nDCG@10 takes the grades of the judgements as gains, so binary judgements give the binary measure. R@k is the share
of a query's relevant documents among the first k, MRR@10 the reciprocal rank of the first one among ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sennit.errors import MissingExtra
from sennit.evaluation.datasets import Judgements

MEASURES: Final = {"nDCG@10": "nDCG@10", "MRR@10": "RR@10", "R@5": "R@5", "R@10": "R@10", "R@100": "R@100"}
"""Our names, and the library's."""

DEEP: Final = "R@100"
"""The one measure that looks beyond the first ten."""

Figures = Mapping[str, float]
"""Measure and value."""


def figures_of(judgements: Judgements, rankings: Mapping[str, Sequence[str]]) -> dict[str, Figures]:
    """The figures of each query of `rankings`, whose lists are best first."""
    try:
        import ir_measures
    except ImportError as error:
        raise MissingExtra("Evaluation", "eval") from error
    ours = {theirs: name for name, theirs in MEASURES.items()}
    qrels = {query: dict(judgements[query]) for query in rankings}
    # The library sorts by score and breaks ties in its own way: falling numbers keep our order.
    run = {query: {name: float(-at) for at, name in enumerate(found)} for query, found in rankings.items()}
    # A query that nothing was found for has no line in a run; its figures are zero all the same.
    out: dict[str, dict[str, float]] = {query: dict.fromkeys(MEASURES, 0.0) for query in rankings}
    wanted = [ir_measures.parse_measure(theirs) for theirs in ours]
    for metric in ir_measures.iter_calc(wanted, qrels, run):
        out[metric.query_id][ours[str(metric.measure)]] = float(metric.value)
    return dict(out)


def mean(figures: Iterable[Figures]) -> dict[str, float]:
    """The mean of each measure, every query counting the same."""
    rows = list(figures)
    return {name: sum(row[name] for row in rows) / len(rows) if rows else 0.0 for name in MEASURES}
