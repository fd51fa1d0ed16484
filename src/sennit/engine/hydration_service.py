"""Hydration plans: look up code in the store, let the pure functions decide, and store the plan with its episode."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Final, NamedTuple, TypedDict, Unpack

from sennit.engine.catalogue import StoreCatalogue
from sennit.engine.plan_search import PlanSearch
from sennit.engine.projects import within
from sennit.engine.search_planner import SearchPlanner
from sennit.engine.search_request import SearchRequest, check_options
from sennit.engine.validation import check_count, check_episode
from sennit.errors import NotFound
from sennit.filters import Filter
from sennit.hydration import (
    Anchor,
    AnchorOptions,
    Budget,
    Candidate,
    Episode,
    EpisodeTurn,
    HydrationPlan,
    Introspection,
    PlanWarning,
    compare_plans,
    find_anchors,
    load_tokenizer,
    make_plan,
)
from sennit.hydration.anchors import strip_extensions
from sennit.hydration.introspection import restrict_plan, show_keys, summarise_plan
from sennit.hydration.plan import PREVIEW_CHARACTERS, content_hash
from sennit.pipeline import Pipeline
from sennit.places import Places
from sennit.privacy import Caller
from sennit.records import full_id
from sennit.repositories.episodes import EpisodeStore
from sennit.search_parameters import QUERY
from sennit.settings import Settings
from sennit.sources.base import SearchContext
from sennit.stores.contract import Backend, Snapshot

log: Final = logging.getLogger("sennit.hydration")

MAX_PLAN_TOKENS: Final = 10**7
MAX_PLAN_ENTITIES: Final = 10_000

MAX_LISTED_TURNS: Final = 200
"""Turns that a list of episodes has, the latest ones."""

RECIPE: Final = "code"
"""The recipe whose search ranks the candidates."""

LOGGED_QUERY_CHARACTERS: Final = 100

LOCAL_PROVIDERS: Final = ("static", "onnx")
"""Providers that `local` stands for."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A checked request for a plan."""

    query: str
    episode: str
    budget: Budget


class _MadePlan(NamedTuple):
    """A plan, and what it was made from."""

    plan: HydrationPlan
    anchors: Sequence[Anchor]
    candidates: Sequence[Candidate]


class PlanOptions(TypedDict, total=False):
    """The optional arguments of a plan."""

    episode: str | None
    """Plans of one episode build on each other and can be introspected later."""
    max_tokens: int | None
    max_entities: int | None
    allow_partial: bool
    """Shorten an entity that does not fit to its signature and relevant lines."""
    project: str | None
    """Take code only from this indexed folder, by its name or its path; None or `all` for every one."""


class HydrationService:
    """Makes plans and introspects stored ones."""

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        pipeline: Pipeline,
        planner: SearchPlanner,
        make_context: Callable[[SearchRequest, Snapshot, Filter], SearchContext],
        places: Callable[[], Places],
    ) -> None:
        self._backend = backend
        self._store = backend.records
        self._settings = settings.hydration
        self._pipeline = pipeline
        self._planner = planner
        self._make_context = make_context
        self._places = places
        self._episodes = EpisodeStore(backend.records)
        self._estimate_reported = False

    def plan(
        self,
        query: str,
        caller: Caller,
        audience: Filter,
        folders: Sequence[str] = (),
        **options: Unpack[PlanOptions],
    ) -> HydrationPlan:
        """Make the plan for a query; within an episode, store it as the next turn.

        `audience` is what the caller may see, and `folders` the keys of those that the plan is limited to.
        """
        request = self._check_request(query, options)
        turns = self._episodes.turns(caller.tenant, request.episode) if request.episode else []
        turn = (turns[-1] if turns else 0) + 1 if request.episode else 0
        made = self._make(request, turn, caller, within(audience, folders))
        plan = made.plan
        if request.episode:
            stored = replace(plan, entries=tuple(replace(entry, preview="") for entry in plan.entries))
            turn = self._episodes.add_plan(
                caller.tenant,
                request.episode,
                lambda turn: replace(stored, turn=turn).to_json(text=False),
                plan.keys,
                str(audience),
                folders,
            )
            plan = replace(plan, turn=turn)
        plan = show_keys(plan, self._places().show_id)
        self._log(made, plan)
        return plan

    def episodes(self, caller: Caller, audience: Filter) -> tuple[Episode, ...]:
        """Return the episodes of callers who see the same as this one, the latest first; for the owner, all of them.

        The query of a plan may quote what others may not see.
        """
        listed = [
            one
            for one in self._episodes.all(caller.tenant)
            if caller.everything or one.stored.audience == str(audience)
        ]
        latest = sorted(listed, key=lambda one: one.created, reverse=True)[:MAX_LISTED_TURNS]
        turns: dict[str, list[EpisodeTurn]] = {}
        for one in latest:
            plan = HydrationPlan.from_dict(json.loads(one.stored.plan))
            shown = self._restrict(plan, caller, audience, same_audience=one.stored.audience == str(audience))
            created = datetime.fromtimestamp(one.created, UTC)
            turns.setdefault(one.episode, []).append(summarise_plan(shown, created))
        return tuple(Episode(name, tuple(reversed(found))) for name, found in turns.items())

    def introspect(
        self,
        episode: str,
        turn: int | None,
        caller: Caller,
        audience: Filter,
        folders: Sequence[str] = (),
        *,
        replay: bool = False,
    ) -> Introspection:
        """Return the plan of a turn (by default the last) as far as the caller may see it.

        With `folders`, the keys of some, only what is of these; a replay is limited as the plan was.
        """
        turns = self._episodes.turns(caller.tenant, check_episode(episode))
        if not turns:
            raise NotFound(f"There is no episode {episode!r}")
        turn_number = turns[-1] if turn is None else turn
        stored = (
            self._episodes.plan(caller.tenant, episode, turn_number) if type(turn_number) is int else None
        )
        if stored is None:
            raise NotFound(
                f"Episode {episode!r} has no turn {turn_number!r}; its turns: {turns[0]} to {turns[-1]}"
            )
        plan = HydrationPlan.from_dict(json.loads(stored.plan))
        same_audience = stored.audience == str(audience) and not folders
        plan = self._restrict(plan, caller, within(audience, folders), same_audience=same_audience)
        changed = None
        if replay:
            request = PlanRequest(
                plan.query, episode, self._budget(plan.max_tokens, plan.max_entities, plan.allow_partial)
            )
            limited = within(audience, folders or stored.project)
            changed = compare_plans(plan, self._make(request, turn_number, caller, limited).plan)
        show = self._places().show_id
        changes = None if changed is None else changed.map_keys(show)
        return Introspection(show_keys(plan, show), tuple(turns), changes, tuple(folders) or stored.project)

    def _check_request(self, query: str, options: PlanOptions) -> PlanRequest:
        """Check the arguments; the settings give the default budget."""
        check_options(options, PlanOptions, "plan")
        QUERY.check(query)
        settings = self._settings
        tokens, entities = options.get("max_tokens"), options.get("max_entities")
        budget = self._budget(
            check_count("max_tokens", tokens, settings.semantic_budget_tokens, MAX_PLAN_TOKENS),
            check_count("max_entities", entities, settings.semantic_budget_entities, MAX_PLAN_ENTITIES),
            options.get("allow_partial", False),
        )
        episode = options.get("episode")
        return PlanRequest(query, "" if episode is None else check_episode(episode), budget)

    def _budget(self, max_tokens: int, max_entities: int, allow_partial: bool) -> Budget:
        return Budget(max_tokens, max_entities, allow_partial, self._settings.semantic_budget_tokens)

    def _make(self, request: PlanRequest, turn: int, caller: Caller, audience: Filter) -> _MadePlan:
        settings = self._settings
        tokens = load_tokenizer()
        previous: Sequence[str] = ()
        if request.episode and settings.enable_previous_hydration_anchors:
            previous = self._episodes.hydrated_keys(caller.tenant, request.episode, turn)
        anchor_options = AnchorOptions(
            settings.enable_file_mention_anchors,
            settings.enable_symbol_mention_anchors,
            settings.enable_previous_hydration_anchors,
        )
        with self._store.snapshot(audience) as snapshot:
            catalogue = StoreCatalogue(snapshot, caller.tenant, self._backend, self._places())
            search, warnings = self._open_search(request, catalogue, audience)
            anchors = find_anchors(request.query, catalogue, previous, anchor_options, search.relevance)
            candidates: list[Candidate] = []
            if settings.enable_semantic_ranking and not warnings and request.query.strip():
                known = [anchor.unit.key for anchor in anchors]
                candidates, warnings = search.candidates(known, request.budget.max_entities)
        if tokens.is_estimate:
            advice = "token counts are estimates; install the extra 'tokens' for exact ones"
            warnings.append(PlanWarning("estimated_tokens", advice))
        plan = make_plan(
            request.query,
            anchors,
            candidates,
            request.budget,
            tokens,
            warnings,
            episode=request.episode,
            turn=turn,
        )
        return _MadePlan(plan, anchors, candidates)

    def _open_search(
        self, request: PlanRequest, catalogue: StoreCatalogue, audience: Filter
    ) -> tuple[PlanSearch, list[PlanWarning]]:
        """Return the search of a plan; by keyword alone, and with a warning, if it has no vectors to search with."""
        query = SearchRequest(strip_extensions(request.query, catalogue), recipe=RECIPE)
        context = self._make_context(query, catalogue.snapshot, audience)
        search = PlanSearch(self._pipeline, self._planner.plan(query), context, catalogue, self._settings)
        if not self._settings.enable_semantic_ranking:
            return search.without_vectors(), []
        error = self._exclusion(catalogue.snapshot) or search.vector_error()
        return (search, []) if error is None else (search.without_vectors(), [_structural_warning(error)])

    def _exclusion(self, snapshot: Snapshot) -> str | None:
        """Return why the settings rule out the vectors of this database; None if they do not."""
        provider, model = self._settings.embedding_provider, self._settings.embedding_model
        if provider == "none":
            return "hydration.embedding_provider is 'none'"
        if snapshot.model is None or not (provider or model):
            return None
        own, _, name = snapshot.model.name.partition("/")
        fits = own in LOCAL_PROVIDERS if provider == "local" else provider in ("", own)
        if fits and model in ("", name):
            return None
        required = "/".join(part for part in (provider, model) if part)
        return (
            f"[hydration] requires {required}, and the vectors of this database are from {snapshot.model.name}; "
            "[embedding] decides which model a database uses"
        )

    def _restrict(
        self, plan: HydrationPlan, caller: Caller, audience: Filter, *, same_audience: bool
    ) -> HydrationPlan:
        """Return the plan as the caller may see it now, with previews of the entities that have not changed."""
        keys = list(dict.fromkeys((*plan.keys, *(one.key for one in plan.dropped))))
        existing = self._store.get(full_id(caller.tenant, key) for key in keys)
        with self._store.snapshot(audience) as snapshot:
            units = StoreCatalogue(snapshot, caller.tenant, self._backend, self._places()).with_keys(keys)
        texts = {unit.key: unit.text for unit in units}
        locations = {unit.key: unit.location for unit in units}

        def is_visible(key: str) -> bool:
            # The audience that the plan was made for has seen the entities that were removed since.
            return key in texts or (same_audience and full_id(caller.tenant, key) not in existing)

        shown = restrict_plan(plan, is_visible)
        return replace(
            shown,
            entries=tuple(
                replace(
                    entry,
                    path=locations.get(entry.key, entry.path),
                    preview=texts[entry.key][:PREVIEW_CHARACTERS]
                    if content_hash(texts.get(entry.key, "")) == entry.content
                    else entry.preview,
                )
                for entry in shown.entries
            ),
        )

    def _log(self, made: _MadePlan, plan: HydrationPlan) -> None:
        for code, group in groupby(sorted(plan.warnings, key=lambda one: one.code), key=lambda one: one.code):
            warnings = list(group)
            if code == "estimated_tokens":
                if self._estimate_reported:
                    continue
                self._estimate_reported = True
            keys = [warning.key for warning in warnings if warning.key]
            if len(keys) > 1:
                log.warning("%s: %d anchors do not fit into the budget: %s", code, len(keys), ", ".join(keys))
            else:
                log.warning("%s: %s", code, "; ".join(warning.message for warning in warnings))
        for anchor in made.anchors:
            log.debug("anchor %s: %s, priority %d", anchor.unit.key, anchor.reason, anchor.priority)
        event = {
            "event": "plan",
            "episode": plan.episode,
            "turn": plan.turn,
            "query": plan.query[:LOGGED_QUERY_CHARACTERS],
            "anchors": len(made.anchors),
            "candidates": len(made.candidates),
            "top_score": max((one.score for one in made.candidates), default=None),
            "entities": len(plan.entries),
            "dropped": len(plan.dropped),
            "tokens": plan.tokens,
            "max_tokens": plan.max_tokens,
        }
        log.info(json.dumps(event), extra={"sennit": event})


def _structural_warning(reason: str) -> PlanWarning:
    return PlanWarning(
        "structural_only", f"STRUCTURAL ONLY: the plan has anchors and no semantic candidates: {reason}"
    )
