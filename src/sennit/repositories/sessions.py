"""The positions of turns in their sessions."""

from __future__ import annotations

from collections.abc import Sequence

from sennit.records import full_id, split_id
from sennit.stores.contract import Transaction
from sennit.turns import Turn


def read_positions(
    transaction: Transaction, turns: Sequence[Turn]
) -> tuple[dict[str, int | None], dict[tuple[str, str], int]]:
    """The positions of the turns that are stored, by full id, and the next free position by tenant and session."""
    known: dict[str, int | None] = {
        record_id: record.position
        for record_id, record in transaction.get(full_id(turn.tenant, turn.id) for turn in turns).items()
    }
    return known, {
        (tenant, session): _next_position(transaction, tenant, session)
        for tenant, session in {(turn.tenant, turn.session) for turn in turns}
    }


def _next_position(transaction: Transaction, tenant: str, session: str) -> int:
    found = transaction.positions(session)
    return next((position for record_id, position in found if split_id(record_id)[0] == tenant), -1) + 1
