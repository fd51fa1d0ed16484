"""Runs a recipe: sources, fusion, stages, and the records of what is left."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from sennit.errors import InvalidInput
from sennit.pipeline.candidate_features import CandidateFeatures
from sennit.pipeline.events import log_events
from sennit.pipeline.evidence import EvidenceReader
from sennit.pipeline.source_runner import (
    SearchPlan,
    SourceResult,
    SourceRunner,
    check_period,
    elapsed_milliseconds,
)
from sennit.pipeline.trace_builder import (
    CONTRACT_VERSION,
    RunLog,
    build_trace,
    describe_promises,
    trace_limit,
    trace_relevance,
)
from sennit.ranking.calibration import NO_BACKGROUND
from sennit.ranking.fusion import Fused, calibrated_sources, fuse, order
from sennit.ranking.relevance import BEST_OF, Evidence, cut_by_relevance, estimate_relevance
from sennit.ranking.stages import (
    CandidateList,
    Floats,
    Keys,
    Ranking,
    RankingStage,
    StageContext,
    StageOutput,
)
from sennit.recipes import RecipeDigests, SourceConfig
from sennit.rerankers import RerankService
from sennit.results import Degraded, Hit, SearchResult, StageTrace
from sennit.results.hits import make_hit
from sennit.sources.base import SearchContext, Source
from sennit.stores.contract import Backend

if TYPE_CHECKING:
    # Not imported at runtime: a new process that searches once needs none of it.
    from sennit.ranking.ranker import Ranker

QUERY_ID_BYTES: Final = 16
"""As many random bytes as a UUID has; nobody guesses the id of another's search."""


NO_STAGE_CONTEXT: Final = StageContext(
    query="", limit=0, now=datetime.min.replace(tzinfo=UTC), records=lambda _: {}
)
"""For a recipe without stages: nobody reads it."""


class Pipeline(SourceRunner):
    """The one pipeline. It knows sources by name and recipes by value."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        custom: Mapping[str, Source],
        backend: Backend,
        reranker: RerankService,
    ) -> None:
        super().__init__(sources, custom)
        self._rerank = reranker.score
        self._keyword = backend.keyword
        self._vector = backend.vector
        self._promises = describe_promises(backend)
        self._digests = RecipeDigests()

    def run(self, plan: SearchPlan, context: SearchContext) -> SearchResult:
        """Run a search."""
        began = time.perf_counter()
        recipe = plan.recipe
        check_period(plan, context)
        run = RunLog(self.run_sources(plan, context))
        searched = time.perf_counter()
        run.lists = self.candidate_lists(plan, context, run.results)
        result_stages = plan.result_stages
        stage_context = (
            self.stage_context(plan, context) if recipe.stages or result_stages else NO_STAGE_CONTEXT
        )
        self.apply_list_stages(plan, stage_context, run)
        fused, ranking = self.rank(plan, context, stage_context, run)
        # A cut by relevance needs that of every candidate, because a later one may be more relevant.
        deepest = None if plan.min_relevance else max(plan.limit, BEST_OF)
        judged = ranking.keys[:deepest]
        members = _scores_by_list(fused, judged)
        evidence = EvidenceReader(context, self._keyword, self._vector, plan).read(judged, members)
        relevance = estimate_relevance(evidence)
        if plan.explain:
            run.relevance = trace_relevance(judged.tolist(), evidence, relevance)
        if plan.min_relevance:
            ranking = cut_by_relevance(ranking, relevance, plan.min_relevance)
            run.stages.append(StageTrace("min_relevance", ranking.keys, ranking.scores, ranking.dropped))
            relevance = [chance for chance in relevance if chance >= plan.min_relevance]
            members = _scores_by_list(fused, ranking.keys)
        keys = ranking.keys[: plan.limit].tolist()
        records = context.records(keys)
        ended = time.perf_counter()
        hits: list[Hit] = []
        scores = ranking.scores[: plan.limit].tolist()
        chances = relevance[: plan.limit]
        for key, score, chance, list_names in zip(
            keys, scores, chances, _lists_with(members, len(keys)), strict=True
        ):
            record = records.get(key)
            if record is not None:
                location, revision = context.locate(record), context.find_revision(record)
                rank = len(hits) + 1
                hits.append(make_hit(record, score, rank, list_names, location, revision, chance, key))
        degraded = [
            Degraded(config.name, result.error)
            for config, result in zip(plan.sources, run.results, strict=True)
            if result.error is not None
        ]
        if context.warnings:
            degraded += [Degraded(*warning) for warning in context.warnings]
        result = SearchResult(
            context.text,
            recipe.name,
            tuple(hits),
            tuple(degraded),
            None,
            elapsed_milliseconds(began, time.perf_counter()),
            sum(one.answered for one in run.results),
            query_id=os.urandom(QUERY_ID_BYTES).hex(),
            source_milliseconds={
                config.name: one.milliseconds
                for config, one in zip(plan.sources, run.results, strict=True)
                if one.asked
            },
        )
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
            trace = build_trace(plan, context, fused, run, self._promises)
            result = replace(
                result, hits=tuple([replace(hit, trace=trace) for hit in result.hits]), trace=trace
            )
        if plan.explain or result_stages:
            result = replace(result, milliseconds=elapsed_milliseconds(began, time.perf_counter()))
        log_events(plan, run, len(fused.keys), len(hits))
        return result

    def candidate_lists(
        self, plan: SearchPlan, context: SearchContext, results: Sequence[SourceResult]
    ) -> list[CandidateList]:
        """Return the lists of the sources that answered."""
        return [
            CandidateList(
                config.name,
                *result.found,
                # A custom source is called only once.
                None if config.source in self.custom else partial(self._rescore, plan, config, context),
                config.collections,
            )
            for config, result in zip(plan.sources, results, strict=True)
            if result.error is None
        ]

    def apply_list_stages(self, plan: SearchPlan, stage_context: StageContext, run: RunLog) -> None:
        """Apply the stages before fusion to the lists of a run."""
        for stage in plan.recipe.list_stages:
            stage_began = time.perf_counter()
            output = stage.apply(run.lists, stage_context)
            run.lists = output.lists
            # The run notes it also where nobody reads it: a candidate's rank in a source is a feature.
            run.add_list_stage(stage.name, output, elapsed_milliseconds(stage_began, time.perf_counter()))

    def rank(
        self, plan: SearchPlan, context: SearchContext, stage_context: StageContext, run: RunLog
    ) -> tuple[Fused, StageOutput]:
        """Fuse the lists of a run and apply the stages up to the cut; the run notes what they did."""
        recipe = plan.recipe
        calibrated = calibrated_sources(recipe.fusion, [one.name for one in run.lists])
        fused = fuse(
            recipe.fusion,
            [one[:3] for one in run.lists],
            [config.name for config in plan.sources],
            context.background if calibrated else NO_BACKGROUND,
        )
        ranking_stages = _applicable_stages(recipe.ranking_stages, context)
        needs_all = plan.explain or ranking_stages
        best = order(fused.keys, fused.scores, context.ids, None if needs_all else plan.limit)
        ranking = StageOutput(fused.keys[best], fused.scores[best])
        features = CandidateFeatures(
            plan, context, fused, run, partial(self._read_evidence, plan, context, fused)
        )
        for stage in ranking_stages:
            stage_began = time.perf_counter()
            ranking = stage.apply(Ranking(ranking.keys, ranking.scores, run.lists, features), stage_context)
            if ranking.degraded:
                context.warn(stage.name, ranking.degraded)
            run.stages.append(
                StageTrace(
                    stage.name,
                    ranking.keys,
                    ranking.scores,
                    ranking.dropped,
                    ranking.reasons,
                    elapsed_milliseconds(stage_began, time.perf_counter()),
                    ranking.shares,
                    ranking.features,
                )
            )
        return fused, ranking

    def _read_evidence(self, plan: SearchPlan, context: SearchContext, fused: Fused, keys: Keys) -> Evidence:
        """Return how well records match the query, in the order of the ranking from its first."""
        reader = EvidenceReader(context, self._keyword, self._vector, plan)
        return reader.read(keys, _scores_by_list(fused, keys))

    def _rescore(self, plan: SearchPlan, config: SourceConfig, context: SearchContext, keys: Keys) -> Floats:
        """Return the scores of records that the source did not find; nan for what its thresholds exclude."""
        scores = self.scores(plan, config, context, keys)
        if not config.has_threshold:
            return scores
        return np.where(config.passes_threshold(scores, context.background), scores, np.nan)

    def stage_context(self, plan: SearchPlan, context: SearchContext) -> StageContext:
        """Return what the stages of a search may read."""
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
            find_ranker=partial(self._find_ranker, plan, context),
            rerank=self._rerank,
            warn=context.warn,
        )

    def _find_ranker(self, plan: SearchPlan, context: SearchContext, name: str) -> Ranker:
        """Return a learned ranker; raise InvalidInput if it was not trained for searches like this one."""
        from sennit.ranking.features import FEATURE_NAMES, FEATURES_VERSION

        ranker = context.find_ranker(name)
        if (ranker.features_version, ranker.feature_names) != (FEATURES_VERSION, FEATURE_NAMES):
            raise InvalidInput(
                f"the ranker {name!r} has version {ranker.features_version} of the features, and this program has "
                f"version {FEATURES_VERSION}; train it again"
            )
        model = context.snapshot.model
        difference = ranker.training.difference(
            self._digests.of(plan.recipe, plan.bm25), model.fingerprint if model else None, CONTRACT_VERSION
        )
        if difference:
            raise InvalidInput(f"the ranker {name!r} does not fit: {difference}; train it again")
        return ranker

    def _list_scores(self, plan: SearchPlan, context: SearchContext, name: str, keys: Keys) -> Floats:
        config = next(config for config in plan.sources if config.name == name)
        if config.source in self.custom:
            return np.full(len(keys), np.nan)
        return self.scores(plan, config, context, keys)


def _applicable_stages(stages: Sequence[RankingStage], context: SearchContext) -> Sequence[RankingStage]:
    """Return the stages that can change the ranking: some compare files, and most databases have none."""
    others = [stage for stage in stages if not getattr(stage, "only_with_files", False)]
    return stages if len(others) == len(stages) or context.snapshot.has_files else others


def _scores_by_list(fused: Fused, keys: Keys) -> dict[str, list[float]]:
    """Return the score of each record in each list, by the name of the list; nan where a list lacks it."""
    lists = fused.lists
    return dict(zip(lists.names, lists.scores_of(keys).tolist(), strict=True))


def _lists_with(members: Mapping[str, Sequence[float]], count: int) -> list[tuple[str, ...]]:
    """Return the names of the lists that hold each of the first records; none for a record that a stage added."""
    out: list[tuple[str, ...]] = [()] * count
    for name, scores in members.items():
        for at, score in enumerate(scores[:count]):
            if score == score:  # nan differs from itself
                out[at] += (name,)
    return out
