"""Records made by programs of their own."""

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
from sennit.ingest import index, workers
from sennit.ingest.making import Content, Here, Made, Model, Task
from sennit.ingest.profiles import PROFILES
from sennit.ingest.reading import Unreadable
from sennit.ingest.wire import as_outcome, of_outcome
from sennit.ingest.workers import MANY, Workers, maker_for
from sennit.programs import receive, send
from sennit.records import Record
from sennit.stores.embedded.codec import embedding_hash
from sennit.stores.embedded.prepared import Prepared, prepared
from sennit.vectors import Vectors

PROGRAM = Path(__file__).with_name("run_index.py")
TASK = Task("code", "mine", ("/tree",))
FILES = [Content(f"/tree/f{n}.py", f"def f{n}():\n    return {n}\n".encode(), 10**18) for n in range(5)]
LOST = "its parser fails"


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are used for small files too."""
    monkeypatch.setattr(workers, "MUCH", 0)


@pytest.fixture
def alone() -> Iterator[Workers]:
    with Workers(TASK, 1) as opened:
        yield opened


def records(outcomes: Sequence[Made | Unreadable]) -> list[list[Prepared] | str]:
    return [list(map(prepared, one.records)) if isinstance(one, Made) else str(one) for one in outcomes]


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
    with db.store.database.read() as connection:
        return dict(connection.execute("SELECT hash, vector FROM vectors"))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.usefixtures("beside")
def test_programs_make_the_same_records_and_vectors(
    tmp_path: Path, root: Path, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(root, MANY)

    def nothing_left(_: object, texts: Sequence[str]) -> None:
        raise AssertionError(texts)

    with sennit.open(tmp_path / "programs.sennit") as beside, monkeypatch.context() as patch:
        beside.vectors.settle()
        # All vectors come from the programs.
        patch.setattr("sennit.embedding.cache.CachedQueries.embed_documents", nothing_left)
        told = index(beside, root, profile=profile)
    with sennit.open(tmp_path / "programs.sennit") as beside, sennit.open(tmp_path / "here.sennit") as here:
        monkeypatch.setattr(workers, "MUCH", 10**9)
        assert reasons(index(here, root, profile=profile), root) == reasons(told, root)
        assert len(here) > 32
        assert contents_of(beside) == contents_of(here)
        assert vectors_of(beside) == vectors_of(here)
        assert not beside.store.models_waiting()
        # And both know each other's files.
        assert index(beside, root, profile=profile).records == 0


@pytest.mark.usefixtures("beside")
def test_without_vectors_none_are_made(tmp_path: Path, root: Path) -> None:
    tree(root, MANY)
    with sennit.open(tmp_path / "none.sennit", embedding__provider="none") as db:
        assert db.vectors.portable() == []
        assert index(db, root).added > 32
        assert not vectors_of(db)


def test_programs_are_started_where_there_is_much_to_do() -> None:
    assert isinstance(maker_for(TASK, [20_000] * MANY), Workers)
    assert isinstance(maker_for(TASK, [20_000] * (MANY - 1)), Here)
    assert isinstance(maker_for(TASK, [20] * MANY), Here)


def test_several_threads_ask_several_programs() -> None:
    with Workers(TASK, 2) as two, ThreadPoolExecutor(two.readers) as threads:
        found = list(threads.map(lambda file: records(two.make([file])), FILES * 3))
    assert found == [records(Here(TASK).make([file])) for file in FILES * 3]


def test_what_is_no_text_says_so_and_the_next_file_is_read(alone: Workers) -> None:
    binary, good = alone.make([Content("/tree/a.py", b"\x00\x01\x02", 0), FILES[0]])
    assert isinstance(binary, Unreadable)
    assert binary.lasting
    assert "binary" in str(binary)
    assert isinstance(good, Made)


def test_a_program_that_dies_at_work_loses_one_file(alone: Workers) -> None:
    alone.make(FILES[:1])
    (program,) = alone._running
    os.kill(program.pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(alone.make, FILES)
        while program.until == math.inf:
            os.sched_yield()
        os.kill(program.pid, signal.SIGKILL)
        lost, *rest = found.result()
    assert isinstance(lost, Unreadable)
    assert LOST in str(lost)
    assert records(rest) == records(Here(TASK).make(FILES[1:]))


def test_a_program_that_dies_while_it_has_nothing_to_do_is_replaced(alone: Workers) -> None:
    alone.make(FILES[:1])
    (program,) = alone._running
    os.kill(program.pid, signal.SIGKILL)
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    assert records(alone.make(FILES)) == records(Here(TASK).make(FILES))


def test_a_program_that_does_not_end_is_ended_and_loses_one_file(
    alone: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone.make(FILES[:1])
    (program,) = alone._running
    os.kill(program.pid, signal.SIGSTOP)
    monkeypatch.setattr(workers, "LOOK", 0.01)
    monkeypatch.setattr(workers, "SECONDS", 0.1)
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(alone.make, FILES[:1])
        (lost,) = found.result()
    assert LOST in str(lost)
    monkeypatch.setattr(workers, "SECONDS", 60.0)
    assert records(alone.make(FILES)) == records(Here(TASK).make(FILES))


def test_what_is_under_way_ends_when_a_run_does() -> None:
    with ThreadPoolExecutor(2) as threads:
        with Workers(TASK, 1) as alone:
            alone.make(FILES[:1])
            (program,) = alone._running
            os.kill(program.pid, signal.SIGSTOP)
            under_way = [threads.submit(alone.make, FILES) for _ in range(2)]
        outcomes = [one for future in under_way for one in future.result()]
    assert len(outcomes) == 2 * len(FILES)
    assert not any(one.lasting for one in outcomes if isinstance(one, Unreadable))


@pytest.mark.usefixtures("beside")
def test_a_program_that_cannot_be_started_is_said_and_tried_again(
    root: Path, db: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(root, MANY)
    for broken in ("/nowhere/python", "/bin/false"):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", broken)
            report = index(db, root)
        assert report.added == 0
        assert {"the program that reads files does not start"} == set(reasons(report, root).values())
    assert index(db, root).added > 32


@pytest.mark.usefixtures("beside")
def test_nothing_is_imported_from_the_folder_that_is_indexed(
    root: Path, db: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(root, MANY)
    write(
        root,
        {f"{name}.py": "raise SystemExit('imported')" for name in ("json", "sennit", "tree_sitter", "numpy")},
    )
    monkeypatch.chdir(root)
    assert index(db, root, profile="code").added > 32


def stopped(tmp_path: Path, root: Path, stop: Callable[[int], None]) -> str:
    """What a run and its programs write to the terminal when it is stopped in the middle and all have ended."""
    tree(root, 600, 200)
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(tmp_path / "stopped.sennit"), str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        while child.stdout.readline() != "20\n":
            pass
        stop(child.pid)
        # To the end, which is when no program has it open any more.
        _, said = child.communicate(timeout=60)
    return said


def test_ctrl_c_ends_the_programs_and_only_the_run_says_so(tmp_path: Path, root: Path) -> None:
    said = stopped(tmp_path, root, lambda pid: os.killpg(pid, signal.SIGINT))
    assert "IndexInterrupted" in said
    assert "sennit/ingest/program.py" not in said


def test_programs_end_with_the_run_that_is_killed(tmp_path: Path, root: Path) -> None:
    assert stopped(tmp_path, root, lambda pid: os.kill(pid, signal.SIGKILL)) == ""


def test_vectors_of_another_model_are_neither_made_nor_taken(db: sennit.Database) -> None:
    ((fingerprint, spec),) = db.vectors.portable()
    other = Model(f"{fingerprint}-of-another-table", spec)
    with Workers(Task("code", "mine", (), (other,)), 1) as alone:
        (made,) = alone.make(FILES[:1])
    assert isinstance(made, Made)
    assert not made.vectors
    record = Record(id="a", text="some words")
    digest = embedding_hash(record.embedding_text)
    (mine,) = db.vectors.for_records([prepared(record)]).values()
    assert list(
        db.vectors.for_records([prepared(record)], {other.fingerprint: {digest: b"\0" * 512}}).values()
    ) == [mine]
    assert list(
        db.vectors.for_records([prepared(record)], {fingerprint: {digest: b"\1" * 512}}).values()
    ) == [{digest: b"\1" * 512}]


def test_every_model_that_is_wanted_has_its_vectors(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "both.sennit") as db:
        db.add([Record(id="a", text="some words")])
        other = Vectors(db.store, EmbeddingSpec(dimensions=64), explicit=True)
        models = tuple(Model(*model) for model in other.portable())
        assert len(models) == 2
        with Workers(Task("text", "mine", (), models), 1) as alone:
            (made,) = alone.make([Content("/tree/a.txt", b"some other words", 0)])
        assert isinstance(made, Made)
        given = other.for_records(list(map(prepared, made.records)), made.vectors)
        assert given == other.for_records(list(map(prepared, made.records)))
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
def test_what_is_sent_is_what_arrives(made: list[Record], width: int, data: st.DataObject) -> None:
    digests = sorted({embedding_hash(record.embedding_text) for record in made})
    vectors = {digest: data.draw(st.binary(min_size=width, max_size=width)) for digest in digests}
    stream = BytesIO()
    for outcome in (Made(made, {"one": vectors, "two": {}}), Unreadable("no text\n", lasting=False)):
        send(stream, of_outcome(outcome))
    stream.seek(0)
    first, second = receive(stream), receive(stream)
    assert first is not None
    assert second is not None
    assert as_outcome(first) == Made([prepared(record) for record in made], {"one": vectors, "two": {}})
    problem = as_outcome(second)
    assert isinstance(problem, Unreadable)
    assert (str(problem), problem.lasting) == ("no text\n", False)
    assert receive(stream) is None


@given(st.integers(1, 200))
def test_half_a_message_is_none(missing: int) -> None:
    stream = BytesIO()
    send(stream, of_outcome(Made([Record(id="a", text="text", timestamp=datetime(2026, 3, 1, tzinfo=UTC))])))
    assert receive(BytesIO(stream.getvalue()[:-missing])) is None


def test_a_program_starts_without_what_only_the_store_needs() -> None:
    asked = "import sys, sennit.ingest.program; print({'faiss', 'filelock'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
