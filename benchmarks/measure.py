"""The measurements that run in one process: search effort, recall, interleaved queries, writes."""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import GROUPS, SEED, Corpus, embedder
from benchmarks.peers.base import LIMIT, Found, Passage, Peer
from sennit.embedding import Embedder

FILTERS: Final[tuple[int | None, ...]] = (None, 1, 10, 50)
"""Nothing filtered, and filters that let 1, 10 and 50 % of the passages pass."""

RECALL: Final = 0.98
TIES: Final = 1e-5
"""Passages this close to the tenth count as it: neither order is wrong."""

SLOW_MS: Final = 40.0
"""A kind of query slower than this is asked only some of the questions; the run should end today."""

SLOW_STEP: Final = 6

WRITER_RATE: Final = 100
"""Records a second, one at a time."""

NO_VECTOR: Final = np.empty(0, np.float32)

Search = Callable[[str, int | None], list[Found]]
Stats = dict[str, float]


def key_of(below: int | None) -> str:
    """A filter's name in results."""
    return "all" if below is None else f"{below}%"


class Truth:
    """Exact search, to compare with."""

    def __init__(self, corpus: Corpus, questions: Sequence[str]) -> None:
        model = embedder()
        asked = np.stack([model.embed_query(question) for question in questions])
        self._scores: NDArray[np.float32] = asked @ np.asarray(corpus.vectors).T
        self._at = {question: at for at, question in enumerate(questions)}
        groups = np.arange(len(corpus.texts)) % GROUPS
        self._least = {
            below: np.array([_tenth(row if below is None else row[groups < below]) for row in self._scores])
            for below in FILTERS
        }

    def recall(self, question: str, below: int | None, found: Sequence[int]) -> float:
        """The share of the nearest ten among the first ten found."""
        at = self._at[question]
        if len(set(found)) != len(found):
            raise ValueError("a passage was found twice")
        if below is not None and any(number % GROUPS >= below for number in found):
            raise ValueError("a passage was found that the filter excludes")
        least = self._least[below][at]
        good = self._scores[at, list(found[:LIMIT])] >= least - TIES
        return int(np.count_nonzero(good)) / LIMIT


def _tenth(scores: NDArray[np.float32]) -> float:
    if len(scores) < LIMIT:
        return -2.0
    return float(np.partition(scores, len(scores) - LIMIT)[len(scores) - LIMIT])


def recall_of(peer: Peer, truth: Truth, questions: Sequence[str], below: int | None) -> float:
    """Mean dense recall@10."""
    return float(np.mean([truth.recall(text, below, peer.dense(text, below)[:LIMIT]) for text in questions]))


def choose_efforts(peer: Peer, corpus: Corpus, truth: Truth) -> tuple[dict[str, int], Stats]:
    """For each filter the cheapest search effort that reaches RECALL, or the greatest where none does; and the
    recall it reaches. Chosen on the questions of the run itself, so that the recall is matched on these."""
    chosen: dict[str, int] = {}
    reached: Stats = {}
    for below in FILTERS:
        peer.dense(corpus.trials[1], below)  # the first one may have to read files
        began = time.perf_counter()
        peer.dense(corpus.trials[0], below)
        slow = (time.perf_counter() - began) * 1000 > SLOW_MS
        asked = corpus.queries[:: 6 if slow else 2]
        for effort in peer.efforts or (0,):
            if effort:
                peer.set_effort(below, effort)
                chosen[key_of(below)] = effort
            reached[key_of(below)] = recall_of(peer, truth, asked, below)
            if reached[key_of(below)] >= RECALL:
                break
    return chosen, reached


@dataclass(frozen=True)
class Case:
    """One kind of query of one system."""

    peer: str
    name: str
    search: Search
    below: int | None


def cases_of(peers: Mapping[str, Peer]) -> list[Case]:
    """Everything that is timed in the interleaved run."""
    cases = [
        Case(name, key_of(below), peer.search, below) for name, peer in peers.items() for below in FILTERS
    ]
    for extra, method in (("default", "search_default"), ("explained", "search_explained")):
        for name, peer in peers.items():
            if hasattr(peer, method):
                cases.append(Case(name, extra, getattr(peer, method), None))
    return cases


def varied(question: str, number: int) -> str:
    """The same question as another string, so that no system answers from a cache of questions."""
    return question + " " * number


def interleaved(
    cases: Sequence[Case], questions: Sequence[str], trials: Sequence[str]
) -> dict[str, dict[str, Stats]]:
    """Each question goes to every case before the next, in an order shuffled anew, so noise hits all alike."""
    rng = random.Random(SEED + 2)
    slow: set[tuple[str, str]] = set()
    for case in cases:
        times = []
        for question in trials[:10]:
            began = time.perf_counter()
            case.search(question, case.below)
            times.append((time.perf_counter() - began) * 1000)
        if np.median(times) > SLOW_MS:
            slow.add((case.peer, case.name))
    taken: dict[tuple[str, str], list[float]] = {(case.peer, case.name): [] for case in cases}
    counts: dict[tuple[str, str], list[int]] = {(case.peer, case.name): [] for case in cases}
    numbers = {(case.peer, case.name): at for at, case in enumerate(cases)}
    for turn, question in enumerate(questions):
        order = [case for case in cases if (case.peer, case.name) not in slow or turn % SLOW_STEP == 0]
        rng.shuffle(order)
        for case in order:
            mark = (case.peer, case.name)
            asked = varied(question, numbers[mark] + 1)
            began = time.perf_counter()
            found = case.search(asked, case.below)
            taken[mark].append((time.perf_counter() - began) * 1000)
            counts[mark].append(len(found))
    out: dict[str, dict[str, Stats]] = {}
    for mark, times in taken.items():
        out.setdefault(mark[0], {})[mark[1]] = {**spread(times), "results": float(np.mean(counts[mark]))}
    return out


def alone(cases: Iterable[Case], corpus: Corpus, limit_s: float = 3.0) -> dict[str, Stats]:
    """Each kind of query of one system, one question after the other: what a program with only this one sees."""
    out: dict[str, Stats] = {}
    for number, case in enumerate(cases, 100):
        for question in corpus.trials[:20]:
            case.search(question, case.below)
        times: list[float] = []
        end = time.perf_counter() + limit_s
        for question in corpus.queries:
            asked = varied(question, number)
            began = time.perf_counter()
            case.search(asked, case.below)
            times.append((time.perf_counter() - began) * 1000)
            if time.perf_counter() > end:
                break
        out[case.name] = spread(times)
    return out


def settle_down() -> None:
    """Leave what is loaded by now out of Python's garbage collection: it belongs to this harness, and walking
    through it in the middle of a query would be charged to whoever is asked then."""
    gc.collect()
    gc.freeze()


def spread(times: Sequence[float]) -> Stats:
    """Milliseconds in two numbers, and of how many."""
    return {
        "p50_ms": float(np.percentile(times, 50)),
        "p99_ms": float(np.percentile(times, 99)),
        "count": float(len(times)),
    }


def writes(peer: Peer, corpus: Corpus, folder: Path, adds: int = 50, removes: int = 20) -> dict[str, Any]:
    """Single adds and removals, each durable and followed by a search that must see it.

    Before each add the disk is asked what one durable write costs at this moment."""
    model = embedder()
    first = len(corpus.texts)
    texts = _distinct(corpus, adds)
    added: list[float] = []
    synced: list[float] = []
    after: list[float] = []
    seen = unseen = 0
    for number, text in enumerate(texts, first):
        synced.append(_synced(folder))
        began = time.perf_counter()
        peer.add(_passage(peer, number, text, model))
        added.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        peer.search(varied(corpus.queries[len(after) % len(corpus.queries)], 250), None)
        after.append((time.perf_counter() - began) * 1000)
        seen += number in [hit.number for hit in peer.search(text, None)]
    removed: list[float] = []
    for number, text in enumerate(texts[:removes], first):
        began = time.perf_counter()
        peer.remove(number)
        removed.append((time.perf_counter() - began) * 1000)
        unseen += number not in [hit.number for hit in peer.search(text, None)]
    return {
        "sync": spread(synced),
        "add": spread(added),
        "add_seen": seen / len(added),
        "search_after_add": spread(after),
        "remove": spread(removed),
        "remove_seen": unseen / len(removed),
    }


def _passage(peer: Peer, number: int, text: str, model: Embedder) -> Passage:
    """Embedding is part of every add: here, or inside."""
    return Passage(number, text, NO_VECTOR if peer.embeds else model.embed_query(text))


def _synced(folder: Path) -> float:
    """Milliseconds until 8 KB at the end of a file are on the disk."""
    with (folder / "sync").open("ab", buffering=0) as file:
        file.write(bytes(8192))
        began = time.perf_counter()
        os.fsync(file.fileno())
        return (time.perf_counter() - began) * 1000


def _distinct(corpus: Corpus, count: int) -> list[str]:
    """Texts that no passage is a near copy of, so that a search for one must find it."""
    tried = corpus.fresh[: 3 * count]
    nearest = (embedder().embed_documents(tried) @ np.asarray(corpus.vectors).T).max(axis=1)
    return [text for text, score in zip(tried, nearest, strict=True) if score < 0.9][:count]


def beside_writer(peer: Peer, corpus: Corpus, seconds: float) -> dict[str, float]:
    """Searches while another thread adds records at a steady rate, against the same searches without it."""
    questions = corpus.queries
    idle = _searches(peer, questions, seconds / 2, 201)
    stop = threading.Event()
    wrote = 0

    def write() -> None:
        nonlocal wrote
        model = embedder()
        began = time.perf_counter()
        while not stop.is_set():
            text = f"{corpus.fresh[wrote % len(corpus.fresh)]} {wrote}"
            peer.add(_passage(peer, len(corpus.texts) + 1000 + wrote, text, model))
            wrote += 1
            stop.wait(max(0.0, began + wrote / WRITER_RATE - time.perf_counter()))

    writer = threading.Thread(target=write)
    began = time.perf_counter()
    writer.start()
    try:
        busy = _searches(peer, questions, seconds, 202)
    finally:
        stop.set()
        writer.join()
    reached = wrote / (time.perf_counter() - began)
    before, during = float(np.median(idle)), float(np.median(busy))
    return {"idle_p50_ms": before, "busy_p50_ms": during, "ratio": during / before, "records_per_s": reached}


def _searches(peer: Peer, questions: Sequence[str], seconds: float, variant: int) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    turn = 0
    while time.perf_counter() < end:
        asked = varied(questions[turn % len(questions)], variant + 10 * (turn // len(questions)))
        began = time.perf_counter()
        peer.search(asked, None)
        times.append((time.perf_counter() - began) * 1000)
        turn += 1
    return times
