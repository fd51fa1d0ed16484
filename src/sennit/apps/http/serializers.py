"""Converts the engine's values to JSON, without paths and addresses of the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from sennit.apps.excerpts import make_excerpt, split_spans
from sennit.apps.http.errors import redact_locations
from sennit.context.briefing import MAX_BLOCK_CHARACTERS, join_bullets
from sennit.context.status import status_message
from sennit.facts import is_fact
from sennit.filters import filter_to_dict, parse_filter
from sennit.records import Json, Record
from sennit.results import cite_record

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.engine.answers import Answer
    from sennit.engine.groups import MemoryContext
    from sennit.results import Degraded, Hit, SearchResult, Why

EXCERPT_CHARACTERS: Final = 320
"""Characters of the sentences in an excerpt."""

DEFAULT_FIELDS: Final[Mapping[str, Json]] = {
    field.name: {} if field.name == "metadata" else field.default  # type: ignore[misc]
    for field in fields(Record)
    if field.default is not MISSING or field.name == "metadata"
    if field.name in ("title", "collection", "kind", "timestamp", "sensitivity", "scope", "metadata")
}
"""Fields that a hit always has. Record.to_dict leaves out fields with their default value."""


def encode_json(values: Mapping[str, Any]) -> bytes:
    """Encode as UTF-8 JSON. NaN and infinity become null."""
    return to_json(values, inf_nan_mode="null")


def serialize_search(result: SearchResult, db: Database, *, excerpts: bool = False) -> dict[str, Any]:
    """The response to a search."""
    values: dict[str, Any] = result.to_dict()
    values["hits"] = [_record(hit) for hit in values["hits"]]
    if excerpts:
        for hit, found in zip(values["hits"], result, strict=True):
            hit["excerpt"] = _excerpt(found, result.query)
    if result.pages:
        values["pages"] = [_page(page) for page in values["pages"]]
    values["degraded"] = serialize_degraded(result.degraded, db)
    values["status"] = status_message(result)
    if result.trace is not None:
        # As tools take it, which cannot parse the text.
        values["trace"]["filters"] = filter_to_dict(parse_filter(result.trace.filter or None))
    for source in values.get("trace", {}).get("sources", ()):
        if source["error"] is not None:
            source["error"] = redact_locations(source["error"], _database_path(db))
    return values


def serialize_answer(answer: Answer, db: Database, *, prompt: bool) -> dict[str, Any]:
    """The response to a question, with the system prompt if `prompt` is set."""
    values: dict[str, Any] = answer.to_dict()
    values["pages"] = [_page(page) for page in values["pages"]]
    values["examples"] = [_record(hit) for hit in values["examples"]]
    for example in values["examples"]:
        example.pop("explanation", None)  # the request has no `explain`
    values["degraded"] = serialize_degraded(answer.degraded, db)
    if values["transform"].get("error"):
        values["transform"]["error"] = redact_locations(values["transform"]["error"], _database_path(db))
    return values | {"prompt": answer.prompt} if prompt else values


def serialize_context(found: MemoryContext, db: Database) -> dict[str, Any]:
    """The response of the context route: a search result in the fields of a memory, and the block."""
    result, bullets = found.result, found.bullets
    return {
        "query_id": result.query_id,
        "query": result.query,
        "recipe": result.recipe,
        "milliseconds": result.milliseconds,
        "fits": result.fits,
        "results": [
            _context_item(hit)
            | {"characters": len(bullet.text), "shortened": bullet.is_shortened, "in_block": bullet.fits}
            for hit, bullet in zip(result, bullets, strict=True)
        ],
        "block": join_bullets(bullets),
        "max_characters": MAX_BLOCK_CHARACTERS,
        "degraded": serialize_degraded(result.degraded, db),
        **({"hints": [hint.to_dict() for hint in result.hints]} if result.hints else {}),
    }


def serialize_record(record: Record) -> dict[str, Any]:
    """A record with its citation."""
    return _record({"citation": cite_record(record), **record.to_dict()})


def serialize_why(why: Why, db: Database) -> dict[str, Any]:
    """The explanation why a record is in a result or not."""
    values: dict[str, Any] = why.to_dict() | {"degraded": serialize_degraded(why.degraded, db)}
    # The reason of a source may quote an error. Other reasons name records, whose ids may look like paths.
    if why.stage.startswith("source:"):
        values["reason"] = redact_locations(why.reason, _database_path(db))
    return values


def serialize_degraded(degraded: Iterable[Degraded], db: Database) -> list[dict[str, str]]:
    """The sources that failed, and why."""
    path = _database_path(db)
    return [
        {"source": failure.source, "reason": redact_locations(failure.reason, path)} for failure in degraded
    ]


def _database_path(db: Database) -> str | None:
    return None if db.path is None else str(db.path)


def _excerpt(hit: Hit, query: str) -> list[dict[str, Any]]:
    return [
        {
            "number": line.number,
            "verbatim": line.is_verbatim,
            "parts": [{"text": text, "match": match} for text, match in split_spans(line.text, line.spans)],
        }
        for line in make_excerpt(hit.record, hit.passage, query, EXCERPT_CHARACTERS)
    ]


def _page(given: Mapping[str, Any]) -> dict[str, Any]:
    return {**given, "chunks": [_record(chunk) for chunk in given["chunks"]]}


def _record(given: Mapping[str, Any]) -> dict[str, Any]:
    values = {**DEFAULT_FIELDS, **given}
    values.pop("tenant", None)  # always the caller's own, and not a field that a client can send
    return values


def _context_item(hit: Hit) -> dict[str, Any]:
    record = hit.record
    metadata = record.metadata
    from_fact = is_fact(record)
    # A fact that is among the results is valid now, whenever it began.
    when = datetime.now(UTC) if from_fact else record.timestamp
    entities = [metadata["subject"], metadata["object"]] if from_fact else metadata.get("entities")
    return {
        "id": record.id,
        "text": record.text,
        "source_session": _text(metadata.get("session")),
        "timestamp": when.isoformat() if when else None,
        "relevance": hit.relevance,
        "relevance_score": hit.score,
        "entities": [name for name in entities if isinstance(name, str)]
        if isinstance(entities, list)
        else [],
        "speaker": None if from_fact else _text(metadata.get("speaker")),
        "kind": record.kind,
        "citation": hit.citation,
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
