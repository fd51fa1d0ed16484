"""Runs a recipe: sources, fusion, stages, and the records of what is left."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.context.expansion import neighbours_of, organise_by_page
from sennit.pipeline.source_runner import SearchPlan, SourceResult, SourceRunner, elapsed_milliseconds
from sennit.pipeline.trace_builder import build_trace, trace_limit
from sennit.ranking.fusion import fuse, order
from sennit.ranking.overlaps import LineRange, merge_overlaps
from sennit.ranking.stages import StageInput, StageOutput
from sennit.recipes import SourceConfig
from sennit.records import Json, Record
from sennit.results import Degraded, Hit, SearchResult, StageTrace
from sennit.sources.base import SearchContext
from sennit.stores.contract import ScoredKeys

log: Final = logging.getLogger("sennit.search")


class Pipeline(SourceRunner):
    """The one pipeline. It knows sources by name and recipes by value."""

    def run(self, plan: SearchPlan, context: SearchContext) -> SearchResult:
        """Run a search."""
        began = time.perf_counter()
        recipe = plan.recipe
        results = self.run_sources(plan, context)
        searched = time.perf_counter()
        found = [result.found for result in results]
        merged_into: Mapping[int, int] = {}
        if recipe.merge_overlaps:
            found, merged_into = _merge_overlaps(found, context)
        if recipe.rescore_missing:
            found = self._rescore_missing(plan, context, found, results)
        lists = [
            (config.name, *one)
            for config, one, result in zip(plan.sources, found, results, strict=True)
            if result.error is None
        ]
        fused = fuse(recipe.fusion, lists, [config.name for config in plan.sources])
        needs_all = plan.explain or recipe.stages
        best = order(fused.keys, fused.scores, context.ids, None if needs_all else plan.limit)
        ranking = StageOutput(fused.keys[best], fused.scores[best])
        stages = []
        for stage in recipe.stages:
            ranking = stage.apply(self._stage_input(plan, context, ranking, lists))
            stages.append(
                StageTrace(stage.name, ranking.keys, ranking.scores, ranking.dropped, ranking.reasons)
            )
        keys = ranking.keys[: plan.limit].tolist()
        records = context.records(keys)
        ended = time.perf_counter()
        trace = None
        if plan.explain:
            milliseconds = {
                "sources": elapsed_milliseconds(began, searched),
                "fusion": elapsed_milliseconds(searched, ended),
            }
            stages.append(trace_limit(plan.limit, ranking))
            trace = build_trace(plan, context, results, fused, stages, merged_into, milliseconds)
        hits: list[Hit] = []
        scores = ranking.scores[: plan.limit].tolist()
        for key, score, list_names in zip(keys, scores, _lists_with(lists, keys), strict=True):
            record = records.get(key)
            if record is not None:
                neighbours = (
                    neighbours_of(context.snapshot, record, plan.neighbours) if plan.neighbours else ()
                )
                hits.append(Hit(record, score, len(hits) + 1, list_names, neighbours, trace, key))
        degraded = tuple(
            Degraded(config.name, result.error)
            for config, result in zip(plan.sources, results, strict=True)
            if result.error is not None
        ) + tuple(Degraded(*warning) for warning in context.warnings)
        _log_search(plan, results, len(fused.keys), stages, len(hits))
        return SearchResult(
            context.text,
            recipe.name,
            tuple(hits),
            degraded,
            trace,
            elapsed_milliseconds(began, time.perf_counter()),
            len(lists),
            organise_by_page(hits, context.snapshot.siblings_of_kind, recipe.examples_shorter_than)
            if recipe.group_by_page
            else (),
        )

    def _stage_input(
        self,
        plan: SearchPlan,
        context: SearchContext,
        ranking: StageOutput,
        lists: Sequence[tuple[str, Any, Any]],
    ) -> StageInput:
        configs = {config.name: config for config in plan.sources}

        def read(keys: NDArray[np.int64]) -> list[Record]:
            records = context.records(keys.tolist())
            return [records[key] for key in keys.tolist()]

        def list_scores(name: str, keys: NDArray[np.int64]) -> NDArray[np.float64]:
            if configs[name].source in self.custom:
                return np.full(len(keys), np.nan)
            return self.scores(plan, configs[name], context, keys)

        return StageInput(
            ranking.keys,
            ranking.scores,
            context.text,
            plan.limit,
            context.now,
            read,
            context.snapshot.vectors,
            tuple(name for name, _, _ in lists),
            max((len(keys) for _, keys, _ in lists), default=0),
            list_scores,
            lambda keys: context.snapshot.adjacent(keys, plan.where),
            plan.explain,
            context.columns,
        )

    def _rescore_missing(
        self,
        plan: SearchPlan,
        context: SearchContext,
        found: Sequence[ScoredKeys],
        results: Sequence[SourceResult],
    ) -> list[ScoredKeys]:
        """Add to each list its source's scores of the records that only other sources found."""
        out = list(found)
        known = [keys.tolist() for keys, _ in found]
        records: set[int] = set().union(*known)
        if min(records, default=0) < 0:
            # Only the source that added an ephemeral hit can score it.
            records = {key for key in records if key >= 0}
        for at, config in enumerate(plan.sources):
            # A list limited to collections has no scores for others, and a custom source is called only once.
            if results[at].error is not None or config.collections or config.source in self.custom:
                continue
            missing = sorted(records.difference(known[at]))
            if missing:
                keys = np.array(missing, np.int64)
                out[at] = _extend(out[at], keys, self.scores(plan, config, context, keys), config)
        return out


def _extend(
    found: ScoredKeys, keys: NDArray[np.int64], scores: NDArray[np.float64], config: SourceConfig
) -> ScoredKeys:
    """Add records to a list, except those without a score or below the threshold."""
    usable = scores > 0.0
    if config.has_threshold:
        usable &= config.passes_threshold(scores)
    count = np.count_nonzero(usable)
    if not count:
        return found
    if count < len(keys):
        keys, scores = keys[usable], scores[usable]
    keys = np.concatenate([found.keys, keys])
    scores = np.concatenate([found.scores, scores])
    best = (-scores).argsort(kind="stable")
    return ScoredKeys(keys[best], scores[best])


def _merge_overlaps(
    found: Sequence[ScoredKeys], context: SearchContext
) -> tuple[list[ScoredKeys], Mapping[int, int]]:
    """Merge candidates of different lists that overlap in one file; also return which key became which."""

    def read_ranges(keys: NDArray[np.int64]) -> list[LineRange | None]:
        records = context.records(keys.tolist())
        return [_line_range(records.get(key)) for key in keys.tolist()]

    merged, merged_into = merge_overlaps(found, read_ranges)
    return [ScoredKeys(*one) for one in merged], merged_into


def _line_range(record: Record | None) -> LineRange | None:
    if record is None or record.path is None or record.lines is None:
        return None
    return LineRange(record.path, *record.lines)


def _lists_with(lists: Sequence[tuple[str, Any, Any]], keys: Sequence[int]) -> list[tuple[str, ...]]:
    """Return the names of the lists that hold each record; none for a record that a stage added."""
    members = [(name, set(found.tolist())) for name, found, _ in lists]
    return [tuple([name for name, known in members if key in known]) for key in keys]


def _log_search(
    plan: SearchPlan,
    results: Sequence[SourceResult],
    fused_count: int,
    stages: Sequence[StageTrace],
    returned: int,
) -> None:
    """Log one event per search, without query or results: values in `record.sennit`, JSON in the message."""
    if not log.isEnabledFor(logging.INFO):
        return
    event: dict[str, Json] = {
        "event": "search",
        "recipe": plan.recipe.name,
        "limit": plan.limit,
        "sources": {
            config.name: {
                "found": len(result.found.keys),
                "milliseconds": round(result.milliseconds, 3),
                **({"error": result.error} if result.error else {}),
            }
            for config, result in zip(plan.sources, results, strict=True)
        },
        "before_fusion": sum(len(result.found.keys) for result in results),
        "after_fusion": fused_count,
        "after_stages": {stage.name: len(stage.keys) for stage in stages},
        "returned": returned,
    }
    log.info(json.dumps(event), extra={"sennit": event})
