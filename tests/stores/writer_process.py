"""A process that writes at random until it is killed, and says what it has confirmed.

Each line is `begin` or `done` with the same JSON: what it is about to write, then that it is confirmed.
"""

from __future__ import annotations

import json
import random
import sys

import sennit

from .helpers import numbered


def main(folder: str, seed: str, first: str, fold_at: str, present: str) -> None:
    chance = random.Random(seed)
    number = int(first)
    names: list[str] = json.loads(present)
    db = sennit.open(folder, store__fold_at=int(fold_at))
    while True:
        put: dict[str, int] = {}
        out: list[str] = []
        kind = chance.random()
        if kind < 0.65 or not names:
            for _ in range(chance.choice([1, 1, 2, 9])):
                number += 1
                put[f"r{chance.randrange(60)}"] = number
        else:
            out = chance.sample(names, min(len(names), chance.choice([1, 3])))
        step = json.dumps({"put": put, "out": out})
        print("begin", step, flush=True)
        if put:
            db.add(numbered(name, value) for name, value in put.items())
        else:
            db.remove(out)
        names = [name for name in dict.fromkeys([*names, *put]) if name not in out]
        print("done", step, flush=True)
        if chance.random() < 0.1:
            db.optimise()


if __name__ == "__main__":
    main(*sys.argv[1:])
