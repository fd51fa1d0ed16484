"""A process that makes random writes until it is killed, and prints which of them were committed.

Before a write it prints `begin` with the write as JSON, and after the commit `done` with the same JSON.
"""

from __future__ import annotations

import json
import random
import sys

import sennit

from .helpers import versioned_record


def main(folder: str, seed: str, first: str, flush_at: str, existing: str) -> None:
    rng = random.Random(seed)
    number = int(first)
    names: list[str] = json.loads(existing)
    db = sennit.open(folder, store__flush_at=int(flush_at))
    while True:
        added: dict[str, int] = {}
        removed: list[str] = []
        kind = rng.random()
        if kind < 0.65 or not names:
            for _ in range(rng.choice([1, 1, 2, 9])):
                number += 1
                added[f"r{rng.randrange(60)}"] = number
        else:
            removed = rng.sample(names, min(len(names), rng.choice([1, 3])))
        step = json.dumps({"added": added, "removed": removed})
        print("begin", step, flush=True)
        if added:
            db.add(versioned_record(name, value) for name, value in added.items())
        else:
            db.remove(removed)
        names = [name for name in dict.fromkeys([*names, *added]) if name not in removed]
        print("done", step, flush=True)
        if rng.random() < 0.1:
            db.admin.optimise()


if __name__ == "__main__":
    main(*sys.argv[1:])
