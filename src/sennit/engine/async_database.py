"""The asynchronous face: the methods of a database, awaited. Each runs the synchronous one in a thread.

Nothing is written twice: `search = awaited(Database.search)` has the signature, the documentation and the code of the
method that it calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, NoReturn, ParamSpec, TypeVar, Unpack

from sennit.engine.answer_service import Answer, AnswerStream, AskOptions
from sennit.engine.database import Database
from sennit.engine.experiment_group import ExperimentGroup
from sennit.engine.feedback_group import FeedbackGroup
from sennit.engine.groups import AdminGroup, CodeGroup, FilesGroup, MemoryGroup
from sennit.engine.ranker_group import RankerGroup
from sennit.errors import InvalidInput, StoreClosed
from sennit.filters import Filter
from sennit.folders import Folders
from sennit.privacy import Caller
from sennit.recipes import Recipe
from sennit.records import Record
from sennit.repositories.tokens import TokenStore
from sennit.settings import Settings
from sennit.stores.contract import Capabilities

DEFAULT_THREADS: Final = 8
"""Threads of one database. Most calls wait for the interpreter or the disk, so more of them would only wait longer."""

MAX_THREADS: Final = 256

ITERATION_RECORDS: Final = 256
"""Records that one step of an iteration reads, so that the change of threads does not dominate it."""

S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")
P = ParamSpec("P")


class DatabaseThreads:
    """The threads that run the calls of one database, and no others. Any event loop may use them."""

    def __init__(self, count: int) -> None:
        if type(count) is not int or not 1 <= count <= MAX_THREADS:
            raise InvalidInput(f"threads must be a whole number from 1 to {MAX_THREADS}, not {count!r}")
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="sennit-async")

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` in a thread, with the context variables of the caller."""
        try:
            return self._pool.submit(contextvars.copy_context().run, work)
        except RuntimeError as error:
            raise StoreClosed("This database has been closed; open it again with sennit.aopen()") from error

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of `work`. A cancelled call returns at once.

        Work that has not begun is then dropped. Work that has begun ends by itself, and its result is dropped.
        """
        return await asyncio.wrap_future(self.submit(work))

    def shutdown(self, *, wait: bool) -> None:
        """Accept no more work, and wait for what was accepted."""
        self._pool.shutdown(wait=wait)


class AsyncFace(Generic[S]):
    """What is common to the database and its groups: the synchronous object, and the threads that call it."""

    def __init__(self, target: S, threads: DatabaseThreads) -> None:
        self._target = target
        self._threads = threads


def awaited(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[AsyncFace[S], P], Coroutine[Any, Any, R]]:
    """Return a method that runs a synchronous method in a thread."""

    @functools.wraps(method)
    async def call(self: AsyncFace[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._threads.run(functools.partial(method, self._target, *args, **kwargs))

    return call


class AsyncMemoryGroup(AsyncFace[MemoryGroup]):
    """`db.memory`: what an assistant was told and what it knows."""

    add_turns = awaited(MemoryGroup.add_turns)
    add_facts = awaited(MemoryGroup.add_facts)
    extract_facts = awaited(MemoryGroup.extract_facts)
    remember = awaited(MemoryGroup.remember)
    context = awaited(MemoryGroup.context)
    sessions = awaited(MemoryGroup.sessions)
    forget = awaited(MemoryGroup.forget)


class AsyncFilesGroup(AsyncFace[FilesGroup]):
    """`db.files`: index files, and read and grep those in the allowed folders."""

    index = awaited(FilesGroup.index)
    read = awaited(FilesGroup.read)
    grep = awaited(FilesGroup.grep)
    paths = awaited(FilesGroup.paths)
    locate = awaited(FilesGroup.locate)
    project_at = awaited(FilesGroup.project_at)
    projects = awaited(FilesGroup.projects)
    filter_paths = awaited(FilesGroup.filter_paths)
    make_scope = awaited(FilesGroup.make_scope)

    async def folders(self) -> Folders:
        """Return the folders that may be searched and read; a property of the synchronous group."""
        return await self._threads.run(lambda: self._target.folders)


class AsyncCodeGroup(AsyncFace[CodeGroup]):
    """`db.code`: the code that belongs in a prompt."""

    plan = awaited(CodeGroup.plan)
    episodes = awaited(CodeGroup.episodes)
    introspect = awaited(CodeGroup.introspect)


class AsyncFeedbackGroup(AsyncFace[FeedbackGroup]):
    """`db.feedback`: what people did with the results of searches, each caller's apart."""

    add = awaited(FeedbackGroup.add)
    add_many = awaited(FeedbackGroup.add_many)
    last_query_id = awaited(FeedbackGroup.last_query_id)
    read = awaited(FeedbackGroup.read)
    load = awaited(FeedbackGroup.load)
    forget = awaited(FeedbackGroup.forget)


class AsyncExperimentGroup(AsyncFace[ExperimentGroup]):
    """`db.experiments`: two recipes compared on live searches. At most one experiment runs."""

    start = awaited(ExperimentGroup.start)
    stop = awaited(ExperimentGroup.stop)
    all = awaited(ExperimentGroup.all)
    get = awaited(ExperimentGroup.get)


class AsyncRankerGroup(AsyncFace[RankerGroup]):
    """`db.rankers`: learned rankers, each for the callers whose feedback it was trained on."""

    add = awaited(RankerGroup.add)
    find = awaited(RankerGroup.find)
    all = awaited(RankerGroup.all)
    remove = awaited(RankerGroup.remove)


class AsyncTokens(AsyncFace[TokenStore]):
    """`db.admin.tokens`: the access tokens of the servers."""

    issue = awaited(TokenStore.issue)
    revoke = awaited(TokenStore.revoke)
    all = awaited(TokenStore.all)
    find = awaited(TokenStore.find)
    find_caller = awaited(TokenStore.find_caller)


class AsyncAdminGroup(AsyncFace[AdminGroup]):
    """`db.admin`: tokens, embedding models and maintenance, for the operator.

    A backup is made, and searches are ranked again, with the synchronous one.
    """

    def __init__(self, target: AdminGroup, threads: DatabaseThreads) -> None:
        super().__init__(target, threads)
        self.tokens = AsyncTokens(target.tokens, threads)
        """The access tokens of the servers."""

    check = awaited(AdminGroup.check)
    optimise = awaited(AdminGroup.optimise)
    unused_vectors = awaited(AdminGroup.unused_vectors)
    flush = awaited(AdminGroup.flush)
    models = awaited(AdminGroup.models)
    current_models = awaited(AdminGroup.current_models)
    pending_vectors = awaited(AdminGroup.pending_vectors)
    select_model = awaited(AdminGroup.select_model)
    embed_pending = awaited(AdminGroup.embed_pending)
    add_recipe = awaited(AdminGroup.add_recipe)
    act_for = awaited(AdminGroup.act_for)
    callers_for = awaited(AdminGroup.callers_for)
    behind = awaited(AdminGroup.behind)

    @property
    def levels(self) -> tuple[str, ...]:
        """The sensitivity levels, lowest first."""
        return self._target.levels

    @property
    def bindings(self) -> dict[str, str]:
        """What each role is bound to, by name."""
        return self._target.bindings

    @property
    def location(self) -> str:
        """Where the database is, for messages: a folder, or a server without its password."""
        return self._target.location

    @property
    def capabilities(self) -> dict[str, Capabilities]:
        """What the index of each role promises."""
        return self._target.capabilities

    @property
    def embedding_is_off(self) -> bool:
        """Whether the settings switch embedding off."""
        return self._target.embedding_is_off

    @property
    def last_error(self) -> str | None:
        """Why the background could not compute vectors the last time; None if it could."""
        return self._target.last_error


class AsyncDatabase(AsyncFace[Database]):
    """An open database whose methods are awaited. It has the methods and groups of `Database`.

    `sennit.aopen` opens it. Several tasks may use it at once; a fixed number of threads runs their calls. A cancelled
    call returns at once: a search is dropped, and a write that has begun is written as a whole. Callbacks such as
    `progress` run in a thread of the database.
    """

    def __init__(self, target: Database, threads: DatabaseThreads) -> None:
        super().__init__(target, threads)
        self.memory = AsyncMemoryGroup(target.memory, threads)
        """What an assistant was told and what it knows."""
        self.files = AsyncFilesGroup(target.files, threads)
        """Index files, and read and grep those in the allowed folders."""
        self.code = AsyncCodeGroup(target.code, threads)
        """The code that belongs in a prompt."""
        self.feedback = AsyncFeedbackGroup(target.feedback, threads)
        """What people did with results."""
        self.experiments = AsyncExperimentGroup(target.experiments, threads)
        """Two recipes compared on live searches."""
        self.rankers = AsyncRankerGroup(target.rankers, threads)
        """Learned rankers, which the stage `learned` of a recipe names."""
        self.admin = AsyncAdminGroup(target.admin, threads)
        """Tokens, embedding models and maintenance."""

    add = awaited(Database.add)
    add_artifacts = awaited(Database.add_artifacts)
    add_facts = awaited(Database.add_facts)
    add_turns = awaited(Database.add_turns)
    remove = awaited(Database.remove)
    remember = awaited(Database.remember)
    index = awaited(Database.index)
    get = awaited(Database.get)
    find = awaited(Database.find)
    find_removable = awaited(Database.find_removable)
    records = awaited(Database.records)
    collections = awaited(Database.collections)
    status = awaited(Database.status)
    count = awaited(Database.count)
    search = awaited(Database.search)
    search_many = awaited(Database.search_many)
    why = awaited(Database.why)
    what_admits = awaited(Database.what_admits)
    field_names = awaited(Database.field_names)
    field_values = awaited(Database.field_values)
    plan = awaited(Database.plan)
    introspect = awaited(Database.introspect)
    ask = awaited(Database.ask)
    wait = awaited(Database.wait)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._target.settings

    @property
    def path(self) -> Path | None:
        """The folder of the database; None when it is in memory or on a server."""
        return self._target.path

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """The recipes by name."""
        return self._target.recipes

    @property
    def caller(self) -> Caller:
        """The caller of a request that names none."""
        return self._target.caller

    def audience(self, caller: Caller | None = None) -> Filter:
        """Return the filter of what a caller may see."""
        return self._target.audience(caller)

    def ask_stream(self, query: str, **options: Unpack[AskOptions]) -> AsyncAnswerStream:
        """Answer in parts, as the language model writes them: `async for part in db.ask_stream(…)`."""
        return AsyncAnswerStream(functools.partial(self._target.ask_stream, query, **options), self._threads)

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over the records that the default caller may see, by id, in one consistent snapshot."""
        steps = _Steps(lambda: iter(self._target), self._threads)
        async with contextlib.aclosing(steps.batches(ITERATION_RECORDS)) as batches:
            async for batch in batches:
                for record in batch:
                    yield record

    async def close(self) -> None:
        """Wait for the calls that have begun, stop background work and close the files.

        Calls that come later are refused. If the task is cancelled meanwhile, the database is closed all the same.
        """
        self._threads.shutdown(wait=False)
        await asyncio.shield(asyncio.to_thread(self._close))

    def _close(self) -> None:
        self._threads.shutdown(wait=True)
        self._target.close()

    async def __aenter__(self) -> AsyncDatabase:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._target).replace("sennit.Database", "sennit.AsyncDatabase", 1)


class AsyncAnswerStream:
    """Yields the text of an answer in parts; `await stream.answer()` is the whole.

    Leaving `async for` early ends the request to the language model.
    """

    def __init__(self, start: Callable[[], AnswerStream], threads: DatabaseThreads) -> None:
        self._start = start
        self._threads = threads
        self._stream: AnswerStream | None = None
        self._steps = _Steps(self._begin, threads)

    def _begin(self) -> Iterator[str]:
        self._stream = self._start()
        return _parts(self._stream)

    async def __aiter__(self) -> AsyncIterator[str]:
        async with contextlib.aclosing(self._steps.batches(1)) as batches:
            async for batch in batches:
                for part in batch:
                    yield part

    async def answer(self) -> Answer:
        """Return the whole answer; this consumes the remaining parts."""
        async for _ in self:
            pass
        if self._stream is None:
            raise InvalidInput("The stream was closed before it began; ask again")
        return await self._threads.run(self._read_answer)

    def _read_answer(self) -> Answer:
        assert self._stream is not None
        return self._stream.answer

    async def close(self) -> None:
        """Stop reading parts."""
        await self._threads.run(self._steps.close)


def _parts(stream: AnswerStream) -> Generator[str]:
    try:
        yield from stream
    finally:
        stream.close()


class _Steps(Generic[T]):
    """A synchronous iteration, a few elements at a time, each time in some thread of the database."""

    def __init__(self, start: Callable[[], Iterator[T]], threads: DatabaseThreads) -> None:
        self._start = start
        self._threads = threads
        self._lock = threading.Lock()
        """A step that was left behind by a cancelled task must end before the iterator can be closed."""
        self._iterator: Iterator[T] | None = None
        self._closed = False

    async def batches(self, size: int) -> AsyncGenerator[list[T]]:
        """Yield the remaining elements in batches. Leaving early closes the iterator."""
        try:
            while batch := await self._threads.run(lambda: self._step(size)):
                yield batch
        finally:
            # Not awaited: a task that was cancelled must not wait for the step that runs. `AsyncDatabase.close` does.
            with contextlib.suppress(StoreClosed):
                self._threads.submit(self.close)

    def _step(self, size: int) -> list[T]:
        with self._lock:
            if self._closed:
                return []
            if self._iterator is None:
                self._iterator = self._start()
            return list(islice(self._iterator, size))

    def close(self) -> None:
        """Close the iterator, which releases what it holds."""
        with self._lock:
            self._closed = True
            if isinstance(self._iterator, Generator):
                self._iterator.close()


class OpeningDatabase:
    """What `sennit.aopen` returns: `async with` it, or `await` it and close the database yourself."""

    def __init__(self, start: Callable[[], Database], threads: int) -> None:
        self._start = start
        self._threads = DatabaseThreads(threads)
        self._opened: AsyncDatabase | None = None

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"The database is not open yet, so it has no {name!r}: open it with 'async with sennit.aopen(…) as db', or with "
            "'db = await sennit.aopen(…)'"
        )

    def __await__(self) -> Generator[Any, Any, AsyncDatabase]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncDatabase:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._opened is not None
        await self._opened.close()

    async def _open(self) -> AsyncDatabase:
        opening = self._threads.submit(self._start)
        try:
            return AsyncDatabase(await asyncio.wrap_future(opening), self._threads)
        except asyncio.CancelledError:
            # A cancelled task must not leave behind a database that a thread is still opening.
            self._threads.submit(lambda: _close_opened(opening))
            self._threads.shutdown(wait=False)
            raise
        except Exception:
            self._threads.shutdown(wait=True)
            raise


def _close_opened(opening: Future[Database]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
