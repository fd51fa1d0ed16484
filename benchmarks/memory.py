"""What an assistant remembers of nine written conversations: python -m benchmarks.memory

Each conversation in `memory_data` has 60 turns over months, with small talk and things that changed. Its turns and the
facts that offline extraction finds in them are searched with the recipe `memory` on the day after the last turn. The
report has the share of questions whose answer is the first result, and is among the first three; the share that
`found.fits` says something answers; and the share that `ask` without a language model answers. An answer is a text that
the result contains, the day it was said (`date:2026-11-15`), or any fact (`fact:`). The conversation does not answer
questions of the kind `none`: they are right if nothing fits, and if `ask` says so.

The conversations were written in three rounds, each before anything was changed for it. The first round was `nadia`,
`tom` and `lena`, of which `lena` and every second question about recent and changed things were set aside at first; the
second was `omar` and `dana`; the third `ivo` and `mira`, whose misses were looked at, and `petra` and `yusuf`, which
were only counted. docs/design/memory-ranking.md has the figures of the first looks.
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
from sennit.context.extractive_answer import NOTHING_FITS
from sennit.facts import is_fact
from sennit.ingest.conversation import read_conversation
from sennit.results import Hit

DATA: Final = Path(__file__).parent / "memory_data"
SET_ASIDE_CONVERSATIONS: Final = ("lena", "omar", "dana", "petra", "yusuf")
LATER_CONVERSATIONS: Final = ("omar", "dana", "ivo", "mira", "petra", "yusuf")
"""Those whose questions about recent and changed things are set aside, or not, with the conversation."""
ONLY_COUNTED: Final = ("petra", "yusuf")
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
    fits: bool
    reply: str
    """What `ask` says."""
    is_answered: bool
    """Whether `ask` gives an answer that is right."""


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
                reply = db.ask(question["question"], recipe="memory", now=now).text
                later = name in LATER_CONVERSATIONS or question["kind"] == "recall"
                yield Outcome(
                    name,
                    question["kind"],
                    question["question"],
                    name in SET_ASIDE_CONVERSATIONS if later else at % 2 == 1,
                    min(ranks, default=None),
                    found[0].text if found else "",
                    found.fits,
                    reply,
                    _says(reply, question, [hit for hit in found if hit.text.strip() in reply]),
                )


def _says(reply: str, question: dict[str, Any], quoted: list[Hit]) -> bool:
    """Whether a reply holds an answer, or says rightly that there is none."""
    if reply.startswith(NOTHING_FITS) or question["kind"] == "none":
        return reply.startswith(NOTHING_FITS) and question["kind"] == "none"
    return any(answer in reply for answer in question["answer"]) or any(
        is_answer(hit, question["answer"]) for hit in quoted
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--no-facts", action="store_true", help="search the turns alone")
    parser.add_argument(
        "--misses", action="store_true", help="print what came first instead, but not of what is only counted"
    )
    options = parser.parse_args()
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    outcomes = list(ask([json.loads(line) for line in lines], facts=not options.no_facts))
    changed = [one for one in outcomes if one.kind in ("current", "recent")]
    groups = {
        f"{name}, recall": [one for one in outcomes if one.conversation == name and one.kind == "recall"]
        for name in dict.fromkeys(one.conversation for one in outcomes)
    }
    groups |= {kind: [one for one in changed if one.kind == kind] for kind in ("current", "recent")}
    for label, names in (
        ("first round", ("nadia", "tom", "lena")),
        ("second round", ("omar", "dana")),
        ("third round, looked at", ("ivo", "mira")),
        ("third round, only counted", ONLY_COUNTED),
    ):
        groups[f"changed and recent, {label}"] = [one for one in changed if one.conversation in names]
        groups[f"without an answer, {label}"] = [
            one for one in outcomes if one.conversation in names and one.kind == "none"
        ]
    print("| | questions | first | first three | fits | ask is right |\n|---|---:|---:|---:|---:|---:|")
    for label, members in groups.items():
        if members:
            counts = (
                len(members),
                sum(one.rank == 1 for one in members),
                sum(one.rank is not None for one in members),
                sum(one.fits for one in members),
                sum(one.is_answered for one in members),
            )
            print(f"| {label} | {' | '.join(map(str, counts))} |")
    if options.misses:
        for one in outcomes:
            if one.conversation in ONLY_COUNTED:
                continue
            wrong = one.fits if one.kind == "none" else one.rank != 1 or not one.fits
            if wrong or not one.is_answered:
                held = " (set aside)" if one.set_aside else ""
                print(
                    f"{one.conversation}: {one.question} -> rank {one.rank}, fits {one.fits}{held}:\n"
                    f"    first: {one.first[:100]}\n    reply: {one.reply[:200]!r}"
                )


if __name__ == "__main__":
    main()
