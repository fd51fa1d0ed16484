"""Chroma as vector index: the conformance kit, filters against the reference, and what the binding does beyond it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.servers.chroma import ChromaProcess
from scripts.servers.common import free_port

import sennit
from sennit.errors import SourceError
from sennit.filters import Filter, Not, Range, field, matches
from sennit.records import Record
from sennit.settings import load_settings
from sennit.settings.servers import ChromaSettings
from sennit.stores.contract import Backend
from sennit.stores.open import open_backend
from sennit.stores.servers.chroma.client import ChromaClient
from sennit.stores.servers.chroma.metadata import metadata_of, to_where
from sennit.stores.servers.chroma.server import ChromaServer, similarities
from sennit.testing import VectorConformance
from sennit.testing.indexes import Outage
from sennit.testing.records import HOSTILE, NewTarget, filters

from ..naughty_kit import assert_survives

pytestmark = pytest.mark.servers


def on_chroma(folder: Path, **settings: object) -> Callable[[], Backend]:
    overrides = {
        "roles.vector": "chroma",
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    return lambda: open_backend(folder, load_settings(overrides=overrides))


class TestChroma(VectorConformance):
    @pytest.fixture
    def new_target(self, chroma: ChromaProcess, tmp_path: Path) -> NewTarget:
        numbers = count()
        return lambda: on_chroma(tmp_path / f"db{next(numbers)}", chroma__url=chroma.url)

    @pytest.fixture
    def outage(self, chroma: ChromaProcess) -> Outage:
        @contextlib.contextmanager
        def block() -> Iterator[None]:
            chroma.kill()
            try:
                yield
            finally:
                chroma.start()

        return block


VALUES: tuple[Any, ...] = (
    *(0, 1, 2021, -7, 0.5, 1e300, (1 << 53) + 1, True, False, "", "a", "b", "1"),
    *(["a", "b"], [1, "1", True], [1, 5], [], None, {"deep": 1}, "x" * 300, *HOSTILE),
)
RECORDS = [
    *(Record(id=f"v{n}", text="-", metadata={"year": value}) for n, value in enumerate(VALUES)),
    *(Record(id=f"k{n}", text="-", kind=value) for n, value in enumerate(HOSTILE)),
    Record(
        id="s", text="-", metadata={"source": {"system": "gmail"}, "tags": ["a"], "done": True, "share": 0.25}
    ),
    Record(id="t", text="-", metadata={"source": {"system": "files"}, "tags": ["a", "c"], "done": False}),
]


@pytest.fixture(scope="module")
def collection(chroma: ChromaProcess) -> Any:
    client = chromadb.HttpClient(host="127.0.0.1", port=chroma.port)
    made = client.create_collection("filters", embedding_function=None)
    metadatas: list[Any] = [metadata_of(record) for record in RECORDS]
    made.add(
        ids=[record.id for record in RECORDS], embeddings=[[1.0, 0.0]] * len(RECORDS), metadatas=metadatas
    )
    return made


def found(collection: Any, where: Filter) -> set[str]:
    translated = to_where(where)
    if translated is False:
        return set()
    return set(collection.get(where=None if translated is True else translated, include=[])["ids"])


_numbers = st.one_of(st.integers(-3, 3), st.floats(-1e3, 1e3), st.sampled_from([0.5, 1e300, 2021]))
_scalars = st.sampled_from([value for value in VALUES if isinstance(value, (str, int, float))])
_small = st.one_of(
    _scalars.map(lambda value: field("year") == value),
    st.lists(_scalars, max_size=4).map(lambda values: field("year").is_in(values)),
    st.sampled_from(["year", "kind", "tags", "year.deep"]).map(lambda name: field(name).exists()),
    st.builds(lambda low, include: Range("year", low=low, include_low=include), _numbers, st.booleans()),
    st.builds(lambda low, high: Range("year", low=min(low, high), high=max(low, high)), _numbers, _numbers),
)


@settings(max_examples=150, deadline=None)
@given(
    where=st.one_of(
        filters,
        st.recursive(
            _small,
            lambda parts: st.one_of(
                st.tuples(parts, parts).map(lambda pair: pair[0] & pair[1]),
                st.tuples(parts, parts).map(lambda pair: pair[0] | pair[1]),
                parts.map(lambda part: ~part),
            ),
            max_leaves=5,
        ),
    )
)
def test_a_filter_withholds_no_record_that_matches(collection: Any, where: Filter) -> None:
    for one in (where, Not(where)):
        assert found(collection, one) >= {record.id for record in RECORDS if matches(one, record)}


@settings(max_examples=100, deadline=None)
@given(value=_scalars)
def test_equality_is_exact(collection: Any, value: Any) -> None:
    for where in (field("year") == value, ~(field("year") == value)):
        assert found(collection, where) == {record.id for record in RECORDS if matches(where, record)}


@pytest.mark.parametrize("space", ["l2", "cosine", "ip"])
def test_each_distance_becomes_a_cosine(chroma: ChromaProcess, space: str) -> None:
    client = chromadb.HttpClient(host="127.0.0.1", port=chroma.port)
    made = client.create_collection(
        f"space-{space}",
        embedding_function=None,
        configuration={"hnsw": {"space": space}},  # type: ignore[typeddict-item,unused-ignore]
    )
    made.add(ids=["a", "b", "c"], embeddings=[[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]])
    answer = made.query(query_embeddings=[[1.0, 0.0]], n_results=3, include=["distances"])
    distances = answer["distances"]
    assert distances is not None
    assert answer["ids"] == [["a", "b", "c"]]
    assert similarities(np.array(distances[0]), space) == pytest.approx([1.0, 0.6, -1.0], abs=1e-6)


def test_a_folder_serves_as_well(tmp_path: Path) -> None:
    target = on_chroma(tmp_path / "db", chroma__path=str(tmp_path / "chroma"))
    with sennit.open(target()) as db:
        db.add([Record(id=f"n{n}", text=f"river {n}", kind="note" if n % 2 else "mail") for n in range(6)])
        db.admin.flush()
        found = db.search("river", recipe="vector", filters=field("kind") == "note")
        assert not found.degraded
        assert {hit.id for hit in found} == {"n1", "n3", "n5"}


def test_a_collection_that_was_deleted_degrades_the_answer_until_it_is_back(
    tmp_path: Path, chroma: ChromaProcess
) -> None:
    with sennit.open(on_chroma(tmp_path / "db", chroma__url=chroma.url)()) as db:
        db.add([Record(id=f"n{n}", text=f"river {n}") for n in range(6)])
        db.admin.flush()
        client = chromadb.HttpClient(host="127.0.0.1", port=chroma.port)
        for one in client.list_collections():
            if one.name.startswith("sennit-") and one.count() == 6:
                client.delete_collection(one.name)
        assert db.search("river").degraded
        db.admin.flush()
        result = db.search("river")
        assert not result.degraded
        assert len(result) == 6


KEYS_ONE_IN = 20
"""A condition on a field takes the server a millisecond. It sees only a hash of the name."""


def test_every_naughty_string_in_every_field_filter_and_identifier(
    tmp_path: Path, chroma: ChromaProcess, naughty_strings: list[str]
) -> None:
    with sennit.open(on_chroma(tmp_path / "db", chroma__url=chroma.url)()) as db:
        assert_survives(db, naughty_strings, "vector", keys_one_in=KEYS_ONE_IN)


def test_whatever_the_client_raises_is_a_failed_source(chroma: ChromaProcess) -> None:
    client = ChromaClient(ChromaSettings(url=chroma.url))
    raised = [Exception("503 from a proxy"), RuntimeError("the client has been closed"), KeyError("system")]
    for one in raised:

        def fail(_: Any, one: Exception = one) -> None:
            raise one

        with pytest.raises(SourceError, match="Chroma at"):
            client.call(fail)
    client.close()


def test_a_check_says_what_is_wrong_in_words(chroma: ChromaProcess) -> None:
    assert ChromaServer(ChromaSettings(url=chroma.url), "00").check()[0].level == "ok"
    (finding,) = ChromaServer(ChromaSettings(url=f"http://127.0.0.1:{free_port()}"), "00").check()
    assert finding.level == "problem"
    assert "Is it running?" in finding.message or "running" in finding.message
