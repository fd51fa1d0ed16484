"""An index on a server whose role was moved elsewhere, for the tests of both dialects."""

from __future__ import annotations

import time

import pytest

import sennit
from sennit.errors import ChangesLost
from sennit.stores.buffered_index import IndexFeeder, for_every_model
from sennit.stores.embedded.server_indexes import UNBOUND_SECONDS

from .dict_server import DictServers, DictVectorServer
from .helpers import embedded_store, versioned_record


def check_that_an_unbound_index_is_forgotten(db: sennit.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Feed two indexes, leave one for a week, and expect that only the other holds deletes back."""
    store = embedded_store(db)
    left, kept = DictVectorServer(DictServers()), DictVectorServer(DictServers())
    left.name = "left"
    feeders = [IndexFeeder(store, for_every_model(one, one.capabilities)) for one in (left, kept)]

    db.add([versioned_record(f"r{n}", n) for n in range(4)])
    for feeder in feeders:
        feeder.flush()
    # As an earlier version recorded it: without the time.
    with store.pool.write() as connection:
        connection.execute("DELETE FROM state WHERE key = 'bound left'")
    db.remove(["r0"])
    db.admin.optimise()
    assert store.purge_tombstones(1) == 0, "both indexes lack the delete"
    feeders[1].flush()
    assert store.purge_tombstones(1) == 0, "another process may have the index bound"

    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + UNBOUND_SECONDS + 60)
    # A process that only has the other index bound says so, also without changes.
    for feeder in feeders[1:]:
        feeder._report_at.clear()
        feeder.rest()
    assert store.purge_tombstones(1) == 1
    db.remove(["r1"])
    db.admin.optimise()
    assert store.purge_tombstones(1) == 0, "the index that is bound lacks the delete"

    # Bound again, it notices that it has missed a delete, and is built again.
    with store.snapshot() as snapshot, pytest.raises(ChangesLost):
        snapshot.changes(snapshot.applied(left.name), 10)
    feeders[0].flush(wait=True)
    assert sorted(one.record.id for one in left.documents.values()) == ["r2", "r3"]
