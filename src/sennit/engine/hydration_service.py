"""Hydration plans: look up code in the store, let the pure functions decide, and store the plan with its episode."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypedDict, Unpack

from sennit.engine.catalogue import CODE, StoreCatalogue
from sennit.engine.search_request import SearchRequest
from sennit.engine.validation import check_count, check_episode
from sennit.errors import NotFound
from sennit.filters import EVERYTHING, Filter
from sennit.hydration import (
    Anchor,
    AnchorOptions,
    Budget,
    Candidate,
    HydrationPlan,
    Introspection,
    PlanWarning,
    compare_plans,
    find_anchors,
    load_tokenizer,
    make_plan,
)
from sennit.hydration.introspection import restrict_plan
from sennit.hydration.plan import PREVIEW_CHARACTERS, content_hash
from sennit.pipeline import Pipeline, SearchPlan
from sennit.privacy import Caller
from sennit.ranking.fusion import Weighted
from sennit.recipes import Recipe, SourceConfig
from sennit.records import full_id
from sennit.repositories.episodes import EpisodeStore
from sennit.search_parameters import QUERY
from sennit.settings import Settings
from sennit.sources.base import SearchContext
from sennit.stores.contract import BM25, RecordsRole, Snapshot

log: Final = logging.getLogger("sennit.hydration")

MAX_PLAN_TOKENS: Final = 10**7
MAX_PLAN_ENTITIES: Final = 10_000

MIN_CANDIDATES: Final = 50
"""Candidates that are considered at least; those that do not fit are listed as dropped."""

LOCAL_PROVIDERS: Final = ("static", "onnx")
"""Providers that `local` stands for."""

SCORE_DIGITS: Final = 6
"""Decimal digits of a score that are used; further digits differ between machines."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A checked request for a plan."""

    query: str
    episode: str
    budget: Budget


class PlanOptions(TypedDict, total=False):
    """The optional arguments of a plan."""

    episode: str | None
    """Plans of one episode build on each other and can be introspected later."""
    max_tokens: int | None
    max_entities: int | None
    allow_partial: bool
    """Shorten an entity that does not fit to its signature and relevant lines."""


class HydrationService:
    """Makes plans and introspects stored ones."""

    def __init__(
        self,
        store: RecordsRole,
        settings: Settings,
        pipeline: Pipeline,
        make_context: Callable[[SearchRequest, Snapshot, Filter], SearchContext],
    ) -> None:
        self._store = store
        self._settings = settings.hydration
        self._search = settings.search
        keyword = settings.keyword
        self._bm25 = BM25(keyword.k1, keyword.b, keyword.text_weight, keyword.title_weight)
        self._pipeline = pipeline
        self._make_context = make_context
        self._episodes = EpisodeStore(store)
        self._files = store.files
        self._estimate_reported = False

    def plan(
        self, query: str, caller: Caller, audience: Filter, **options: Unpack[PlanOptions]
    ) -> HydrationPlan:
        """Make the plan for a query; within an episode, store it as the next turn."""
        request = self._check_request(query, options)
        turns = self._episodes.turns(caller.tenant, request.episode) if request.episode else []
        turn = (turns[-1] if turns else 0) + 1 if request.episode else 0
        plan = self._make(request, turn, caller, audience)
        if request.episode:
            stored = replace(plan, entries=tuple(replace(entry, preview="") for entry in plan.entries))
            turn = self._episodes.add_plan(
                caller.tenant,
                request.episode,
                lambda turn: replace(stored, turn=turn).to_json(text=False),
                plan.keys,
                str(audience),
            )
            plan = replace(plan, turn=turn)
        self._log(plan)
        return plan

    def introspect(
        self, episode: str, turn: int | None, caller: Caller, audience: Filter, *, replay: bool = False
    ) -> Introspection:
        """Return the plan of a turn (by default the last) as far as the caller may see it."""
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
        plan = self._restrict(plan, caller, audience, same_audience=stored.audience == str(audience))
        changed = None
        if replay:
            request = PlanRequest(
                plan.query, episode, Budget(plan.max_tokens, plan.max_entities, plan.allow_partial)
            )
            changed = compare_plans(plan, self._make(request, turn_number, caller, audience))
        return Introspection(plan, tuple(turns), changed)

    def _check_request(self, query: str, options: PlanOptions) -> PlanRequest:
        """Check the arguments; the settings give the default budget."""
        QUERY.check(query)
        settings = self._settings
        tokens, entities = options.get("max_tokens"), options.get("max_entities")
        budget = Budget(
            check_count("max_tokens", tokens, settings.semantic_budget_tokens, MAX_PLAN_TOKENS),
            check_count("max_entities", entities, settings.semantic_budget_entities, MAX_PLAN_ENTITIES),
            options.get("allow_partial", False),
        )
        episode = options.get("episode")
        return PlanRequest(query, "" if episode is None else check_episode(episode), budget)

    def _make(self, request: PlanRequest, turn: int, caller: Caller, audience: Filter) -> HydrationPlan:
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
            catalogue = StoreCatalogue(snapshot, caller.tenant, self._files)
            anchors = find_anchors(request.query, catalogue, previous, anchor_options)
            candidates, warnings = self._candidates(request, anchors, catalogue, audience)
        if tokens.is_estimate:
            advice = "token counts are estimates; install the extra 'tokens' for exact ones"
            warnings.append(PlanWarning("estimated_tokens", advice))
        return make_plan(
            request.query,
            anchors,
            candidates,
            request.budget,
            tokens,
            warnings,
            episode=request.episode,
            turn=turn,
        )

    def _candidates(
        self, request: PlanRequest, anchors: Sequence[Anchor], catalogue: StoreCatalogue, audience: Filter
    ) -> tuple[list[Candidate], list[PlanWarning]]:
        """Return the semantic candidates, or else those by keyword, and warnings about them."""
        settings, snapshot = self._settings, catalogue.snapshot
        if not settings.enable_semantic_ranking or not request.query.strip():
            return [], []
        exclusion = self._exclusion(snapshot)
        if exclusion:
            return [], [_structural_warning(exclusion)]
        context = self._make_context(SearchRequest(request.query), snapshot, audience)
        known = {anchor.unit.key for anchor in anchors}
        max_candidates = max(request.budget.max_entities, MIN_CANDIDATES)
        found, error = self._run_source("vector", max_candidates + len(known), context, catalogue)
        if error is not None:
            return [], [_structural_warning(error)]
        near = [one for one in found if one.score > settings.semantic_threshold and one.unit.key not in known]
        if near:
            return near[:max_candidates], []
        highest = max((one.score for one in found if one.unit.key not in known), default=None)
        best = "" if highest is None else f" (the nearest has {highest:.2f})"
        by_keyword, _ = self._run_source("keyword", max_candidates + len(known), context, catalogue)
        fallback = [one for one in by_keyword if one.unit.key not in known][:max_candidates]
        message = (
            f"no candidate is above the threshold of {settings.semantic_threshold:g}{best}; "
            f"by keyword instead: {len(fallback)}"
        )
        return fallback, [PlanWarning("below_threshold", message)]

    def _run_source(
        self, source: str, max_candidates: int, context: SearchContext, catalogue: StoreCatalogue
    ) -> tuple[list[Candidate], str | None]:
        """Return the entities that a source finds, best first, each once; or why it failed."""
        config = SourceConfig(source=source, collections=(CODE,))
        recipe = Recipe(name="hydration", sources=(config,), fusion=Weighted({source: 1.0}, "none"))
        plan = SearchPlan(
            recipe, (config,), max_candidates, EVERYTHING, self._bm25, self._search.deadline, explain=False
        )
        (result,) = self._pipeline.run_sources(plan, context)
        if result.error is not None:
            return [], result.error
        scores = dict(zip(result.found.keys.tolist(), result.found.scores.tolist(), strict=True))
        name = "semantic" if source == "vector" else source
        best: dict[str, Candidate] = {}
        for row, unit in catalogue.units(scores).items():
            one = Candidate(unit, round(scores[row], SCORE_DIGITS), name)
            if unit.key not in best or one.score > best[unit.key].score:
                best[unit.key] = one
        return sorted(best.values(), key=lambda one: (-one.score, one.unit.key)), None

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
            units = StoreCatalogue(snapshot, caller.tenant, self._files).with_keys(keys)
        texts = {unit.key: unit.text for unit in units}

        def is_visible(key: str) -> bool:
            # The audience that the plan was made for has seen the entities that were removed since.
            return key in texts or (same_audience and full_id(caller.tenant, key) not in existing)

        shown = restrict_plan(plan, is_visible)
        return replace(
            shown,
            entries=tuple(
                replace(entry, preview=texts[entry.key][:PREVIEW_CHARACTERS])
                if content_hash(texts.get(entry.key, "")) == entry.content
                else entry
                for entry in shown.entries
            ),
        )

    def _log(self, plan: HydrationPlan) -> None:
        for warning in plan.warnings:
            if warning.code == "estimated_tokens":
                if self._estimate_reported:
                    continue
                self._estimate_reported = True
            log.warning("%s: %s", warning.code, warning.message)
        event = {
            "event": "plan",
            "turn": plan.turn,
            "entries": len(plan.entries),
            "dropped": len(plan.dropped),
            "tokens": plan.tokens,
            "max_tokens": plan.max_tokens,
        }
        log.info(json.dumps(event), extra={"sennit": event})


def _structural_warning(reason: str) -> PlanWarning:
    return PlanWarning(
        "structural_only", f"STRUCTURAL ONLY: the plan has anchors and no semantic candidates: {reason}"
    )
