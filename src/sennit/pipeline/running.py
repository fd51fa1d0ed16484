"""Runs a recipe: sources, fusion, stages, and the records of what is left."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sennit.context.neighbours import around
from sennit.context.pages import organised
from sennit.pipeline.asking import Answer, Asker, Plan, milliseconds
from sennit.pipeline.events import log_search
from sennit.pipeline.tracing import beyond_limit, trace_of
from sennit.ranking.fusion import fuse, order
from sennit.ranking.places import Place, join
from sennit.ranking.stages import Ranked, Staged
from sennit.recipes import SourceUse
from sennit.records import Record
from sennit.results import Degraded, Hit, Result, StageTrace
from sennit.sources.base import Question
from sennit.stores.contract import Found


class Pipeline(Asker):
    """The one pipeline. It knows sources by name and recipes by value."""

    def run(self, plan: Plan, question: Question) -> Result:
        """The answer to a question."""
        began = time.perf_counter()
        recipe = plan.recipe
        answers = self.ask_all(plan, question)
        searched = time.perf_counter()
        found = [answer.found for answer in answers]
        gave_way: Mapping[int, int] = {}
        if recipe.join_places:
            found, gave_way = _joined(found, question)
        if recipe.complete:
            found = self._completed(plan, question, found, answers)
        lists = [
            (use.name, *one)
            for use, one, answer in zip(plan.lists, found, answers, strict=True)
            if answer.error is None
        ]
        fused = fuse(recipe.fusion, lists, [use.name for use in plan.lists])
        whole = plan.explain or recipe.stages
        best = order(fused.keys, fused.scores, question.ids, None if whole else plan.limit)
        ranking = Staged(fused.keys[best], fused.scores[best])
        steps = []
        for step in recipe.stages:
            ranking = step.apply(self._ranked(plan, question, ranking, lists))
            steps.append(
                StageTrace(step.name, ranking.keys, ranking.scores, ranking.dropped, ranking.reasons)
            )
        keys = ranking.keys[: plan.limit].tolist()
        records = question.records(keys)
        ended = time.perf_counter()
        trace = None
        if plan.explain:
            times = {"sources": milliseconds(began, searched), "fusion": milliseconds(searched, ended)}
            steps.append(beyond_limit(plan.limit, ranking))
            trace = trace_of(plan, question, answers, fused, steps, gave_way, times)
        hits: list[Hit] = []
        scores = ranking.scores[: plan.limit].tolist()
        for key, score, finders in zip(keys, scores, _found_by(lists, keys), strict=True):
            record = records.get(key)
            if record is not None:
                near = around(question.snapshot, record, plan.neighbours) if plan.neighbours else ()
                hits.append(Hit(record, score, len(hits) + 1, finders, near, trace, key))
        degraded = tuple(
            Degraded(use.name, answer.error)
            for use, answer in zip(plan.lists, answers, strict=True)
            if answer.error is not None
        ) + tuple(Degraded(*warning) for warning in question.warnings)
        log_search(plan, answers, len(fused.keys), steps, len(hits))
        return Result(
            question.text,
            recipe.name,
            tuple(hits),
            degraded,
            trace,
            milliseconds(began, time.perf_counter()),
            len(lists),
            organised(hits, question.snapshot.chunks_of, recipe.short_examples) if recipe.by_page else (),
        )

    def _ranked(
        self, plan: Plan, question: Question, ranking: Staged, lists: Sequence[tuple[str, Any, Any]]
    ) -> Ranked:
        uses = {use.name: use for use in plan.lists}

        def read(keys: NDArray[np.int64]) -> list[Record]:
            records = question.records(keys.tolist())
            return [records[key] for key in keys.tolist()]

        def scores_of(name: str, keys: NDArray[np.int64]) -> NDArray[np.float64]:
            if uses[name].source in self.own:
                return np.full(len(keys), np.nan)
            return self.scores(plan, uses[name], question, keys)

        return Ranked(
            ranking.keys,
            ranking.scores,
            question.text,
            plan.limit,
            question.now,
            read,
            question.snapshot.vectors,
            tuple(name for name, _, _ in lists),
            max((len(keys) for _, keys, _ in lists), default=0),
            scores_of,
            lambda keys: question.snapshot.beside(keys, plan.where),
            plan.explain,
            question.columns,
        )

    def _completed(
        self, plan: Plan, question: Question, found: Sequence[Found], answers: Sequence[Answer]
    ) -> list[Found]:
        """What the sources found, with their scores of what only others found."""
        out = list(found)
        known = [keys.tolist() for keys, _ in found]
        records: set[int] = set().union(*known)
        if min(records, default=0) < 0:
            # A passage that a source brought is known to it alone.
            records = {key for key in records if key >= 0}
        for at, use in enumerate(plan.lists):
            # A list of its own collections has no opinion on others; a user's source is asked once.
            if answers[at].error is not None or use.collections or use.source in self.own:
                continue
            missing = sorted(records.difference(known[at]))
            if missing:
                keys = np.array(missing, np.int64)
                out[at] = _extended(out[at], keys, self.scores(plan, use, question, keys), use)
        return out


def _extended(found: Found, keys: NDArray[np.int64], scores: NDArray[np.float64], use: SourceUse) -> Found:
    """A source's answer with further records; those it has no score for, or too low a one, stay out."""
    usable = scores > 0.0
    if use.has_threshold:
        usable &= use.near_enough(scores)
    count = np.count_nonzero(usable)
    if not count:
        return found
    if count < len(keys):
        keys, scores = keys[usable], scores[usable]
    keys = np.concatenate([found.keys, keys])
    scores = np.concatenate([found.scores, scores])
    best = (-scores).argsort(kind="stable")
    return Found(keys[best], scores[best])


def _joined(found: Sequence[Found], question: Question) -> tuple[list[Found], Mapping[int, int]]:
    """The lists with what overlaps in one file as one, and which key gave way to which."""

    def places(keys: NDArray[np.int64]) -> list[Place | None]:
        records = question.records(keys.tolist())
        return [_place(records.get(key)) for key in keys.tolist()]

    joined, gave_way = join(found, places)
    return [Found(*one) for one in joined], gave_way


def _place(record: Record | None) -> Place | None:
    if record is None or record.path is None or record.lines is None:
        return None
    return Place(record.path, *record.lines)


def _found_by(lists: Sequence[tuple[str, Any, Any]], keys: Sequence[int]) -> list[tuple[str, ...]]:
    """The lists that each record is in; one that a stage brought is in none."""
    held = [(name, set(found.tolist())) for name, found, _ in lists]
    return [tuple([name for name, known in held if key in known]) for key in keys]
