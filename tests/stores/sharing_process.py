"""One of several processes that share a database: writes, and verifies that it sees its own writes at once."""

from __future__ import annotations

import json
import random
import sys
import time

import sennit

from .helpers import COMMON_WORD, ids, is_nearest, search_keyword, versioned_record


def main(folder: str, process: str, seconds: str) -> None:
    me, rng = int(process), random.Random(process)
    own: dict[str, int] = {}
    number, rounds = me * 1_000_000, 0
    end = time.monotonic() + float(seconds)
    with sennit.open(folder, store__flush_at=16) as db:
        while time.monotonic() < end:
            rounds += 1
            batch: dict[str, int] = {}
            for _ in range(rng.choice([1, 1, 5])):
                number += 1
                batch[f"p{me}-{rng.randrange(30)}"] = number
            db.add(versioned_record(name, value) for name, value in batch.items())
            before, own = own, {**own, **batch}
            name, value = rng.choice(list(batch.items()))
            record = versioned_record(name, value)
            assert db.get(name) == record
            assert search_keyword(db, record.text.split()[0]) == [name]
            assert is_nearest(db, record)
            if name in before and before[name] != value:
                assert search_keyword(db, versioned_record(name, before[name]).text.split()[0]) == []
            if rng.random() < 0.3:
                removed = rng.choice(list(own))
                last = versioned_record(removed, own.pop(removed))
                assert db.remove([removed]) == 1
                assert db.get(removed) is None
                assert search_keyword(db, last.text.split()[0]) == []
            result = db.search(COMMON_WORD, limit=1000)
            assert not result.degraded, result.degraded
            assert {hit for hit in ids(result) if hit.startswith(f"p{me}-")} == own.keys()
        assert not db.store.notices, db.store.notices
    print(json.dumps({"own": own, "rounds": rounds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
