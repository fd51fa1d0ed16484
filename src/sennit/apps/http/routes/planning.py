"""Plans of code for a prompt, and looking back at them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response

from sennit.apps.http import forms, shapes
from sennit.apps.http.answers import dumped
from sennit.apps.http.bodies import JSON, StrictRoute
from sennit.apps.http.door import Visit
from sennit.apps.http.errors import Refused, without_places
from sennit.apps.http.visits import Reader
from sennit.hydration import rendered
from sennit.records import MAX_ID_BYTES

router: Final = APIRouter(tags=["search"], route_class=StrictRoute, responses=shapes.PROBLEMS)

_FORBIDDEN: Final = {"model": shapes.Error, "description": "forbidden"}


@router.post(
    "/v1/plan",
    summary="Plan code for a prompt",
    responses={200: {"model": shapes.PlanAnswer}, 403: _FORBIDDEN},
)
async def plan(asked: forms.Plan, visit: Reader) -> Response:
    """Which entities of code belong into a prompt: those that the question names, then those that are near.

    Within an episode, what earlier turns took in comes along, and the plan is kept.
    """
    if asked.episode is not None and not visit.admitted.write:
        raise Refused(403, "This token may only read; a plan within an episode is kept, which is writing.")

    def work() -> bytes:
        made = visit.db.plan(
            asked.query,
            episode=asked.episode,
            max_tokens=asked.max_tokens,
            max_entities=asked.max_entities,
            allow_partial=asked.allow_partial,
            caller=visit.caller,
        )
        return dumped(_told(made.to_dict(), visit) | {"prompt": rendered(made)})

    return Response(await visit.run(work), media_type=JSON)


@router.get(
    "/introspect/hydration/{episode_id:path}",
    summary="What was planned in an episode",
    responses={200: {"model": shapes.IntrospectionAnswer}},
)
async def introspect(
    visit: Reader,
    episode_id: Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES)],
    turn: Annotated[int | None, Query(ge=1, le=forms.LARGEST, description="Left out: the last.")] = None,
    replay: Annotated[
        bool, Query(description="Compare it with what the question would bring today.")
    ] = False,
) -> Response:
    """Each entity with its reason, priority, tokens, place and beginning, and what was dropped with the reason."""

    def work() -> bytes:
        found = visit.db.introspect(episode_id, turn, caller=visit.caller, replay=replay)
        return dumped(_told(found.to_dict(), visit))

    return Response(await visit.run(work), media_type=JSON)


def _told(values: dict[str, Any], visit: Visit) -> dict[str, Any]:
    """Values whose warnings do not say where the server keeps or fetches things."""
    own = None if visit.db.path is None else str(visit.db.path)
    values["warnings"] = [
        # Those about an entity name it by its key, as the rest of the answer does.
        one if one["key"] else {**one, "message": without_places(one["message"], own)}
        for one in values["warnings"]
    ]
    return values
