"""The engine's values as JSON that leaves the machine."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Final

from sennit.apps.http.errors import without_places
from sennit.context.status import status
from sennit.facts import is_fact
from sennit.records import Json, Record

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.engine.answering import Answer
    from sennit.results import Degraded, Hit, Page, Result, Why

ALWAYS: Final[Mapping[str, Json]] = {
    field.name: {} if field.name == "metadata" else field.default  # type: ignore[misc]
    for field in fields(Record)
    if field.default is not MISSING or field.name == "metadata"
    if field.name in ("title", "collection", "kind", "timestamp", "sensitivity", "scope", "metadata")
}
"""Fields that a result has even where the record says nothing."""


def dumped(values: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8. A number that JSON does not have is null."""
    try:
        return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(_finite(values), ensure_ascii=False, separators=(",", ":")).encode()


def search_answer(result: Result, db: Database) -> dict[str, Any]:
    """A search's result."""
    values: dict[str, Any] = result.to_dict()
    values["hits"] = [_hit(hit) for hit in result]
    if result.pages:
        values["pages"] = [_page(page) for page in result.pages]
    values["degraded"] = missing(result.degraded, db)
    values["status"] = status(result)
    for source in values.get("trace", {}).get("sources", ()):
        if source["error"] is not None:
            source["error"] = without_places(source["error"], _place(db))
    return values


def ask_answer(answer: Answer, db: Database, *, prompt: bool) -> dict[str, Any]:
    """An answer in words; with its prompt, where that was asked for."""
    values: dict[str, Any] = answer.to_dict()
    values["pages"] = [_page(page) for page in answer.pages]
    values["examples"] = [_hit(hit) for hit in answer.examples]
    for example in values["examples"]:
        example.pop("explanation", None)  # nobody asked for it
    values["degraded"] = missing(answer.degraded, db)
    if values["transform"].get("error"):
        values["transform"]["error"] = without_places(values["transform"]["error"], _place(db))
    return values | {"prompt": answer.prompt} if prompt else values


def context_answer(result: Result, db: Database) -> dict[str, Any]:
    """A search's result as memory."""
    return {
        "query": result.query,
        "recipe": result.recipe,
        "milliseconds": result.milliseconds,
        "results": [_remembered(hit) for hit in result],
        "degraded": missing(result.degraded, db),
    }


def why_answer(why: Why, db: Database) -> dict[str, Any]:
    """Why a record is in an answer or not."""
    values: dict[str, Any] = why.to_dict() | {"degraded": missing(why.degraded, db)}
    if why.stage.startswith(
        "source:"
    ):  # then the reason may quote a source's error; other reasons name records
        values["reason"] = without_places(why.reason, _place(db))
    return values


def missing(degraded: Iterable[Degraded], db: Database) -> list[dict[str, str]]:
    """Sources that did not answer, and why."""
    own = _place(db)
    return [{"source": one.source, "reason": without_places(one.reason, own)} for one in degraded]


def _place(db: Database) -> str | None:
    return None if db.path is None else str(db.path)


def _hit(hit: Hit) -> dict[str, Any]:
    return _record(hit.to_dict())


def _page(page: Page) -> dict[str, Any]:
    values: dict[str, Any] = page.to_dict()
    values["chunks"] = [_record(chunk) for chunk in values["chunks"]]
    return values


def _record(given: Mapping[str, Any]) -> dict[str, Any]:
    values = {**ALWAYS, **given}
    values.pop("tenant", None)  # the caller's own, and no field that a record is sent with
    return values


def _remembered(hit: Hit) -> dict[str, Any]:
    record = hit.record
    metadata = record.metadata
    known = is_fact(record)
    named = [metadata["subject"], metadata["object"]] if known else metadata.get("entities")
    return {
        "id": record.id,
        "text": record.text,
        "source_session": _text(metadata.get("session")),
        "timestamp": record.timestamp.isoformat() if record.timestamp else None,
        "relevance_score": hit.score,
        "entities": [name for name in named if isinstance(name, str)] if isinstance(named, list) else [],
        "speaker": None if known else _text(metadata.get("speaker")),
        "kind": record.kind,
        "citation": hit.citation,
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value
