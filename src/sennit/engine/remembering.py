"""What is written for a caller: memories with their provenance, and facts read out of records."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sennit.errors import InvalidInput, SourceError
from sennit.facts import Fact
from sennit.filters import matches
from sennit.graph.extract import extract
from sennit.llm import LanguageModel
from sennit.llm.facts import facts_by
from sennit.privacy import Caller, Policy
from sennit.records import Json, Record


def memory(
    policy: Policy,
    caller: Caller,
    text: str,
    *,
    collection: str,
    title: str,
    kind: str,
    metadata: Mapping[str, Json] | None,
    sensitivity: str | None,
    scope: str | None,
    source: str,
) -> Record:
    """A text to keep for a caller, who must be able to read it afterwards."""
    record = Record(
        id=f"{collection}-{uuid.uuid4().hex}",
        text=text,
        collection=collection,
        title=title,
        kind=kind,
        timestamp=datetime.now(UTC),
        sensitivity=sensitivity or policy.levels[0],
        scope=scope or ("me" if "me" in caller.scopes else policy.everyone[0]),
        tenant=caller.tenant,
        metadata={
            **(metadata or {}),
            "source": source,
            **({"remembered_by": caller.name} if caller.name else {}),
        },
    )
    if not matches(policy.audience(caller), record):
        raise InvalidInput(
            f"You could not read what you write: sensitivity {record.sensitivity!r} and scope "
            f"{record.scope!r} are not yours. Choose others, or ask with another clearance."
        )
    return record


@dataclass(frozen=True, slots=True)
class Extracted:
    """Facts that were read out of records, by whom, and what went wrong on the way."""

    facts: tuple[Fact, ...]
    by: str
    problems: tuple[str, ...] = ()
    """Of a language model; the records were then read without it."""


def facts_of(records: Iterable[Record], model: LanguageModel | None, timeout: float) -> Extracted:
    """The facts of some records: by the model, and where there is none or it fails, by what is stated outright."""
    found: dict[str, Fact] = {}
    problems: list[str] = []
    for record in records:
        try:
            facts = extract(record) if model is None else facts_by(model, record, timeout=timeout)
        except SourceError as error:
            problems.append(f"{record.id}: {error}")
            facts = extract(record)
        found.update((fact.id, fact) for fact in facts)
    return Extracted(tuple(found.values()), "offline" if model is None else model.name, tuple(problems))
