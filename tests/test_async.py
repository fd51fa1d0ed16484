"""The asynchronous face: the methods of a database awaited, and cancellation that leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import sennit
from sennit import AsyncDatabase, Database, Record
from sennit.engine import async_database
from sennit.engine.async_database import (
    AsyncAdminGroup,
    AsyncCodeGroup,
    AsyncFilesGroup,
    AsyncMemoryGroup,
    AsyncTokens,
)
from sennit.engine.groups import AdminGroup, CodeGroup, FilesGroup, MemoryGroup
from sennit.errors import InvalidInput, NotFound, StoreClosed
from sennit.repositories.tokens import TokenStore
from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys
from sources.test_custom_sources import RECIPE, CustomSource

SECONDS = 60
"""A generous limit: a test that reaches it hangs."""


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, SECONDS))


def notes(count: int) -> list[Record]:
    return [Record(id=f"n{n:04}", text=f"harbour number {n}") for n in range(count)]


class Gate:
    """A source that waits in its thread until it is released."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()
        self.calls = 0

    def __call__(self, _: SourceRequest) -> ScoredKeys:
        self.calls += 1
        self.entered.set()
        self.release.wait(SECONDS)
        return ScoredKeys.empty()

    async def wait_until_entered(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, SECONDS)


def sources(gate: Gate) -> dict[str, CustomSource]:
    return {"mine": CustomSource(gate, inline=True)}


def own_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("sennit-async")}


# The same methods


def public(kind: type) -> dict[str, Any]:
    """The public members of a class, without its groups, which are attributes of each face."""
    named = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    return {name: value for name, value in named.items() if not isinstance(value, cached_property)}


def test_the_asynchronous_face_has_every_group() -> None:
    groups = [name for name, value in vars(Database).items() if isinstance(value, cached_property)]

    async def main() -> None:
        async with sennit.aopen(":memory:") as db:
            assert all(hasattr(db, name) for name in groups if not name.startswith("_"))

    run(main())


@pytest.mark.parametrize(
    ("sync", "face"),
    [
        (Database, AsyncDatabase),
        (MemoryGroup, AsyncMemoryGroup),
        (FilesGroup, AsyncFilesGroup),
        (CodeGroup, AsyncCodeGroup),
        (AdminGroup, AsyncAdminGroup),
        (TokenStore, AsyncTokens),
    ],
)
def test_the_asynchronous_face_has_every_method_with_its_signature(sync: type, face: type) -> None:
    ours, theirs = public(face), public(sync)
    assert theirs.keys() - {"export", "replays"} <= ours.keys()
    assert ours.keys() - theirs.keys() <= {"settings", "path", "recipes", "caller"}
    for name, method in theirs.items():
        if inspect.isfunction(method) and name not in (
            "audience",
            "close",
            "ask_stream",
            "export",
            "replays",
        ):
            assert inspect.iscoroutinefunction(ours[name])
            assert inspect.signature(ours[name]) == inspect.signature(method)
            assert ours[name].__doc__ == method.__doc__


def test_everything_of_the_readme_works_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "boiler.md").write_text("# Boiler\n\nBleed the boiler in March.\n")
        async with sennit.aopen(tmp_path / "db") as db:
            assert isinstance(db, AsyncDatabase)
            assert (await db.add([{"id": "a", "text": "Prune the vines"}])).ids == ("a",)
            assert [hit.id for hit in await db.search("vines", limit=1)] == ["a"]
            assert [len(one) for one in await db.search_many(["vines", "prune"], limit=1)] == [1, 1]
            assert (await db.why("vines", "a")).kept
            await db.memory.remember("Priya prefers the aisle seat")
            assert "aisle" in (await db.memory.context("Where does Priya sit?")).block
            report = await db.index(tmp_path / "notes", recipe="docs")
            assert report.records >= 1
            assert (await db.files.folders()).roots
            assert "Bleed" in (await db.files.read(str(tmp_path / "notes" / "boiler.md"))).text
            assert (await db.plan("boiler")).prompt == ""
            assert await db.wait(timeout=SECONDS)
            assert await db.admin.pending_vectors() == 0
            assert await db.admin.tokens.all() == []
            assert "boiler" in (await db.ask("when to bleed the boiler?")).text.lower()
            assert await db.count() == await db.count("exists id") >= 3
            assert await db.remove(where="id = 'a'") == 1
            assert await db.get("a") is None
            assert db.path == tmp_path / "db"
            assert repr(db).startswith("<sennit.AsyncDatabase ")

    run(main())


def test_await_opens_and_close_closes(tmp_path: Path) -> None:
    async def main() -> None:
        db = await sennit.aopen(tmp_path / "db")
        await db.add(notes(1))
        await db.close()
        with pytest.raises(StoreClosed, match=r"sennit\.aopen"):
            await db.search("harbour")
        assert not own_threads()

    run(main())


def test_an_error_is_raised_where_it_is_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        async with sennit.aopen(":memory:") as db:
            with pytest.raises(NotFound):
                await db.search("x", recipe="nope")
        (tmp_path / "sennit.db").write_bytes(b"not a database, but long enough to be looked at as one" * 100)
        with pytest.raises(sennit.SennitError):
            async with sennit.aopen(tmp_path):
                pass
        assert not own_threads()

    run(main())


@pytest.mark.parametrize("threads", [0, -1, True, 2.5, 1000])
def test_the_number_of_threads_is_checked(threads: Any) -> None:
    with pytest.raises(InvalidInput, match="threads must be"):
        sennit.aopen(":memory:", threads=threads)


def test_no_more_calls_run_at_once_than_there_are_threads() -> None:
    async def main() -> None:
        gate = Gate()
        async with sennit.aopen(":memory:", threads=2, sources=sources(gate)) as db:
            await db.add(notes(3))
            tasks = [asyncio.create_task(db.search("harbour", recipe=RECIPE)) for _ in range(10)]
            await gate.wait_until_entered()
            assert len(own_threads()) <= 2
            assert gate.calls <= 2
            gate.release.set()
            assert all(len(found) == 3 for found in await asyncio.gather(*tasks))
            assert len(own_threads()) <= 2

    run(main())


def test_context_variables_reach_the_thread() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
    seen: list[str] = []

    def note(_: SourceRequest) -> ScoredKeys:
        seen.append(name.get())
        return ScoredKeys.empty()

    async def main() -> None:
        async with sennit.aopen(":memory:", sources={"mine": CustomSource(note, inline=True)}) as db:
            await db.add(notes(1))
            name.set("request-1")
            await db.search("harbour", recipe=RECIPE)
        assert seen == ["request-1"]

    run(main())


# Iteration


def test_iteration_gives_every_record_in_one_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_database, "ITERATION_RECORDS", 3)

    async def main() -> None:
        async with sennit.aopen(tmp_path / "db") as db:
            await db.add(notes(10))
            names = []
            async for record in db:
                names.append(record.id)
                await db.remove([f"n{9 - len(names):04}"])
            assert names == [f"n{n:04}" for n in range(10)]

    run(main())


def test_an_iteration_that_is_left_early_holds_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with sennit.aopen(tmp_path / "db") as db:
            await db.add(notes(1000))
            async for _ in db:
                break
            await db.add(notes(3))
        assert not own_threads()
        with sennit.open(tmp_path / "db") as again:
            assert len(again) == 1000

    run(main())


# Streams


def test_an_answer_is_streamed_in_parts(tmp_path: Path) -> None:
    async def main() -> None:
        async with sennit.aopen(tmp_path / "db") as db:
            await db.add(
                [Record(id="p", text="Bleed the boiler in March.", collection="docs", title="Boiler")]
            )
            stream = db.ask_stream("when to bleed the boiler?")
            parts = [part async for part in stream]
            answer = await stream.answer()
            assert answer.text == "".join(parts).strip()
            assert (await db.ask_stream("when to bleed the boiler?").answer()).text == answer.text
            left = db.ask_stream("when to bleed the boiler?")
            await left.close()
            with pytest.raises(InvalidInput, match="closed before it began"):
                await left.answer()

    run(main())


# Cancellation


def test_a_cancelled_search_returns_at_once_and_the_next_one_works(tmp_path: Path) -> None:
    async def main() -> None:
        gate = Gate()
        async with sennit.aopen(tmp_path / "db", sources=sources(gate)) as db:
            await db.add(notes(3))
            task = asyncio.create_task(db.search("harbour", recipe=RECIPE))
            await gate.wait_until_entered()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task  # the source still waits in its thread
            assert not gate.release.is_set()
            await db.add(notes(4))
            assert len(await db.search("harbour")) == 4
            gate.release.set()
        assert not own_threads()

    run(main())


def test_a_cancelled_call_that_has_not_begun_never_runs(tmp_path: Path) -> None:
    async def main() -> None:
        gate = Gate()
        async with sennit.aopen(tmp_path / "db", threads=1, sources=sources(gate)) as db:
            await db.add(notes(1))
            first = asyncio.create_task(db.search("harbour", recipe=RECIPE))
            await gate.wait_until_entered()
            queued = asyncio.create_task(db.add(notes(5)))
            await asyncio.sleep(0)
            queued.cancel()
            with pytest.raises(asyncio.CancelledError):
                await queued
            gate.release.set()
            await first
            assert await db.count() == 1

    run(main())


def test_close_waits_for_a_call_that_was_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        gate = Gate()
        db = await sennit.aopen(tmp_path / "db", sources=sources(gate))
        await db.add(notes(1))
        task = asyncio.create_task(db.search("harbour", recipe=RECIPE))
        await gate.wait_until_entered()
        task.cancel()
        closing = asyncio.create_task(db.close())
        done, _ = await asyncio.wait([closing], timeout=0.05)
        assert not done
        gate.release.set()
        await closing
        assert not own_threads()

    run(main())


def test_a_cancelled_close_closes_all_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        gate = Gate()
        db = await sennit.aopen(tmp_path / "db", sources=sources(gate))
        await db.add(notes(1))
        search = asyncio.create_task(db.search("harbour", recipe=RECIPE))
        await gate.wait_until_entered()
        closing = asyncio.create_task(db.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        gate.release.set()
        await search
        with pytest.raises(StoreClosed):
            await db.search("harbour")

    run(main())
    assert not own_threads()


def test_a_cancelled_opening_leaves_no_open_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, release = threading.Event(), threading.Event()
    opened: list[Database] = []
    real: Callable[..., Database] = sennit.engine.open

    def slow_open(*args: Any, **options: Any) -> Database:
        entered.set()
        release.wait(SECONDS)
        opened.append(real(*args, **options))
        return opened[0]

    monkeypatch.setattr(sennit.engine, "open", slow_open)

    async def main() -> None:
        async def use() -> None:
            async with sennit.engine.aopen(tmp_path / "db"):
                pass

        task = asyncio.create_task(use())
        assert await asyncio.to_thread(entered.wait, SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("sennit-async"):
            thread.join(SECONDS)
    assert repr(opened[0]).endswith("(closed)>")


def test_a_cancelled_stream_ends_the_request_to_the_model(tmp_path: Path) -> None:
    """The consumer leaves while a part is being written; the iterator is closed when that part has arrived."""
    started, release, closed = threading.Event(), threading.Event(), threading.Event()

    def parts() -> Any:
        try:
            yield "one"
            started.set()
            release.wait(SECONDS)
            yield "two"
        finally:
            closed.set()

    async def main() -> None:
        async with sennit.aopen(":memory:") as db:
            stream = async_database.AsyncAnswerStream(
                lambda: sennit.engine.answers.AnswerStream(parts()), db._threads
            )
            seen: list[str] = []

            async def consume() -> None:
                async for part in stream:
                    seen.append(part)

            task = asyncio.create_task(consume())
            assert await asyncio.to_thread(started.wait, SECONDS)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert seen == ["one"]
            assert not closed.is_set()
            release.set()
        assert closed.is_set()

    run(main())
