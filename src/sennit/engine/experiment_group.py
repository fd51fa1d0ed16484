"""`db.experiments`: two recipes compared on live searches by team-draft interleaving."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from sennit.context.expansion import GroupByPage
from sennit.engine.experiment_watch import ExperimentWatch
from sennit.engine.search_recorder import SearchRecorder
from sennit.engine.search_request import SearchRequest
from sennit.errors import InvalidInput, NotFound
from sennit.privacy import Caller
from sennit.ranking.interleaving import TREATMENT, team_draft
from sennit.recipes import Recipe, find_recipe
from sennit.repositories.experiments import Experiment, ExperimentStore, Unit
from sennit.repositories.feedback import FeedbackOwner
from sennit.results import SearchResult
from sennit.settings import SearchSettings
from sennit.stores.contract import RecordsRole


class ExperimentGroup:
    """`db.experiments`: two recipes compared on live searches. At most one experiment runs."""

    def __init__(
        self,
        records: RecordsRole,
        recipes: Mapping[str, Recipe],
        defaults: SearchSettings,
        recorder: SearchRecorder,
        watch: ExperimentWatch,
    ) -> None:
        self._store = ExperimentStore(records)
        self._recipes = recipes
        self._defaults = defaults
        self._recorder = recorder
        self._watch = watch
        self._active: Experiment | None = None
        self._version = -1
        """The version of the watch at which the active experiment was read."""

    def start(
        self,
        name: str,
        control: str,
        treatment: str,
        *,
        unit: Unit = "user",
        share: float = 1.0,
        alpha: float = 0.05,
    ) -> Experiment:
        """Start an experiment: searches with the recipe `control` get results of both recipes, interleaved.

        Their queries are recorded, also where the settings record only those with feedback.
        """
        if not self._recorder.is_on:
            raise InvalidInput("An experiment needs feedback, and the setting feedback.record is off")
        for recipe in (find_recipe(control, self._recipes), find_recipe(treatment, self._recipes)):
            if any(isinstance(stage, GroupByPage) for stage in recipe.stages):
                raise InvalidInput(
                    f"Recipe {recipe.name!r} groups its results by page, and two such results cannot be interleaved; "
                    "compare it with 'sennit eval'"
                )
        experiment = Experiment(
            name=name, control=control, treatment=treatment, unit=unit, share=share, alpha=alpha
        )
        begun = self._store.start(experiment)
        self._watch.refresh()
        return begun

    def stop(self, name: str) -> Experiment:
        """End an experiment; what was recorded stays, and so does its report."""
        ended = self._store.stop(name)
        self._watch.refresh()
        return ended

    def all(self) -> tuple[Experiment, ...]:
        """Return every experiment, the first first."""
        return tuple(self._store.all())

    def get(self, name: str | None = None) -> Experiment:
        """Return an experiment by its name; without one, that which runs, or the last."""
        found = self._store.all()
        if name is None and found:
            return next((one for one in found if one.is_active), found[-1])
        for one in found:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in found) or "none"
        raise NotFound(f"There is no experiment{'' if name is None else f' {name!r}'}. Experiments: {known}")

    def find_active(self, request: SearchRequest) -> Experiment | None:
        """Return the experiment that a search may be part of."""
        version = self._watch.version
        if version != self._version:
            self._active = next((one for one in self._store.all() if one.is_active), None)
            self._version = version
        experiment = self._active
        # A search that is explained is about its recipe.
        if experiment is None or request.explain or not self._recorder.is_on:
            return None
        asked = request.recipe or self._defaults.recipe
        name = asked.name if isinstance(asked, Recipe) else asked
        known = {experiment.control, experiment.treatment} <= self._recipes.keys()
        if name != experiment.control or not known:
            return None
        return experiment if asked in (name, self._recipes[name]) else None

    def search(
        self,
        experiment: Experiment,
        request: SearchRequest,
        caller: Caller,
        search: Callable[[list[SearchRequest]], list[SearchResult]],
    ) -> SearchResult | None:
        """Search with both recipes and interleave the results; None if the search is no part of the experiment."""
        unit = experiment.unit_of(FeedbackOwner.of(caller), caller.name, request.session_id)
        # Without a user or session, each search is a unit of its own.
        unit = unit or os.urandom(8).hex()
        if not experiment.takes_part(unit):
            return None
        control, treatment = (self._recipes[name] for name in (experiment.control, experiment.treatment))
        highest = min(control.max_limit, treatment.max_limit)
        if request.include or (request.limit or 1) > highest:
            return None
        limit = request.limit or min(control.limit or self._defaults.limit, highest)
        first, second = search([replace(request, recipe=one, limit=limit) for one in (control, treatment)])
        picks = team_draft(
            [hit.id for hit in first],
            [hit.id for hit in second],
            limit,
            experiment.coins(unit, request.query),
        )
        hits = tuple(
            replace((second if pick.team == TREATMENT else first)[pick.place], rank=rank)
            for rank, pick in enumerate(picks, 1)
        )
        result = replace(
            first,
            hits=hits,
            degraded=tuple(dict.fromkeys((*first.degraded, *second.degraded))),
            milliseconds=first.milliseconds + second.milliseconds,
            answered=first.answered or second.answered,
            hints=() if hits else first.hints,
        )
        teams = [pick.team for pick in picks]
        return self._recorder.note(request, caller, result, teams=teams, experiment=experiment.name)
