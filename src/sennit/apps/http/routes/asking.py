"""Answers in words, whole or in parts."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from fastapi import APIRouter, Response

from sennit.apps.http import forms, shapes
from sennit.apps.http.answers import ask_answer, dumped
from sennit.apps.http.bodies import JSON, StrictRoute
from sennit.apps.http.streams import EVENTS, Tell, streamed
from sennit.apps.http.visits import Reader
from sennit.engine.asking import AskOptions

router: Final = APIRouter(tags=["search"], route_class=StrictRoute, responses=shapes.PROBLEMS)

_EVENT: Final = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["text", "answer", "error"]},
        "data": {"type": "string", "contentMediaType": JSON},
    },
    "required": ["event", "data"],
}
_ANSWER: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": shapes.AskAnswer,
        "content": {EVENTS: {"itemSchema": _EVENT}},
        "description": "The answer; with `stream`, events: `text` with the next words, last `answer` with what is "
        "answered without `stream`, or `error` with the error.",
    }
}


@router.post("/v1/ask", summary="Ask", responses=_ANSWER)
async def ask(asked: forms.Ask, visit: Reader) -> Response:
    """An answer in words from what is found, each statement with where it is from.

    The language model of the service's settings writes it, and every citation is checked. Without one, and when it
    does not answer, the answer is put together from sentences that were found.
    """
    options = AskOptions(
        recipe=asked.recipe,
        limit=asked.limit,
        filters=asked.filters,
        editor=asked.editor,
        language=asked.language,
        transform=asked.transform,
        write=asked.write,
        caller=visit.caller,
    )
    waits = visit.db.settings.llm.provider != "none"

    def whole() -> bytes:
        answer = visit.db.ask(asked.query, **options)
        visit.answered(answer)
        return dumped(ask_answer(answer, visit.db, prompt=not asked.write))

    def in_parts(tell: Tell) -> None:
        with closing(visit.db.ask_stream(asked.query, **options)) as stream:
            for part in stream:
                if part:
                    tell("text", dumped({"text": part}))
            visit.answered(stream.answer)
            tell("answer", dumped(ask_answer(stream.answer, visit.db, prompt=not asked.write)))

    if asked.stream:
        return await streamed(visit, in_parts, waits=waits)
    return Response(await visit.run(whole, waits=waits), media_type=JSON)
