"""Make memories with their provenance, and extract facts from records."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sennit.errors import SourceError
from sennit.facts import Fact, FactEnding
from sennit.graph.extraction import read_conversations
from sennit.llm import LanguageModel
from sennit.llm.fact_extraction import extract_facts_with_model
from sennit.privacy import Caller, Policy
from sennit.records import Json, Record


def make_memory(
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
    timestamp: datetime | None,
) -> Record:
    """Return a record for a text to remember; without a time, it is of now."""
    return Record(
        id=f"{collection}-{uuid.uuid4().hex}",
        text=text,
        collection=collection,
        title=title,
        kind=kind,
        timestamp=timestamp or datetime.now(UTC),
        sensitivity=sensitivity or policy.levels[0],
        scope=scope or ("me" if "me" in caller.scopes else policy.public_scopes[0]),
        tenant=caller.tenant,
        metadata={
            **(metadata or {}),
            "source": source,
            **({"remembered_by": caller.name} if caller.name else {}),
        },
    )


@dataclass(frozen=True, slots=True)
class ExtractedFacts:
    """Facts extracted from records, and what went wrong."""

    facts: tuple[Fact, ...]
    by: str
    """The language model, or `offline`."""
    problems: tuple[str, ...] = ()
    """Failures of the language model; those records were then read without it."""
    endings: tuple[FactEnding, ...] = ()
    """What the texts say is over."""


def extract_facts(records: Iterable[Record], model: LanguageModel | None, timeout: float) -> ExtractedFacts:
    """Extract facts with the model; without one, or when it fails, take what the texts state outright."""
    problems: list[str] = []
    by_model: list[Fact] = []
    unread: list[Record] = []
    for record in records:
        if model is None:
            unread.append(record)
            continue
        try:
            by_model += extract_facts_with_model(model, record, timeout=timeout)
        except SourceError as error:
            problems.append(f"{record.id}: {error}")
            unread.append(record)
    stated = read_conversations(unread)
    facts_by_id = {fact.id: fact for fact in (*by_model, *stated.facts)}
    return ExtractedFacts(
        tuple(facts_by_id.values()),
        "offline" if model is None else model.name,
        tuple(problems),
        tuple(stated.endings),
    )
