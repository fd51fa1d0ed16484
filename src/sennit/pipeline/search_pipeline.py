"""Runs a recipe: sources, fusion, stages, and the records of what is left."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from sennit.pipeline.events import log_events
from sennit.pipeline.evidence import EvidenceReader
from sennit.pipeline.source_runner import SearchPlan, SourceRunner, check_period, elapsed_milliseconds
from sennit.pipeline.trace_builder import RunLog, build_trace, describe_promises, trace_limit, trace_relevance
from sennit.ranking.calibration import NO_BACKGROUND
from sennit.ranking.fusion import calibrated_sources, fuse, order
from sennit.ranking.relevance import BEST_OF, cut_by_relevance, estimate_relevance
from sennit.ranking.stages import (
    CandidateList,
    Floats,
    Keys,
    Ranking,
    RankingStage,
    StageContext,
    StageOutput,
)
from sennit.recipes import SourceConfig
from sennit.results import Degraded, Hit, SearchResult, StageTrace
from sennit.sources.base import SearchContext, Source
from sennit.stores.contract import Backend

QUERY_ID_BYTES: Final = 16
"""As many random bytes as a UUID has; nobody guesses the id of another's search."""


class Pipeline(SourceRunner):
    """The one pipeline. It knows sources by name and recipes by value."""

    def __init__(self, sources: Mapping[str, Source], custom: Mapping[str, Source], backend: Backend) -> None:
        super().__init__(sources, custom)
        self._keyword = backend.keyword
        self._vector = backend.vector
        self._promises = describe_promises(backend)

    def run(self, plan: SearchPlan, context: SearchContext) -> SearchResult:
        """Run a search."""
        began = time.perf_counter()
        recipe = plan.recipe
        check_period(plan, context)
        run = RunLog(self.run_sources(plan, context))
        searched = time.perf_counter()
        stage_context = self._stage_context(plan, context)
        lists = self._prepare_lists(plan, context, stage_context, run)
        calibrated = calibrated_sources(recipe.fusion, [one.name for one in lists])
        fused = fuse(
            recipe.fusion,
            [one[:3] for one in lists],
            [config.name for config in plan.sources],
            context.background if calibrated else NO_BACKGROUND,
        )
        ranking_stages = _applicable_stages(recipe.ranking_stages, context)
        needs_all = plan.explain or ranking_stages
        best = order(fused.keys, fused.scores, context.ids, None if needs_all else plan.limit)
        ranking = StageOutput(fused.keys[best], fused.scores[best])
        for stage in ranking_stages:
            stage_began = time.perf_counter()
            ranking = stage.apply(Ranking(ranking.keys, ranking.scores, lists), stage_context)
            run.stages.append(
                StageTrace(
                    stage.name,
                    ranking.keys,
                    ranking.scores,
                    ranking.dropped,
                    ranking.reasons,
                    elapsed_milliseconds(stage_began, time.perf_counter()),
                )
            )
        reader = EvidenceReader(context, self._keyword, self._vector, plan, lists)
        # A cut by relevance needs that of every candidate, because a later one may be more relevant.
        deepest = None if plan.min_relevance else max(plan.limit, BEST_OF)
        evidence = reader.read(ranking.keys[:deepest])
        relevance = estimate_relevance(evidence)
        if plan.min_relevance:
            kept = relevance >= plan.min_relevance
            ranking = cut_by_relevance(ranking, relevance, plan.min_relevance)
            run.stages.append(StageTrace("min_relevance", ranking.keys, ranking.scores, ranking.dropped))
            evidence, relevance = evidence.select(kept), relevance[kept]
        keys = ranking.keys[: plan.limit].tolist()
        records = context.records(keys)
        ended = time.perf_counter()
        hits: list[Hit] = []
        scores = ranking.scores[: plan.limit].tolist()
        chances = relevance[: plan.limit].tolist()
        for key, score, chance, list_names in zip(
            keys, scores, chances, _lists_with(lists, keys), strict=True
        ):
            record = records.get(key)
            if record is not None:
                location = context.locate(record)
                hits.append(
                    Hit(
                        record,
                        score,
                        len(hits) + 1,
                        list_names,
                        location=location,
                        relevance=chance,
                        key=key,
                    )
                )
        degraded = tuple(
            Degraded(config.name, result.error)
            for config, result in zip(plan.sources, run.results, strict=True)
            if result.error is not None
        ) + tuple(Degraded(*warning) for warning in context.warnings)
        result = SearchResult(
            context.text,
            recipe.name,
            tuple(hits),
            degraded,
            None,
            elapsed_milliseconds(began, time.perf_counter()),
            sum(one.answered for one in run.results),
            query_id=os.urandom(QUERY_ID_BYTES).hex(),
        )
        result_stages = plan.result_stages
        for result_stage in result_stages:
            stage_began = time.perf_counter()
            output = result_stage.apply(result, stage_context)
            result = output.result
            run.result_stages.append(
                StageTrace(
                    result_stage.name,
                    ranking.keys[: plan.limit],
                    ranking.scores[: plan.limit],
                    reasons=output.reasons,
                    milliseconds=elapsed_milliseconds(stage_began, time.perf_counter()),
                )
            )
        if plan.explain:
            run.milliseconds = {
                "sources": elapsed_milliseconds(began, searched),
                "fusion": elapsed_milliseconds(searched, ended),
            }
            run.stages.append(trace_limit(plan.limit, ranking))
            run.relevance = trace_relevance(keys, evidence, relevance)
            trace = build_trace(plan, context, fused, run, self._promises)
            result = replace(
                result, hits=tuple([replace(hit, trace=trace) for hit in result.hits]), trace=trace
            )
        if plan.explain or result_stages:
            result = replace(result, milliseconds=elapsed_milliseconds(began, time.perf_counter()))
        log_events(plan, run, len(fused.keys), len(hits))
        return result

    def _prepare_lists(
        self, plan: SearchPlan, context: SearchContext, stage_context: StageContext, run: RunLog
    ) -> Sequence[CandidateList]:
        """Return the lists of the sources that answered, after the stages before fusion."""
        lists: Sequence[CandidateList] = [
            CandidateList(
                config.name,
                *result.found,
                # A list limited to collections has no scores for others, and a custom source is called only once.
                None
                if config.collections or config.source in self.custom
                else partial(self._rescore, plan, config, context),
            )
            for config, result in zip(plan.sources, run.results, strict=True)
            if result.error is None
        ]
        for stage in plan.recipe.list_stages:
            stage_began = time.perf_counter()
            output = stage.apply(lists, stage_context)
            lists = output.lists
            if plan.explain:
                elapsed = elapsed_milliseconds(stage_began, time.perf_counter())
                run.add_list_stage(stage.name, output, elapsed)
        run.lists = lists
        return lists

    def _rescore(self, plan: SearchPlan, config: SourceConfig, context: SearchContext, keys: Keys) -> Floats:
        """Return the scores of records that the source did not find; nan for what its thresholds exclude."""
        scores = self.scores(plan, config, context, keys)
        if not config.has_threshold:
            return scores
        return np.where(config.passes_threshold(scores, context.background), scores, np.nan)

    def _stage_context(self, plan: SearchPlan, context: SearchContext) -> StageContext:
        snapshot = context.snapshot
        return StageContext(
            query=context.text,
            limit=plan.limit,
            now=context.now,
            explain=plan.explain,
            read_time=lambda: context.time,
            records=context.records,
            columns=context.columns,
            speakers=lambda: context.speakers,
            fact_matches=context.fact_matches,
            vectors=snapshot.vectors,
            list_scores=partial(self._list_scores, plan, context),
            adjacent=lambda keys: snapshot.adjacent(keys, plan.where),
            siblings=snapshot.siblings,
            siblings_of_kind=snapshot.siblings_of_kind,
        )

    def _list_scores(self, plan: SearchPlan, context: SearchContext, name: str, keys: Keys) -> Floats:
        config = next(config for config in plan.sources if config.name == name)
        if config.source in self.custom:
            return np.full(len(keys), np.nan)
        return self.scores(plan, config, context, keys)


def _applicable_stages(stages: Sequence[RankingStage], context: SearchContext) -> Sequence[RankingStage]:
    """Return the stages that can change the ranking: some compare files, and most databases have none."""
    others = [stage for stage in stages if not getattr(stage, "only_with_files", False)]
    return stages if len(others) == len(stages) or context.snapshot.has_files else others


def _lists_with(lists: Sequence[CandidateList], keys: Sequence[int]) -> list[tuple[str, ...]]:
    """Return the names of the lists that hold each record; none for a record that a stage added."""
    members = [(one.name, set(one.keys.tolist())) for one in lists]
    return [tuple([name for name, known in members if key in known]) for key in keys]
