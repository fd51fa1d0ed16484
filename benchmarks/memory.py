"""What an assistant remembers of five written conversations: python -m benchmarks.memory

Each conversation in `memory_data` has 60 turns over months, with small talk and things that changed. Its turns and the
facts that offline extraction finds in them are searched with the recipe `memory` on the day after the last turn. The
report has the share of questions whose answer is the first result, and is among the first three. An answer is a text
that the result contains, the day it was said (`date:2026-11-15`), or any fact (`fact:`).

The conversation `lena` and every second question about recent and changed things were set aside at first, later the
conversations `omar` and `dana`. Their misses were then seen, and some were repaired, so no part of this is a clean
hold-out any more; docs/design/memory-ranking.md has the figures of the first look.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import sennit
from sennit.facts import is_fact
from sennit.ingest.conversation import read_conversation
from sennit.results import Hit

DATA: Final = Path(__file__).parent / "memory_data"
SET_ASIDE_CONVERSATIONS: Final = ("lena", "omar", "dana")
LATER_CONVERSATIONS: Final = ("omar", "dana")
"""Set aside with all of their questions."""
DEPTH: Final = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question, whether it was set aside, and the rank of its answer; None if it is not among the first three."""

    conversation: str
    kind: str
    question: str
    set_aside: bool
    rank: int | None
    first: str


def is_answer(hit: Hit, answers: list[str]) -> bool:
    """Whether a result answers a question."""
    day = "" if hit.record.timestamp is None else hit.record.timestamp.date().isoformat()
    return any(
        (answer == "fact:" and is_fact(hit.record)) or answer == f"date:{day}" or answer in hit.text
        for answer in answers
    )


def ask(questions: list[dict[str, Any]], *, facts: bool = True) -> Iterator[Outcome]:
    """Ask every question of its conversation."""
    for name in dict.fromkeys(question["conversation"] for question in questions):
        turns = list(read_conversation((DATA / f"{name}.txt").read_text(encoding="utf-8"), name))
        now = max(turn.timestamp for turn in turns if turn.timestamp) + timedelta(days=1)
        with sennit.open(":memory:") as db:
            db.add_turns(turns)
            if facts:
                db.memory.extract_facts([turn.to_record() for turn in turns])
            for at, question in enumerate(questions):
                if question["conversation"] != name:
                    continue
                found = db.search(question["question"], recipe="memory", now=now)
                ranks = [hit.rank for hit in found[:DEPTH] if is_answer(hit, question["answer"])]
                recall = question["kind"] == "recall"
                set_aside = (
                    name in SET_ASIDE_CONVERSATIONS if recall else name in LATER_CONVERSATIONS or at % 2 == 1
                )
                yield Outcome(
                    name,
                    question["kind"],
                    question["question"],
                    set_aside,
                    min(ranks, default=None),
                    found[0].text if found else "",
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--no-facts", action="store_true", help="search the turns alone")
    parser.add_argument("--misses", action="store_true", help="print what came first instead of the answer")
    options = parser.parse_args()
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    outcomes = list(ask([json.loads(line) for line in lines], facts=not options.no_facts))
    groups = {
        f"{name}, recall": [one for one in outcomes if one.conversation == name and one.kind == "recall"]
        for name in dict.fromkeys(one.conversation for one in outcomes)
    }
    changed = [one for one in outcomes if one.kind != "recall"]
    groups |= {kind: [one for one in changed if one.kind == kind] for kind in ("current", "recent")}
    groups["current and recent"] = changed
    groups["current and recent, tuned"] = [one for one in changed if not one.set_aside]
    groups["current and recent, set aside"] = [one for one in changed if one.set_aside]
    for label, members in groups.items():
        first = sum(one.rank == 1 for one in members)
        within = sum(one.rank is not None for one in members)
        print(f"{label:30} {len(members):3} questions   first {first:3}   first three {within:3}")
    if options.misses:
        for one in outcomes:
            if one.rank != 1:
                held = " (set aside)" if one.set_aside else ""
                print(f"{one.conversation}: {one.question} -> rank {one.rank}{held}: {one.first[:80]}")


if __name__ == "__main__":
    main()
