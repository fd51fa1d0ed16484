"""Facts that a new fact may end."""

from __future__ import annotations

from collections.abc import Iterable

from sennit.errors import NotFound
from sennit.facts import Fact
from sennit.graph.names import name_hash
from sennit.records import Record, full_id
from sennit.stores.contract import Transaction


def find_superseded(transaction: Transaction, facts: Iterable[Fact], *, same_relation: bool) -> list[Record]:
    """The records of facts that new facts may end: those they supersede, and with `same_relation` also every
    current fact about the same subjects."""
    found: dict[str, Record] = {}
    for fact in facts:
        stored = transaction.get(full_id(fact.tenant, name) for name in fact.supersedes)
        for record_id in fact.supersedes:
            if full_id(fact.tenant, record_id) not in stored:
                raise NotFound(f"There is no fact {record_id!r} to supersede")
        found |= stored
        name = name_hash(fact.subject) if same_relation else None
        if name is not None:
            found |= {record.full_id: record for record in transaction.current_facts(name)}
    return list(found.values())
