"""Records built by a pool of worker processes."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from ingest.conftest import contents_of, reasons, write
from sennit.embedding import EmbeddingSpec
from sennit.embedding_service import EmbeddingService
from sennit.ingest import index, worker_pool
from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.record_builder import FileContent, FileRecords, IndexTask, InProcessBuilder, PortableModel
from sennit.ingest.worker_pool import MIN_POOL_FILES, WorkerPool, choose_builder
from sennit.ingest.worker_protocol import decode_outcome, encode_outcome
from sennit.places import Folder
from sennit.records import Record
from sennit.stores.codec import embedding_hash
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.prepared_records import PreparedRecord, prepare_record
from sennit.workers import read_message, write_message

INDEX_SCRIPT = Path(__file__).with_name("run_index.py")
TASK = IndexTask((Folder("tree", "/tree", tenant="acme", collection="mine", metadata={"team": "search"}),))
FILES = [
    FileContent("tree", f"f{n}.py", "", f"def f{n}():\n    return {n}\n".encode(), 10**18) for n in range(5)
]
PARSER_FAILS = "the parser fails on this file"


@pytest.fixture
def pool_for_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker pool is used for small files too."""
    monkeypatch.setattr(worker_pool, "MIN_POOL_BYTES", 0)


@pytest.fixture
def pool_of_one() -> Iterator[WorkerPool]:
    with WorkerPool(TASK, 1) as opened:
        yield opened


def records(outcomes: Sequence[FileRecords | UnreadableFile]) -> list[list[PreparedRecord] | str]:
    return [
        list(map(prepare_record, one.records)) if isinstance(one, FileRecords) else str(one)
        for one in outcomes
    ]


def tree(root: Path, count: int, times: int = 1) -> None:
    kinds = {
        "md": "# Part {n}\n\nSomething about number {n}, and naïve 漢字.\n\n```python\nprint({n})\n```\n",
        "txt": "Plain text number {n}.\n\nAnd a second paragraph.\n",
        "html": "<html><title>Page {n}</title><body><h1>Head</h1><p>Text {n}</p></body></html>",
        "py": '"""File {n}."""\n\n\nclass A{n}:\n    def method(self):\n        return {n}\n',
        "js": "function f{n}() {{ return g({n}); }}\n",
        "unknown": "No ending that tells anything, {n}.\n",
    }
    endings = list(kinds)
    for n in range(count):
        ending = endings[n % len(endings)]
        write(root, {f"d{n % 3}/examples/f{n}.{ending}": kinds[ending].format(n=n) * times})
    write(
        root,
        {"d0/empty.py": "", "d0/binary.py": b"\0\1\2", "d1/latin.txt": "na\xefve caf\xe9".encode("cp1252")},
    )


def vectors_of(db: sennit.Database) -> dict[bytes, bytes]:
    assert isinstance(db.store, EmbeddedStore)
    with db.store.pool.read() as connection:
        return dict(connection.execute("SELECT hash, vector FROM vectors"))


@pytest.mark.parametrize("target", ["", "artifacts"])
@pytest.mark.usefixtures("pool_for_small_files")
def test_worker_pool_builds_the_same_records_and_vectors(
    tmp_path: Path, root: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(root, MIN_POOL_FILES)

    def fail_on_embedding(_: object, texts: Sequence[str]) -> None:
        raise AssertionError(texts)

    with sennit.open(tmp_path / "pool.sennit") as pooled, monkeypatch.context() as patch:
        pooled.embeddings.select_model()
        # All vectors come from the workers.
        patch.setattr("sennit.embedding.cache.CachingEmbedder.embed_documents", fail_on_embedding)
        report = index(pooled, root, target=target)
    with sennit.open(tmp_path / "pool.sennit") as pooled, sennit.open(tmp_path / "here.sennit") as here:
        monkeypatch.setattr(worker_pool, "MIN_POOL_BYTES", 10**9)
        assert reasons(index(here, root, target=target), root) == reasons(report, root)
        assert len(here) > 32
        assert contents_of(pooled) == contents_of(here)
        assert vectors_of(pooled) == vectors_of(here)
        assert not pooled.store.has_pending_vectors()
        # Both recognise each other's files as unchanged.
        assert index(pooled, root, target=target).records == 0


@pytest.mark.usefixtures("pool_for_small_files")
def test_without_a_model_no_vectors_are_computed(tmp_path: Path, root: Path) -> None:
    tree(root, MIN_POOL_FILES)
    with sennit.open(tmp_path / "none.sennit", embedding__provider="none") as db:
        assert db.embeddings.portable_models() == []
        assert index(db, root).added > 32
        assert not vectors_of(db)


def test_pool_is_chosen_only_for_many_files_and_bytes() -> None:
    assert isinstance(choose_builder(TASK, [20_000] * MIN_POOL_FILES, lambda: ()), WorkerPool)
    assert isinstance(choose_builder(TASK, [20_000] * (MIN_POOL_FILES - 1), lambda: ()), InProcessBuilder)
    assert isinstance(choose_builder(TASK, [20] * MIN_POOL_FILES, lambda: ()), InProcessBuilder)


def test_threads_share_the_workers_of_a_pool() -> None:
    with WorkerPool(TASK, 2) as pool, ThreadPoolExecutor(pool.threads) as threads:
        found = list(threads.map(lambda file: records(pool.build([file])), FILES * 3))
    assert found == [records(InProcessBuilder(TASK).build([file])) for file in FILES * 3]


def test_binary_file_is_reported_and_the_next_file_is_parsed(pool_of_one: WorkerPool) -> None:
    binary, good = pool_of_one.build([FileContent("tree", "a.py", "", b"\x00\x01\x02", 0), FILES[0]])
    assert isinstance(binary, UnreadableFile)
    assert binary.permanent
    assert "binary" in str(binary)
    assert isinstance(good, FileRecords)


def test_worker_that_dies_while_parsing_loses_one_file(pool_of_one: WorkerPool) -> None:
    pool_of_one.build(FILES[:1])
    (worker,) = pool_of_one._running
    os.kill(worker.pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(pool_of_one.build, FILES)
        while worker.deadline == math.inf:
            os.sched_yield()
        os.kill(worker.pid, signal.SIGKILL)
        lost, *rest = found.result()
    assert isinstance(lost, UnreadableFile)
    assert PARSER_FAILS in str(lost)
    assert records(rest) == records(InProcessBuilder(TASK).build(FILES[1:]))


def test_worker_that_dies_while_idle_is_replaced(pool_of_one: WorkerPool) -> None:
    pool_of_one.build(FILES[:1])
    (worker,) = pool_of_one._running
    os.kill(worker.pid, signal.SIGKILL)
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    assert records(pool_of_one.build(FILES)) == records(InProcessBuilder(TASK).build(FILES))


def test_worker_that_hangs_is_killed_and_loses_one_file(
    pool_of_one: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_of_one.build(FILES[:1])
    (worker,) = pool_of_one._running
    os.kill(worker.pid, signal.SIGSTOP)
    monkeypatch.setattr(worker_pool, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(worker_pool, "FILE_TIMEOUT_SECONDS", 0.1)
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(pool_of_one.build, FILES[:1])
        (lost,) = found.result()
    assert PARSER_FAILS in str(lost)
    monkeypatch.setattr(worker_pool, "FILE_TIMEOUT_SECONDS", 60.0)
    assert records(pool_of_one.build(FILES)) == records(InProcessBuilder(TASK).build(FILES))


def test_closing_the_pool_ends_requests_in_progress() -> None:
    with ThreadPoolExecutor(2) as threads:
        with WorkerPool(TASK, 1) as pool_of_one:
            pool_of_one.build(FILES[:1])
            (worker,) = pool_of_one._running
            os.kill(worker.pid, signal.SIGSTOP)
            in_progress = [threads.submit(pool_of_one.build, FILES) for _ in range(2)]
        outcomes = [one for future in in_progress for one in future.result()]
    assert len(outcomes) == 2 * len(FILES)
    assert not any(one.permanent for one in outcomes if isinstance(one, UnreadableFile))


@pytest.mark.usefixtures("pool_for_small_files")
def test_worker_that_cannot_start_is_reported_and_tried_again(
    root: Path, db: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(root, MIN_POOL_FILES)
    for broken in ("/nowhere/python", "/bin/false"):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", broken)
            report = index(db, root)
        assert report.added == 0
        assert {"the worker process that parses files does not start"} == set(reasons(report, root).values())
    assert index(db, root).added > 32


@pytest.mark.usefixtures("pool_for_small_files")
def test_nothing_is_imported_from_the_indexed_folder(
    root: Path, db: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(root, MIN_POOL_FILES)
    write(
        root,
        {f"{name}.py": "raise SystemExit('imported')" for name in ("json", "sennit", "tree_sitter", "numpy")},
    )
    monkeypatch.chdir(root)
    assert index(db, root).added > 32


def run_and_stop(tmp_path: Path, root: Path, stop: Callable[[int], None]) -> str:
    """Stop a run in the middle; returns what it and its workers wrote to standard error."""
    tree(root, 600, 200)
    with subprocess.Popen(
        [sys.executable, str(INDEX_SCRIPT), str(tmp_path / "stopped.sennit"), str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        while child.stdout.readline() != "20\n":
            pass
        stop(child.pid)
        # Reads until no process has the pipe open any more.
        _, stderr = child.communicate(timeout=60)
    return stderr


@pytest.mark.usefixtures("default_sigint")
def test_ctrl_c_ends_the_workers_and_only_the_run_reports_it(tmp_path: Path, root: Path) -> None:
    stderr = run_and_stop(tmp_path, root, lambda pid: os.killpg(pid, signal.SIGINT))
    assert "IndexInterrupted" in stderr
    assert "sennit/ingest/worker_main.py" not in stderr


def test_workers_end_when_the_run_is_killed(tmp_path: Path, root: Path) -> None:
    assert run_and_stop(tmp_path, root, lambda pid: os.kill(pid, signal.SIGKILL)) == ""


def test_vectors_of_another_model_are_neither_computed_nor_stored(db: sennit.Database) -> None:
    ((fingerprint, spec),) = db.embeddings.portable_models()
    other = PortableModel(f"{fingerprint}-of-another-table", spec)
    with WorkerPool(IndexTask(TASK.folders, (), (other,)), 1) as pool_of_one:
        (built,) = pool_of_one.build(FILES[:1])
    assert isinstance(built, FileRecords)
    assert not built.vectors
    record = Record(id="a", text="some words")
    digest = embedding_hash(record.embedding_text)
    (mine,) = db.embeddings.embed_records([prepare_record(record)]).values()
    assert list(
        db.embeddings.embed_records(
            [prepare_record(record)], {other.fingerprint: {digest: b"\0" * 512}}
        ).values()
    ) == [mine]
    assert list(
        db.embeddings.embed_records([prepare_record(record)], {fingerprint: {digest: b"\1" * 512}}).values()
    ) == [{digest: b"\1" * 512}]


def test_every_requested_model_gets_vectors(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "both.sennit") as db:
        db.add([Record(id="a", text="some words")])
        other = EmbeddingService(db.store, EmbeddingSpec(dimensions=64), explicit=True)
        models = tuple(PortableModel(*model) for model in other.portable_models())
        assert len(models) == 2
        with WorkerPool(IndexTask(TASK.folders, (), models), 1) as pool_of_one:
            (built,) = pool_of_one.build([FileContent("tree", "a.txt", "", b"some other words", 0)])
        assert isinstance(built, FileRecords)
        given = other.embed_records(list(map(prepare_record, built.records)), built.vectors)
        assert given == other.embed_records(list(map(prepare_record, built.records)))
        assert sorted(len(vector) for vectors in given.values() for vector in vectors.values()) == [128, 512]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS.filter(bool), inner, max_size=3),
    max_leaves=5,
)
RECORDS = st.builds(
    Record,
    id=TEXTS.filter(bool),
    text=TEXTS,
    collection=TEXTS.filter(bool),
    title=TEXTS,
    path=st.none() | TEXTS.filter(bool),
    lines=st.none() | st.integers(1, 99).map(lambda n: (n, n + 3)),
    position=st.none() | st.integers(0, 99),
    timestamp=st.none() | st.datetimes(timezones=st.just(UTC)),
    tenant=TEXTS.filter(lambda text: "\x1f" not in text),
    metadata=st.dictionaries(TEXTS.filter(bool), VALUES, max_size=3),
)


@given(st.lists(RECORDS, max_size=4), st.integers(1, 8), st.data())
def test_outcomes_survive_encoding_and_decoding(built: list[Record], width: int, data: st.DataObject) -> None:
    digests = sorted({embedding_hash(record.embedding_text) for record in built})
    vectors = {digest: data.draw(st.binary(min_size=width, max_size=width)) for digest in digests}
    stream = BytesIO()
    for outcome in (
        FileRecords(built, {"one": vectors, "two": {}}),
        UnreadableFile("no text\n", permanent=False),
    ):
        write_message(stream, encode_outcome(outcome))
    stream.seek(0)
    first, second = read_message(stream), read_message(stream)
    assert first is not None
    assert second is not None
    assert decode_outcome(first) == FileRecords(
        [prepare_record(record) for record in built], {"one": vectors, "two": {}}
    )
    problem = decode_outcome(second)
    assert isinstance(problem, UnreadableFile)
    assert (str(problem), problem.permanent) == ("no text\n", False)
    assert read_message(stream) is None


@given(st.integers(1, 200))
def test_incomplete_message_is_none(missing: int) -> None:
    stream = BytesIO()
    write_message(
        stream,
        encode_outcome(
            FileRecords([Record(id="a", text="text", timestamp=datetime(2026, 3, 1, tzinfo=UTC))])
        ),
    )
    assert read_message(BytesIO(stream.getvalue()[:-missing])) is None


def test_worker_starts_without_the_imports_that_only_the_store_needs() -> None:
    code = "import sys, sennit.ingest.worker_main; print({'faiss', 'filelock'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
