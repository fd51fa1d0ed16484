"""A process that adds turns to one session, or facts that supersede each other, as fast as it can."""

from __future__ import annotations

import sys

import sennit


def main(target: str, kind: str, writer: str, count: int) -> None:
    with sennit.open(target, embedding__provider="none") as db:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(count):
            if kind == "turns":
                db.add_turns([sennit.Turn(session="talk", speaker=writer, text=f"{writer} says {number}")])
            else:
                fact = sennit.Fact(subject="Ana", relation="lives in", object=f"{writer}-{number}")
                db.add_facts([fact], same_relation=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
