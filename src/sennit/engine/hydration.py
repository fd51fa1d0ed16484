"""Plans of code: what the store finds, given to the pure functions that decide, and kept with the episode."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypedDict, Unpack

from sennit.engine.catalogue import CODE, StoreCatalogue
from sennit.engine.planning import checked_query
from sennit.errors import InvalidInput, NotFound
from sennit.filters import EVERYTHING, Filter
from sennit.hydration import (
    Anchor,
    Budget,
    Candidate,
    HydrationPlan,
    Introspection,
    Notice,
    Switches,
    changes,
    find_anchors,
    make_plan,
    tokenizer,
)
from sennit.hydration.replaying import limited
from sennit.hydration.values import PREVIEW, content_hash
from sennit.pipeline import Pipeline, Plan
from sennit.privacy import Caller
from sennit.ranking.fusion import Weighted
from sennit.recipes import Recipe, SourceUse
from sennit.records import MAX_ID_BYTES, full_id, is_unicode
from sennit.settings import Settings
from sennit.sources.base import Question
from sennit.stores.contract import BM25
from sennit.stores.embedded.episodes import Episodes
from sennit.stores.embedded.snapshot import Snapshot
from sennit.stores.embedded.store import EmbeddedStore

log: Final = logging.getLogger("sennit.hydration")

MOST_TOKENS: Final = 10**7
MOST_ENTITIES: Final = 10_000

LEAST_CANDIDATES: Final = 50
"""Candidates that are looked at, at least: those that do not come into the plan are named as dropped."""

IN_THIS_PROCESS: Final = ("static", "onnx")
"""Providers that `local` stands for."""

EXACT: Final = 6
"""Digits of a score that decide; further ones differ between machines."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a plan is wanted for."""

    query: str
    episode: str
    budget: Budget


class Asking(TypedDict, total=False):
    """What a plan may be told besides its question."""

    episode: str | None
    """Plans of one episode build on each other, and can be looked at later."""
    max_tokens: int | None
    max_entities: int | None
    allow_partial: bool
    """An entity that does not fit is taken in as its signature and the lines that matter."""


class Hydration:
    """Makes plans and looks at old ones."""

    def __init__(
        self, store: EmbeddedStore, settings: Settings, pipeline: Pipeline, question: Callable[..., Question]
    ) -> None:
        self._store = store
        self._settings = settings.hydration
        self._search = settings.search
        keyword = settings.keyword
        self._bm25 = BM25(keyword.k1, keyword.b, keyword.text_weight, keyword.title_weight)
        self._pipeline = pipeline
        self._question = question
        self._episodes = Episodes(store.database)
        self._estimated = False

    def plan(self, query: str, caller: Caller, audience: Filter, **asking: Unpack[Asking]) -> HydrationPlan:
        """The plan for a question; within an episode it is kept as the next turn."""
        asked = self._asked(query, asking)
        turns = self._episodes.turns(caller.tenant, asked.episode) if asked.episode else []
        turn = (turns[-1] if turns else 0) + 1 if asked.episode else 0
        plan = self._made(asked, turn, caller, audience)
        if asked.episode:
            kept = replace(plan, entries=tuple(replace(entry, preview="") for entry in plan.entries))
            turn = self._episodes.keep(
                caller.tenant,
                asked.episode,
                lambda turn: replace(kept, turn=turn).to_json(text=False),
                plan.keys,
                str(audience),
            )
            plan = replace(plan, turn=turn)
        self._log(plan)
        return plan

    def introspect(
        self, episode: str, turn: int | None, caller: Caller, audience: Filter, *, replay: bool = False
    ) -> Introspection:
        """What was planned in a turn of an episode, the last one when none is named, as far as the caller sees it."""
        turns = self._episodes.turns(caller.tenant, _episode(episode))
        if not turns:
            raise NotFound(f"There is no episode {episode!r}")
        wanted = turns[-1] if turn is None else turn
        kept = self._episodes.plan(caller.tenant, episode, wanted) if type(wanted) is int else None
        if kept is None:
            raise NotFound(
                f"Episode {episode!r} has no turn {wanted!r}; its turns: {turns[0]} to {turns[-1]}"
            )
        plan = HydrationPlan.from_dict(json.loads(kept.plan))
        plan = self._seen(plan, caller, audience, own=kept.audience == str(audience))
        changed = None
        if replay:
            asked = Asked(plan.query, episode, Budget(plan.max_tokens, plan.max_entities, plan.allow_partial))
            changed = changes(plan, self._made(asked, wanted, caller, audience))
        return Introspection(plan, tuple(turns), changed)

    def _asked(self, query: str, asking: Asking) -> Asked:
        """What is asked, checked; a budget that is not named is that of the settings."""
        checked_query(query)
        settings = self._settings
        tokens, entities = asking.get("max_tokens"), asking.get("max_entities")
        budget = Budget(
            _whole("max_tokens", tokens, settings.semantic_budget_tokens, MOST_TOKENS),
            _whole("max_entities", entities, settings.semantic_budget_entities, MOST_ENTITIES),
            asking.get("allow_partial", False),
        )
        episode = asking.get("episode")
        return Asked(query, "" if episode is None else _episode(episode), budget)

    def _made(self, asked: Asked, turn: int, caller: Caller, audience: Filter) -> HydrationPlan:
        settings = self._settings
        tokens = tokenizer()
        previous: Sequence[str] = ()
        if asked.episode and settings.enable_previous_hydration_anchors:
            previous = self._episodes.hydrated(caller.tenant, asked.episode, turn)
        switches = Switches(
            settings.enable_file_mention_anchors,
            settings.enable_symbol_mention_anchors,
            settings.enable_previous_hydration_anchors,
        )
        with self._store.snapshot(audience) as snapshot:
            catalogue = StoreCatalogue(snapshot, caller.tenant, self._store.database)
            anchors = find_anchors(asked.query, catalogue, previous, switches)
            candidates, notices = self._candidates(asked, anchors, catalogue, audience)
        if tokens.estimates:
            advice = "token counts are estimates; install the extra 'tokens' for exact ones"
            notices.append(Notice("estimated_tokens", advice))
        return make_plan(
            asked.query,
            anchors,
            candidates,
            asked.budget,
            tokens,
            notices,
            episode=asked.episode,
            turn=turn,
        )

    def _candidates(
        self, asked: Asked, anchors: Sequence[Anchor], catalogue: StoreCatalogue, audience: Filter
    ) -> tuple[list[Candidate], list[Notice]]:
        """What is near the question, by meaning or else by words, and what has to be said about that."""
        settings, snapshot = self._settings, catalogue.snapshot
        if not settings.enable_semantic_ranking or not asked.query.strip():
            return [], []
        refused = self._refused(snapshot)
        if refused:
            return [], [_structural(refused)]
        question = self._question(asked.query, snapshot, audience, None)
        known = {anchor.unit.key for anchor in anchors}
        most = max(asked.budget.max_entities, LEAST_CANDIDATES)
        found, error = self._ask("vector", most + len(known), question, catalogue)
        if error is not None:
            return [], [_structural(error)]
        near = [one for one in found if one.score > settings.semantic_threshold and one.unit.key not in known]
        if near:
            return near[:most], []
        highest = max((one.score for one in found if one.unit.key not in known), default=None)
        best = "" if highest is None else f" (the nearest has {highest:.2f})"
        words, _ = self._ask("keyword", most + len(known), question, catalogue)
        by_words = [one for one in words if one.unit.key not in known][:most]
        message = (
            f"no candidate is above the threshold of {settings.semantic_threshold:g}{best}; "
            f"by keyword instead: {len(by_words)}"
        )
        return by_words, [Notice("below_threshold", message)]

    def _ask(
        self, source: str, most: int, question: Question, catalogue: StoreCatalogue
    ) -> tuple[list[Candidate], str | None]:
        """The entities that a source finds, the best first, each once; or why it does not answer."""
        use = SourceUse(source=source, collections=(CODE,))
        recipe = Recipe(name="hydration", sources=(use,), fusion=Weighted({source: 1.0}, "none"))
        plan = Plan(recipe, (use,), most, EVERYTHING, self._bm25, self._search.deadline, explain=False)
        (answer,) = self._pipeline.ask_all(plan, question)
        if answer.error is not None:
            return [], answer.error
        scores = dict(zip(answer.found.keys.tolist(), answer.found.scores.tolist(), strict=True))
        name = "semantic" if source == "vector" else source
        best: dict[str, Candidate] = {}
        for row, unit in catalogue.units(scores).items():
            one = Candidate(unit, round(scores[row], EXACT), name)
            if unit.key not in best or one.score > best[unit.key].score:
                best[unit.key] = one
        return sorted(best.values(), key=lambda one: (-one.score, one.unit.key)), None

    def _refused(self, snapshot: Snapshot) -> str | None:
        """Why the settings do not let meaning be asked, if so."""
        provider, model = self._settings.embedding_provider, self._settings.embedding_model
        if provider == "none":
            return "hydration.embedding_provider is 'none'"
        if snapshot.model is None or not (provider or model):
            return None
        own, _, name = snapshot.model.name.partition("/")
        fits = own in IN_THIS_PROCESS if provider == "local" else provider in ("", own)
        if fits and model in ("", name):
            return None
        wanted = "/".join(part for part in (provider, model) if part)
        return (
            f"[hydration] asks for {wanted}, and the vectors here are by {snapshot.model.name}; "
            "[embedding] says which model a database has"
        )

    def _seen(self, plan: HydrationPlan, caller: Caller, audience: Filter, *, own: bool) -> HydrationPlan:
        """The plan as this caller may see it today, with what its entities begin with if they are as they were."""
        keys = list(dict.fromkeys((*plan.keys, *(one.key for one in plan.dropped))))
        there = self._store.get(full_id(caller.tenant, key) for key in keys)
        with self._store.snapshot(audience) as snapshot:
            units = StoreCatalogue(snapshot, caller.tenant, self._store.database).with_keys(keys)
        texts = {unit.key: unit.text for unit in units}

        def sees(key: str) -> bool:
            # What is gone is known to whom it was shown.
            return key in texts or (own and full_id(caller.tenant, key) not in there)

        shown = limited(plan, sees)
        return replace(
            shown,
            entries=tuple(
                replace(entry, preview=texts[entry.key][:PREVIEW])
                if content_hash(texts.get(entry.key, "")) == entry.content
                else entry
                for entry in shown.entries
            ),
        )

    def _log(self, plan: HydrationPlan) -> None:
        for notice in plan.warnings:
            if notice.code == "estimated_tokens":
                if self._estimated:
                    continue
                self._estimated = True
            log.warning("%s: %s", notice.code, notice.message)
        event = {
            "event": "plan",
            "turn": plan.turn,
            "entries": len(plan.entries),
            "dropped": len(plan.dropped),
            "tokens": plan.tokens,
            "max_tokens": plan.max_tokens,
        }
        log.info(json.dumps(event), extra={"sennit": event})


def _structural(reason: str) -> Notice:
    return Notice(
        "structural_only", f"STRUCTURAL ONLY: meaning is not asked, anchors are all there is: {reason}"
    )


def _whole(name: str, value: int | None, default: int, most: int) -> int:
    if value is None:
        return default
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidInput(f"{name} must be a whole number from 1 to {most:,}, not {value!r}")
    return value


def _episode(value: str) -> str:
    if not isinstance(value, str) or not value or not is_unicode(value) or len(value.encode()) > MAX_ID_BYTES:
        raise InvalidInput(f"An episode is named by a text of 1 to {MAX_ID_BYTES} bytes, not {value!r:.80}")
    return value
