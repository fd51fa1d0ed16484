"""Measurements within one process: search effort, recall, interleaved queries, and writes."""

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

from benchmarks.corpus import GROUP_COUNT, SEED, Corpus, make_embedder
from benchmarks.peers.base import LIMIT, Passage, PassageHit, Peer
from sennit.embedding import Embedder

FILTERS: Final[tuple[int | None, ...]] = (None, 1, 10, 50)
"""No filter, and filters that 1, 10 and 50 % of the passages pass."""

TARGET_RECALL: Final = 0.98
TIE_TOLERANCE: Final = 1e-5
"""A passage whose score is this close to the tenth best counts as one of the ten."""

SLOW_MS: Final = 40.0
"""A case slower than this runs only every sixth query, to keep the run short."""

SLOW_QUERY_STEP: Final = 6

WRITES_PER_SECOND: Final = 100
"""The rate of the background writer, one record at a time."""

NO_VECTOR: Final = np.empty(0, np.float32)

Search = Callable[[str, int | None], list[PassageHit]]
Stats = dict[str, float]


def filter_key(group_limit: int | None) -> str:
    """The name of a filter in the results."""
    return "all" if group_limit is None else f"{group_limit}%"


class ExactSearch:
    """Brute-force vector search, the ground truth for recall."""

    def __init__(self, corpus: Corpus, queries: Sequence[str]) -> None:
        model = make_embedder()
        query_vectors = np.stack([model.embed_query(query) for query in queries])
        self._scores: NDArray[np.float32] = query_vectors @ np.asarray(corpus.vectors).T
        self._rows = {query: row for row, query in enumerate(queries)}
        groups = np.arange(len(corpus.texts)) % GROUP_COUNT
        self._tenth_scores = {
            group_limit: np.array(
                [
                    _tenth_best(row if group_limit is None else row[groups < group_limit])
                    for row in self._scores
                ]
            )
            for group_limit in FILTERS
        }

    def recall(self, query: str, group_limit: int | None, found: Sequence[int]) -> float:
        """The fraction of the ten nearest passages among the first ten found."""
        row = self._rows[query]
        if len(set(found)) != len(found):
            raise ValueError("a passage was found twice")
        if group_limit is not None and any(number % GROUP_COUNT >= group_limit for number in found):
            raise ValueError("a passage was found that the filter excludes")
        tenth_score = self._tenth_scores[group_limit][row]
        close_enough = self._scores[row, list(found[:LIMIT])] >= tenth_score - TIE_TOLERANCE
        return int(np.count_nonzero(close_enough)) / LIMIT


def _tenth_best(scores: NDArray[np.float32]) -> float:
    if len(scores) < LIMIT:
        return -2.0
    return float(np.partition(scores, len(scores) - LIMIT)[len(scores) - LIMIT])


def mean_recall(peer: Peer, exact: ExactSearch, queries: Sequence[str], group_limit: int | None) -> float:
    """The mean vector recall@10."""
    return float(
        np.mean([exact.recall(text, group_limit, peer.dense(text, group_limit)[:LIMIT]) for text in queries])
    )


def choose_search_efforts(peer: Peer, corpus: Corpus, exact: ExactSearch) -> tuple[dict[str, int], Stats]:
    """For each filter, the lowest search effort that reaches the target recall, and that recall.

    If none reaches it, the highest effort. The effort is chosen on the queries of the run itself, so that all systems
    are compared at the same recall.
    """
    chosen: dict[str, int] = {}
    reached: Stats = {}
    for group_limit in FILTERS:
        peer.dense(corpus.trial_queries[1], group_limit)  # the first search may read files
        started = time.perf_counter()
        peer.dense(corpus.trial_queries[0], group_limit)
        slow = (time.perf_counter() - started) * 1000 > SLOW_MS
        sample = corpus.queries[:: 6 if slow else 2]
        for effort in peer.efforts or (0,):
            if effort:
                peer.set_effort(group_limit, effort)
                chosen[filter_key(group_limit)] = effort
            reached[filter_key(group_limit)] = mean_recall(peer, exact, sample, group_limit)
            if reached[filter_key(group_limit)] >= TARGET_RECALL:
                break
    return chosen, reached


@dataclass(frozen=True)
class Case:
    """One kind of query on one system."""

    peer: str
    name: str
    search: Search
    group_limit: int | None


def build_cases(peers: Mapping[str, Peer]) -> list[Case]:
    """All cases of the interleaved run."""
    cases = [
        Case(name, filter_key(group_limit), peer.search, group_limit)
        for name, peer in peers.items()
        for group_limit in FILTERS
    ]
    for extra, method in (("default", "search_default"), ("explained", "search_explained")):
        for name, peer in peers.items():
            if hasattr(peer, method):
                cases.append(Case(name, extra, getattr(peer, method), None))
    return cases


def vary_query(query: str, number: int) -> str:
    """The same query as a different string, so that no system answers from a query cache."""
    return query + " " * number


def time_interleaved(
    cases: Sequence[Case], queries: Sequence[str], trial_queries: Sequence[str]
) -> dict[str, dict[str, Stats]]:
    """Run each query in every case before the next query, in random order, so that noise affects all cases alike."""
    rng = random.Random(SEED + 2)
    slow: set[tuple[str, str]] = set()
    for case in cases:
        times = []
        for query in trial_queries[:10]:
            started = time.perf_counter()
            case.search(query, case.group_limit)
            times.append((time.perf_counter() - started) * 1000)
        if np.median(times) > SLOW_MS:
            slow.add((case.peer, case.name))
    times_by_case: dict[tuple[str, str], list[float]] = {(case.peer, case.name): [] for case in cases}
    counts: dict[tuple[str, str], list[int]] = {(case.peer, case.name): [] for case in cases}
    numbers = {(case.peer, case.name): at for at, case in enumerate(cases)}
    for turn, query in enumerate(queries):
        order = [case for case in cases if (case.peer, case.name) not in slow or turn % SLOW_QUERY_STEP == 0]
        rng.shuffle(order)
        for case in order:
            key = (case.peer, case.name)
            text = vary_query(query, numbers[key] + 1)
            started = time.perf_counter()
            found = case.search(text, case.group_limit)
            times_by_case[key].append((time.perf_counter() - started) * 1000)
            counts[key].append(len(found))
    out: dict[str, dict[str, Stats]] = {}
    for key, times in times_by_case.items():
        out.setdefault(key[0], {})[key[1]] = {**percentiles(times), "results": float(np.mean(counts[key]))}
    return out


def time_alone(cases: Iterable[Case], corpus: Corpus, limit_s: float = 3.0) -> dict[str, Stats]:
    """Run each case of one system by itself, as in a program that uses only this system."""
    out: dict[str, Stats] = {}
    for number, case in enumerate(cases, 100):
        for query in corpus.trial_queries[:20]:
            case.search(query, case.group_limit)
        times: list[float] = []
        end = time.perf_counter() + limit_s
        for query in corpus.queries:
            text = vary_query(query, number)
            started = time.perf_counter()
            case.search(text, case.group_limit)
            times.append((time.perf_counter() - started) * 1000)
            if time.perf_counter() > end:
                break
        out[case.name] = percentiles(times)
    return out


def freeze_garbage_collection() -> None:
    """Exclude existing objects from garbage collection.

    They belong to the benchmark, and a collection in the middle of a query would be counted as the query's time.
    """
    gc.collect()
    gc.freeze()


def percentiles(times: Sequence[float]) -> Stats:
    """The percentiles of some times in milliseconds."""
    return {
        "p50_ms": float(np.percentile(times, 50)),
        "p99_ms": float(np.percentile(times, 99)),
        "count": float(len(times)),
    }


def time_writes(
    peer: Peer, corpus: Corpus, folder: Path, adds: int = 50, removes: int = 20
) -> dict[str, Any]:
    """Time single durable adds and removals. After each, a search checks that it is visible.

    Before each add, a bare fsync is timed, because the speed of the disk varies.
    """
    model = make_embedder()
    first = len(corpus.texts)
    texts = _distinct_texts(corpus, adds)
    add_times: list[float] = []
    fsync_times: list[float] = []
    after: list[float] = []
    seen = unseen = 0
    for number, text in enumerate(texts, first):
        fsync_times.append(_time_fsync(folder))
        started = time.perf_counter()
        peer.add(_passage(peer, number, text, model))
        add_times.append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        peer.search(vary_query(corpus.queries[len(after) % len(corpus.queries)], 250), None)
        after.append((time.perf_counter() - started) * 1000)
        seen += number in [hit.number for hit in peer.search(text, None)]
    remove_times: list[float] = []
    for number, text in enumerate(texts[:removes], first):
        started = time.perf_counter()
        peer.remove(number)
        remove_times.append((time.perf_counter() - started) * 1000)
        unseen += number not in [hit.number for hit in peer.search(text, None)]
    return {
        "sync": percentiles(fsync_times),
        "add": percentiles(add_times),
        "add_seen": seen / len(add_times),
        "search_after_add": percentiles(after),
        "remove": percentiles(remove_times),
        "remove_seen": unseen / len(remove_times),
    }


def _passage(peer: Peer, number: int, text: str, model: Embedder) -> Passage:
    """A passage to add. Embedding counts as part of the add: here, or inside the system."""
    return Passage(number, text, NO_VECTOR if peer.embeds_documents else model.embed_query(text))


def _time_fsync(folder: Path) -> float:
    """Milliseconds to append 8 KB to a file and sync it to disk."""
    with (folder / "sync").open("ab", buffering=0) as file:
        file.write(bytes(8192))
        started = time.perf_counter()
        os.fsync(file.fileno())
        return (time.perf_counter() - started) * 1000


def _distinct_texts(corpus: Corpus, count: int) -> list[str]:
    """New texts without a near duplicate in the corpus, so that a search for one must find it."""
    candidates = corpus.new_texts[: 3 * count]
    nearest = (make_embedder().embed_documents(candidates) @ np.asarray(corpus.vectors).T).max(axis=1)
    return [text for text, score in zip(candidates, nearest, strict=True) if score < 0.9][:count]


def time_with_writer(peer: Peer, corpus: Corpus, seconds: float) -> dict[str, float]:
    """Compare searches during writes of another thread, at a steady rate, with the same searches without writes."""
    queries = corpus.queries
    idle = _time_searches(peer, queries, seconds / 2, 201)
    stop = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        model = make_embedder()
        started = time.perf_counter()
        while not stop.is_set():
            text = f"{corpus.new_texts[written % len(corpus.new_texts)]} {written}"
            peer.add(_passage(peer, len(corpus.texts) + 1000 + written, text, model))
            written += 1
            stop.wait(max(0.0, started + written / WRITES_PER_SECOND - time.perf_counter()))

    writer = threading.Thread(target=write)
    started = time.perf_counter()
    writer.start()
    try:
        busy = _time_searches(peer, queries, seconds, 202)
    finally:
        stop.set()
        writer.join()
    write_rate = written / (time.perf_counter() - started)
    before, during = float(np.median(idle)), float(np.median(busy))
    return {
        "idle_p50_ms": before,
        "busy_p50_ms": during,
        "ratio": during / before,
        "records_per_s": write_rate,
    }


def _time_searches(peer: Peer, queries: Sequence[str], seconds: float, variant: int) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    turn = 0
    while time.perf_counter() < end:
        text = vary_query(queries[turn % len(queries)], variant + 10 * (turn // len(queries)))
        started = time.perf_counter()
        peer.search(text, None)
        times.append((time.perf_counter() - started) * 1000)
        turn += 1
    return times
