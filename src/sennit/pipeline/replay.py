"""A search whose sources ran once: other weights, pools and constants rank the same candidates without a new search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from sennit.pipeline.search_pipeline import Pipeline
from sennit.pipeline.source_runner import SearchPlan, check_period
from sennit.pipeline.trace_builder import RunLog
from sennit.ranking.stages import CandidateList, Floats, Keys
from sennit.recipes import Recipe
from sennit.records import split_id
from sennit.sources.base import SearchContext

_ScoreKeys = Callable[[Keys], Floats]
_RerankTexts = Callable[[str, Sequence[str], float], Sequence[float]]


class Replay:
    """What the sources of a search found, ready to be ranked by other recipes with the same sources.

    It is valid while the snapshot of its search is open. Where a recipe wants fewer candidates of a source, its list is
    cut; more than the search asked for cannot be had.
    """

    def __init__(self, pipeline: Pipeline, plan: SearchPlan, context: SearchContext) -> None:
        check_period(plan, context)
        results = pipeline.run_sources(plan, context)
        self._pipeline: Final = pipeline
        self._plan: Final = plan
        self._context: Final = context
        self._results: Final = results
        self._lists: Final = [
            one if one.rescore is None else one._replace(rescore=_remember(one.rescore))
            for one in pipeline.candidate_lists(plan, context, results)
        ]
        context_of_stages = pipeline.stage_context(plan, context)
        scores = {
            config.name: _remember(partial(context_of_stages.list_scores, config.name))
            for config in plan.sources
        }
        self._stage_context: Final = replace(
            context_of_stages,
            list_scores=lambda name, keys: scores[name](keys),
            rerank=_remember_texts(context_of_stages.rerank),
        )
        self._prepared: Final[list[tuple[object, Sequence[CandidateList]]]] = []
        self._ids: Final[dict[int, str]] = {}
        self.degraded: Final = tuple(
            (config.name, result.error)
            for config, result in zip(plan.sources, results, strict=True)
            if result.error is not None
        )
        """The sources that failed, and why."""

    def rank(self, recipe: Recipe) -> list[str]:
        """Return the ids of the first results by a recipe, which has the same sources as that of the search."""
        sources = recipe.expand_sources()
        plan = replace(self._plan, recipe=recipe, sources=sources)
        pools = {config.name: config.candidates.for_limit(plan.limit) for config in sources}
        asked = {config.name: config.candidates.for_limit(plan.limit) for config in self._plan.sources}
        run = RunLog(self._results)
        run.lists = self._prepare_lists(plan, {name: min(pools[name], asked[name]) for name in pools}, asked)
        _, ranking = self._pipeline.rank(plan, self._context, self._stage_context, run)
        return self._read_ids(ranking.keys[: plan.limit])

    def _prepare_lists(
        self, plan: SearchPlan, pools: Mapping[str, int], asked: Mapping[str, int]
    ) -> Sequence[CandidateList]:
        """Return the lists after the stages before fusion; weights do not change them, so they are kept."""
        key = (tuple(pools.values()), plan.recipe.list_stages)
        for known, lists in self._prepared:
            if known == key:
                return lists
        run = RunLog(self._results)
        run.lists = [
            # A list of a period has more than was asked for, and stays whole.
            one if pools[one.name] == asked[one.name] else _cut(one, pools[one.name])
            for one in self._lists
        ]
        self._pipeline.apply_list_stages(plan, self._stage_context, run)
        self._prepared.append((key, run.lists))
        return run.lists

    def _read_ids(self, keys: Keys) -> list[str]:
        unknown = [key for key in keys.tolist() if key not in self._ids]
        if unknown:
            full_ids = self._context.ids(np.array(unknown, np.int64))
            self._ids.update(zip(unknown, (split_id(name.decode())[1] for name in full_ids), strict=True))
        return [self._ids[key] for key in keys.tolist()]


def _cut(one: CandidateList, count: int) -> CandidateList:
    return one._replace(keys=one.keys[:count], scores=one.scores[:count])


def _remember_texts(rerank: _RerankTexts) -> _RerankTexts:
    """Return the same function; it asks for the score of each text once."""
    known: dict[str, float] = {}

    def remembered(query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known.update(zip(missing, rerank(query, missing, seconds), strict=True))
        return [known[text] for text in texts]

    return remembered


def _remember(score: _ScoreKeys) -> _ScoreKeys:
    """Return the same function; it computes the score of each record once."""
    known: dict[int, float] = {}

    def remembered(keys: Keys) -> Floats:
        missing = [key for key in keys.tolist() if key not in known]
        if missing:
            known.update(zip(missing, score(np.array(missing, np.int64)).tolist(), strict=True))
        return np.array([known[key] for key in keys.tolist()], np.float64)

    return remembered
