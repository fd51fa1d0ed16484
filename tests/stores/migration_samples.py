"""A database with something of everything, for the tests of migrations, and what two of them must have in common."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sennit
from sennit.stores.open import copy_store
from sennit.stores.sql import migration

HOSTILE = (
    "'; DROP TABLE records; --",
    "nul \0 inside",
    "\u202egnirts desrever",
    "emoji 👩‍👩‍👧 and 𝕬𝖓𝖘𝖎",
    "{{7*7}} ${jndi:ldap://x} %s %00",
    "back\\slash \" quote ' tick `",
    "\n\r\t",
)


class Killed(BaseException):
    """Stands for the end of the process."""


def fill(db: sennit.Database) -> None:
    """Records, facts, a session, a token, hostile strings, removed and replaced records."""
    db.add(
        [
            sennit.Record(
                id=f"r{n}",
                text=f"the river rose by {n} metres",
                title=f"Note {n}",
                timestamp=datetime(2026, 1, 1, 0, n % 60, tzinfo=UTC),
                metadata={"n": n, "share": n / 7, "tags": ["a", "b"]},
                parent="doc",
                position=n,
            )
            for n in range(120)
        ]
    )
    db.add(
        [
            sennit.Record(id=f"h{n}{text!r}", text=text, title=text, metadata={"text": text})
            for n, text in enumerate(HOSTILE)
        ]
    )
    db.remove(["r3", "r4"])
    db.add([sennit.Record(id="r5", text="replaced", sensitivity="private")])
    db.memory.add_turns([sennit.Turn(text="Maria moved to Lisbon.", session="s1", speaker="Ben")])
    db.memory.add_facts([sennit.Fact(subject="Maria", relation="lives_in", object="Lisbon")])
    db.admin.tokens.issue("reader", sennit.Caller())


def contents(db: sennit.Database) -> dict[str, Any]:
    """What a user can see of a database."""
    found = db.search("river metres", limit=20, caller=sennit.OWNER)
    return {
        "records": [record.to_json() for record in db.store.iter_records()],
        "tokens": [token.name for token in db.admin.tokens.all()],
        "models": [(model.name, model.fingerprint, model.state) for model in db.store.models.current()],
        "pending": db.admin.pending_vectors(),
        "answer": [(hit.id, round(hit.score, 9)) for hit in found],
        "sessions": [(one.name, one.records) for one in db.memory.sessions(caller=sennit.OWNER)],
        "facts": [hit.id for hit in db.search("where does Maria live", recipe="memory", caller=sennit.OWNER)],
    }


def kill_and_go_on(source: Any, target: Any, monkeypatch: Any) -> list[Any]:
    """Stop a copy after some batches, then run it again."""
    monkeypatch.setattr(migration, "BATCH_ROWS", 10)
    seen = []

    def stop(table: str, done: int, _total: int) -> None:
        seen.append(table)
        if table == "records" and done >= 50:
            raise Killed

    try:
        copy_store(source, target, stop)
    except Killed:
        return copy_store(source, target)
    raise AssertionError(f"it was not stopped: {seen}")
