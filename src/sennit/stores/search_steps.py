"""Runs searches that need servers: what several of them need at the same time goes to a server in one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sennit.errors import SourceError
from sennit.stores.contract import IndexServer, ServerAnswer, ServerSearch, Steps

T = TypeVar("T")


def run_steps(steps: Steps[T]) -> T:
    """Run a search to its end."""
    try:
        searches = next(steps)
        while True:
            searches = steps.send(_answer(searches))
    except StopIteration as end:
        result: T = end.value
        return result


def together(running: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Several searches as one: each round holds what all of them need next."""
    results: dict[int, T] = {}
    waiting: dict[int, Sequence[ServerSearch]] = {}

    def advance(at: int, answers: Sequence[ServerAnswer] | None) -> None:
        try:
            waiting[at] = next(running[at]) if answers is None else running[at].send(answers)
        except StopIteration as end:
            results[at] = end.value

    for at in range(len(running)):
        advance(at, None)
    while waiting:
        asked, waiting = waiting, {}
        answers = yield [search for searches in asked.values() for search in searches]
        start = 0
        for at, searches in asked.items():
            advance(at, answers[start : start + len(searches)])
            start += len(searches)
    return [results[at] for at in range(len(running))]


def _answer(searches: Sequence[ServerSearch]) -> list[ServerAnswer]:
    """Ask each server once for all that is to be found on it."""
    by_server: dict[int, tuple[IndexServer, list[int]]] = {}
    for at, search in enumerate(searches):
        server = search.index.server
        by_server.setdefault(id(server), (server, []))[1].append(at)
    answers: list[ServerAnswer] = [SourceError("it was not asked")] * len(searches)
    for server, places in by_server.values():
        for at, answer in zip(places, _ask(server, [searches[at] for at in places]), strict=True):
            answers[at] = answer
    return answers


def _ask(server: IndexServer, searches: Sequence[ServerSearch]) -> Sequence[ServerAnswer]:
    try:
        answers = server.search_many(searches)
    except SourceError as error:
        return [error] * len(searches)
    except Exception as error:  # noqa: BLE001 - a server's failure is reported, and other servers still answer
        return [SourceError(f"{type(error).__name__}: {error}")] * len(searches)
    if len(answers) != len(searches):
        return [SourceError(f"{len(answers)} answers to {len(searches)} searches")] * len(searches)
    return answers
