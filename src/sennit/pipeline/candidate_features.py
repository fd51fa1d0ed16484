"""The features of candidates while a search runs, as `ranking.features` defines them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sennit.pipeline.source_runner import SearchPlan
from sennit.pipeline.trace_builder import RunLog, source_ranks
from sennit.ranking.fusion import Fused
from sennit.ranking.relevance import Evidence
from sennit.ranking.stages import Floats, Keys
from sennit.sources.base import SearchContext


class CandidateFeatures:
    """Computes features of the candidates of one search."""

    def __init__(
        self,
        plan: SearchPlan,
        context: SearchContext,
        fused: Fused,
        run: RunLog,
        read_evidence: Callable[[Keys], Evidence],
    ) -> None:
        self._plan = plan
        self._context = context
        self._fused = fused
        self._run = run
        self._read_evidence = read_evidence

    def __call__(self, keys: Keys, scores: Floats) -> Floats:
        """Return the features of the first candidates of a ranking, best first, with their scores in it."""
        # Imported at the first use: only a learned ranker reads features.
        from sennit.ranking.features import CandidateColumns, best_of_lists, feature_matrix

        fused, context = self._fused, self._context
        columns = np.searchsorted(fused.keys, keys).clip(0, max(len(fused.keys) - 1, 0))
        known = fused.keys[columns] == keys if len(fused.keys) else np.zeros(len(keys), bool)
        evidence = self._read_evidence(keys)
        records = context.records(keys.tolist())
        results = zip(self._plan.sources, self._run.results, strict=True)
        return feature_matrix(
            CandidateColumns(
                query=context.text,
                kinds=[config.source for config, result in results if result.error is None],
                ranks=np.where(known, source_ranks(fused, self._run)[:, columns], -1),
                raw_scores=np.where(known, fused.raw_scores[:, columns], np.nan),
                best_scores=best_of_lists(fused.raw_scores),
                shares=np.where(known, fused.terms[:, columns], 0.0),
                fused=np.where(known, fused.scores[columns], 0.0),
                scores=scores,
                best_score=float(scores.max(initial=0.0)),
                coverage=np.array(evidence.coverage, np.float64),
                lift=np.array(evidence.lift, np.float64),
                linked=np.array(evidence.linked or np.zeros(len(keys)), np.float64),
                best_match=np.full(len(keys), evidence.best),
                records=[records[key] for key in keys.tolist()],
                now=context.now,
            )
        )
