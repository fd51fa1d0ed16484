"""Facts that a new fact may end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sennit.errors import NotFound
from sennit.facts import Fact, FactEnding
from sennit.graph.names import name_hash
from sennit.records import Record, full_id
from sennit.stores.contract import Transaction


def find_superseded(
    transaction: Transaction,
    facts: Iterable[Fact],
    *,
    same_relation: bool,
    endings: Sequence[FactEnding] = (),
) -> list[Record]:
    """The records of facts that may end: those that new facts supersede, every current fact about the subjects of
    `endings`, and with `same_relation` about those of the new facts too."""
    found: dict[str, Record] = {}
    subjects = {one.subject for one in endings}
    for fact in facts:
        stored = transaction.get(full_id(fact.tenant, name) for name in fact.supersedes)
        for record_id in fact.supersedes:
            if full_id(fact.tenant, record_id) not in stored:
                raise NotFound(f"There is no fact {record_id!r} to supersede")
        found |= stored
        if same_relation:
            subjects.add(fact.subject)
    for subject in sorted(subjects):
        name = name_hash(subject)
        if name is not None:
            found |= {record.full_id: record for record in transaction.current_facts(name)}
    return list(found.values())
