"""One of several processes on one database: writes, and checks at once that it sees what it wrote."""

from __future__ import annotations

import json
import random
import sys
import time

import sennit

from .helpers import COMMON, by_keyword, ids, is_nearest, numbered


def main(folder: str, who: str, seconds: str) -> None:
    me, chance = int(who), random.Random(who)
    own: dict[str, int] = {}
    number, rounds = me * 1_000_000, 0
    end = time.monotonic() + float(seconds)
    with sennit.open(folder, store__fold_at=16) as db:
        while time.monotonic() < end:
            rounds += 1
            batch: dict[str, int] = {}
            for _ in range(chance.choice([1, 1, 5])):
                number += 1
                batch[f"p{me}-{chance.randrange(30)}"] = number
            db.add(numbered(name, value) for name, value in batch.items())
            before, own = own, {**own, **batch}
            name, value = chance.choice(list(batch.items()))
            record = numbered(name, value)
            assert db.get(name) == record
            assert by_keyword(db, record.text.split()[0]) == [name]
            assert is_nearest(db, record)
            if name in before and before[name] != value:
                assert by_keyword(db, numbered(name, before[name]).text.split()[0]) == []
            if chance.random() < 0.3:
                out = chance.choice(list(own))
                last = numbered(out, own.pop(out))
                assert db.remove([out]) == 1
                assert db.get(out) is None
                assert by_keyword(db, last.text.split()[0]) == []
            result = db.search(COMMON, limit=1000)
            assert not result.degraded, result.degraded
            assert {hit for hit in ids(result) if hit.startswith(f"p{me}-")} == own.keys()
        assert not db.store.notices, db.store.notices
    print(json.dumps({"own": own, "rounds": rounds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
