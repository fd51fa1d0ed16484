"""Generated answers, complete or streamed."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from fastapi import APIRouter, Response

from sennit.apps.http import requests, responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.request_context import ReadRequest
from sennit.apps.http.serializers import encode_json, serialize_answer
from sennit.apps.http.streams import EVENT_STREAM_TYPE, SendEvent, stream_events
from sennit.engine.answer_service import AskOptions

router: Final = APIRouter(tags=["search"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)

_EVENT_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["text", "answer", "error"]},
        "data": {"type": "string", "contentMediaType": JSON_TYPE},
    },
    "required": ["event", "data"],
}
_ASK_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": responses.AskResponse,
        "content": {EVENT_STREAM_TYPE: {"itemSchema": _EVENT_SCHEMA}},
        "description": "The answer. With `stream`, events: `text` with the next words, and at the end `answer` with "
        "the complete response or `error` with the error.",
    }
}


@router.post("/v1/ask", summary="Ask", responses=_ASK_RESPONSES)
async def ask(body: requests.AskBody, context: ReadRequest) -> Response:
    """Answer a question in words, and cite the source of each statement.

    The language model of the service's settings writes the answer, and the service checks every citation. Without a
    model, or if it fails, the answer consists of sentences that were found.
    """
    options = AskOptions(
        recipe=body.recipe,
        limit=body.limit,
        filters=body.filters,
        project=body.project,
        editor=body.editor,
        language=body.language,
        transform=body.transform,
        write=body.write,
        caller=context.caller,
    )
    io_bound = context.db.settings.llm.provider != "none"

    def complete() -> bytes:
        answer = context.db.ask(body.query, **options)
        context.record_answer(answer)
        return encode_json(serialize_answer(answer, context.db, prompt=not body.write))

    def stream(send_event: SendEvent) -> None:
        with closing(context.db.ask_stream(body.query, **options)) as parts:
            for part in parts:
                if part:
                    send_event("text", encode_json({"text": part}))
            context.record_answer(parts.answer)
            send_event(
                "answer", encode_json(serialize_answer(parts.answer, context.db, prompt=not body.write))
            )

    if body.stream:
        return await stream_events(context, stream, io_bound=io_bound)
    return Response(await context.run(complete, io_bound=io_bound), media_type=JSON_TYPE)
