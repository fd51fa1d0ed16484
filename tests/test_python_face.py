"""The Python interface: what it takes, what it returns, and how values look."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sennit
from sennit import Caller, Record, SearchRequest
from sennit.errors import EmbeddingError, FilterError, InvalidInput, MissingExtra, NotFound
from sennit.filters import BUILTIN_FIELDS, EVERYTHING, compared_fields, flatten, matches
from sennit.hydration import HydrationPlan
from sennit.stores.contract import ScoredKeys
from sources.test_custom_sources import RECIPE, CustomSource
from stores.embedding_server import EmbeddingServer
from test_filters import filters, records


@pytest.fixture
def db() -> Iterator[sennit.Database]:
    with sennit.open(":memory:", privacy__open=True) as opened:
        yield opened


def ids(found: sennit.SearchResult) -> list[str]:
    return [hit.id for hit in found]


# Collections


def test_collection_takes_one_name_or_several(db: sennit.Database) -> None:
    db.add([Record(id=name, text="vines", collection=name) for name in ("a", "b", "c")])
    assert ids(db.search("vines", collection="a")) == ["a"]
    assert set(ids(db.search("vines", collection=["a", "b"]))) == {"a", "b"}
    assert SearchRequest("x", collection="a") == SearchRequest("x", collections=["a"])
    assert db.why("vines", "a", collection="a").kept
    with pytest.raises(InvalidInput, match="collection or collections, not both"):
        db.search("vines", collection="a", collections=["b"])
    with pytest.raises(InvalidInput, match="collections must be a list"):
        db.search("vines", collection=5)  # type: ignore[arg-type]


# Adding


def test_add_takes_dicts_and_returns_their_ids(db: sennit.Database) -> None:
    written = db.add(
        [{"text": "Prune the vines", "metadata": {"year": 2026}}, {"id": "b", "text": "Water them"}]
    )
    assert written.added == 2
    made, given_id = written.ids
    assert given_id == "b"
    stored = db.get(made)
    assert stored is not None
    assert stored.metadata == {"year": 2026}


def test_the_same_dict_is_stored_once(db: sennit.Database) -> None:
    first = db.add([{"text": "Prune the vines"}])
    again = db.add([{"text": "Prune the vines", "id": None}])
    other = db.add([{"text": "Prune the vines", "collection": "garden"}])
    assert again.ids == first.ids != other.ids
    assert again.unchanged == 1
    assert len(db) == 2


def test_ids_are_those_of_the_caller_not_of_the_store(db: sennit.Database) -> None:
    tenant = Caller(tenant="acme", everything=True)
    assert db.add([{"id": "1", "text": "vines", "tenant": "acme"}], caller=tenant).ids == ("1",)
    assert db.add_facts([sennit.Fact(subject="a", relation="b", object="c", id="f")]).ids == ("f",)


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"text": "x"}, "add.. takes a list"),
        ([5], "dicts, not int"),
        ([{"txt": "x"}], "no field 'txt'"),
        ([{"title": "x"}], "needs the field 'text'"),
    ],
)
def test_add_refuses_what_is_no_record(db: sennit.Database, wrong: Any, advice: str) -> None:
    if isinstance(wrong, dict):
        wrong = "text"
    with pytest.raises(InvalidInput, match=advice):
        db.add(wrong)
    assert len(db) == 0


# Removing


def test_remove_takes_a_filter(db: sennit.Database) -> None:
    db.add([Record(id=f"d{n}", text="vines", path=f"docs/{n}.md") for n in range(3)])
    db.add([Record(id="s", text="vines", path="src/a.py")])
    assert db.remove(where='path like "docs/*"') == 3
    assert [record.id for record in db] == ["s"]
    assert db.remove(where={"path": "none"}) == 0


@given(st.lists(records, min_size=1, max_size=6), filters)
@settings(max_examples=40)
def test_remove_removes_what_the_filter_accepts(found: list[Record], where: sennit.Filter) -> None:
    with sennit.open(":memory:", embedding__provider="none") as db:
        stored = {f"r{n}": Record.from_dict({**one.to_dict(), "id": f"r{n}"}) for n, one in enumerate(found)}
        db.add(stored.values())
        known = {*BUILTIN_FIELDS, *(name for record in stored.values() for name, _ in flatten(record))}
        if not compared_fields(where) <= known or where == EVERYTHING:
            return
        removed = db.remove(where=where)
        left = {name for name, record in stored.items() if not matches(where, record)}
        assert {record.id for record in db} == left
        assert removed == len(stored) - len(left)


def test_a_caller_removes_only_what_it_may_see(db: sennit.Database) -> None:
    db.add([Record(id="a", text="vines"), Record(id="p", text="vines", sensitivity="private")])
    db.add([Record(id="t", text="vines", tenant="acme")])
    assert db.remove(where="all()", caller=Caller()) == 1
    assert {record.id for record in db} == {"p"}
    db.add([Record(id="a", text="vines"), Record(id="h", text="x", metadata={"z": 1}, sensitivity="private")])
    with pytest.raises(FilterError, match="No record has the field"):
        db.remove(where="z = 1", caller=Caller())
    assert db.remove(where="all()", caller=Caller(tenant="acme")) == 1


@pytest.mark.parametrize("where", ["", " ", {}, sennit.filters.EVERYTHING])
def test_an_empty_filter_removes_nothing(db: sennit.Database, where: Any) -> None:
    db.add([Record(id="a", text="vines")])
    with pytest.raises(InvalidInput, match=r"all\(\)"):
        db.remove(where=where)
    assert len(db) == 1
    assert db.remove(where="all()") == 1


def test_remove_takes_ids_or_a_filter(db: sennit.Database) -> None:
    with pytest.raises(InvalidInput, match="a list of ids, or a filter"):
        db.remove()
    with pytest.raises(InvalidInput, match="a list of ids, or a filter"):
        db.remove(["a"], where="all()")


def test_count_counts_what_a_filter_accepts_and_the_caller_may_see(db: sennit.Database) -> None:
    db.add(
        [Record(id="a", text="x", kind="note"), Record(id="p", text="x", kind="note", sensitivity="private")]
    )
    assert db.count() == len(db) == 2
    assert db.count("kind = 'note'", caller=Caller()) == 1
    with pytest.raises(FilterError, match="No record has the field"):
        db.count("year = 2026")


# Searching


def test_search_many_answers_in_order_from_one_snapshot(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([Record(id="a", text="vines"), Record(id="b", text="boiler")])

        def queries() -> Iterator[str | SearchRequest]:
            yield "vines"
            yield SearchRequest("boiler", limit=1)

        single = [db.search("vines", limit=2, explain=True), db.search("boiler", limit=1)]
        several = db.search_many(queries(), limit=2, explain=True)
        assert [ids(one) for one in several] == [ids(one) for one in single]
        assert several[0].trace is not None
        assert several[1].trace is None
        assert db.search_many([]) == []


def test_searches_of_search_many_do_not_see_what_is_written_between_them(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as other:

        def write(_: object) -> ScoredKeys:
            other.add([Record(id=f"late{len(other)}", text="vines")])
            return ScoredKeys.empty()

        with sennit.open(tmp_path / "db", sources={"mine": CustomSource(write, inline=True)}) as db:
            db.add([Record(id="a", text="vines")])
            assert [ids(one) for one in db.search_many(["vines"] * 3, recipe=RECIPE)] == [["a"]] * 3
            assert len(db) == 4


def test_search_many_refuses_several_callers_and_a_single_text(db: sennit.Database) -> None:
    with pytest.raises(InvalidInput, match="different callers"):
        db.search_many([SearchRequest("a", caller=Caller()), SearchRequest("b")])
    with pytest.raises(InvalidInput, match="put a single one into a list"):
        db.search_many("vines")
    with pytest.raises(NotFound, match="no recipe"):
        db.search_many(["a", SearchRequest("b", recipe="nope")])


# Waiting


def test_wait_returns_when_every_record_has_its_vector(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with closing(EmbeddingServer()) as server, sennit.open(tmp_path / "db", **server.settings) as db:
        db.add([Record(id=f"n{n}", text=f"note number {n}") for n in range(100)])
        assert db.wait(timeout=60, progress=lambda done, total: seen.append((done, total)))
        assert db.admin.pending_vectors() == 0
        assert seen[-1] == (100, 100)
        assert len(db.search("note", recipe="vector", limit=5)) == 5


def test_wait_raises_the_error_of_a_model_that_cannot_be_used(tmp_path: Path) -> None:
    with sennit.open(
        tmp_path / "db",
        embedding__provider="openai",
        embedding__base_url="http://127.0.0.1:9/v1",
        embedding__retries=0,
    ) as db:
        db.add([Record(id="a", text="vines")])
        with pytest.raises(EmbeddingError):
            db.wait(timeout=60)


def test_wait_has_nothing_to_wait_for_with_a_local_model(db: sennit.Database) -> None:
    db.add([Record(id="a", text="vines")])
    assert db.wait(timeout=60)


# The mistakes of a first hour


@pytest.mark.parametrize("method", ["search", "search_many", "ask", "plan"])
def test_an_argument_that_a_method_does_not_have_is_refused_with_those_it_has(
    db: sennit.Database, method: str
) -> None:
    query = ["vines"] if method == "search_many" else "vines"
    call: Any = getattr(db, method)
    with pytest.raises(
        TypeError, match=rf"^{method}\(\) has no argument 'projct'. Did you mean 'project'\? Arguments: "
    ):
        call(query, projct="notes")


def test_a_limit_may_be_a_whole_number_of_numpy(db: sennit.Database) -> None:
    db.add([Record(id=name, text="vines") for name in "abc"])
    found = db.search("vines", limit=cast(int, np.int64(2)), neighbours=cast(int, np.int8(1)))
    assert len(found) == 2
    for limit in ("2", 2.0, True, np.float64(2), 0):
        with pytest.raises(InvalidInput, match="limit must be a whole number from 1 to 1,000"):
            db.search("vines", limit=cast(int, limit))


def test_a_record_takes_a_path_object() -> None:
    assert Record(id="a", text="x", path=cast(str, Path("notes") / "a.md")).path == "notes/a.md"


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ({"b", "a"}, "not set; make it a list: sorted(value)"),
        (np.int64(3), "not int64; give value.tolist()"),
        (np.array([1, 2]), "not ndarray; give value.tolist()"),
        (date(2026, 3, 1), "not date; give value.isoformat()"),
        (Path("x"), "must be a JSON value, not "),
    ],
)
def test_metadata_that_is_no_json_says_how_it_becomes_it(value: Any, advice: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(advice)):
        Record(id="a", text="x", metadata={"v": value})
    Record(id="a", text="x", metadata={"v": (1, "two")})


@pytest.mark.parametrize("target", ["", None, 5, b"notes"])
def test_what_is_no_place_of_a_database_is_named(target: Any) -> None:
    with pytest.raises(InvalidInput, match="must be the path of a folder"):
        sennit.open(target)


def test_a_single_dict_is_not_taken_for_a_list(db: sennit.Database) -> None:
    with pytest.raises(InvalidInput, match="not dict; put a single one into a list"):
        db.add(cast(list[dict[str, Any]], {"id": "a", "text": "vines"}))


def test_a_database_is_not_pickled_and_says_what_to_do(db: sennit.Database) -> None:
    for copies in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"open it again where it is used, with sennit.open\(\)"):
            copies(db)


def test_a_database_that_nobody_awaited_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        opening: Any = sennit.aopen(tmp_path / "notes")
        with pytest.raises(AttributeError, match=r"not open yet.*'async with sennit.aopen"):
            opening.search("vines")
        async with opening as db:
            assert not await db.search("vines")

    asyncio.run(main())


# Results as values


def test_equal_searches_have_equal_results(db: sennit.Database) -> None:
    db.add([Record(id=name, text=f"vines {name}") for name in "abc"])
    assert db.search("vines") == db.search("vines")
    assert db.search("vines", explain=True) == db.search("vines", explain=True)
    assert db.search("vines") != db.search("vines", limit=2)


@pytest.mark.parametrize("recipe", ["default", "rrf", "memory", "artifacts", "docs", "code", "keyword"])
def test_a_result_with_its_trace_can_be_pickled_and_copied(db: sennit.Database, recipe: str) -> None:
    db.add_turns([sennit.Turn(session="s", speaker="Ana", text=f"vines in row {n}") for n in range(20)])
    collections = ("docs", "code", "memory")
    db.add(
        [
            Record(id=f"{name}-{n}", text=f"vines in row {n}", collection=name)
            for n in range(20)
            for name in collections
        ]
    )
    found = db.search("vines", recipe=recipe, explain=True, limit=3)
    assert found.trace is not None
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert again == found
        assert again.trace is not None
        assert again.trace.to_dict() == found.trace.to_dict()
        assert [hit.explanation for hit in again] == [hit.explanation for hit in found]


def test_a_trace_has_a_short_repr(db: sennit.Database) -> None:
    db.add([Record(id=str(n), text=f"vines {n}") for n in range(20)])
    trace = db.search("vines", explain=True).trace
    assert repr(trace) == ("<Trace 'vines': 20 candidates of keyword, vector, links; rescore, limit>")


# How values look


def test_a_repr_is_short_and_names_the_value(db: sennit.Database, tmp_path: Path) -> None:
    long = Record(id="m1", collection="memory", text="We picked March. " * 1000, metadata={"year": 2026})
    db.add([long])
    assert repr(long) == (
        "Record(id='m1', text='We picked March. We picked March. We picked March. We picked'… (17,000 characters), "
        "collection='memory', metadata={'year': 2026})"
    )
    assert repr(Record(id="a", text="short")) == "Record(id='a', text='short')"
    found = db.search("March")
    assert repr(found).startswith("<SearchResult 'March' by default: 1 hit [m1 ")
    assert repr(found[0]).startswith("<Hit 1: 'm1' ")
    assert str(found).startswith("  1. ")
    assert "\n" not in str(found)
    assert str(db.search("nothing", filters="kind = 'none'")) == "No results"
    fact = sennit.Fact(subject="Rajesh", relation="plans", object="Goa", id="f1")
    assert repr(fact) == "Fact('Rajesh -> Goa: plans', id='f1')"
    plan = HydrationPlan(query="fix it", max_tokens=4000, max_entities=10, tokenizer="t")
    assert repr(plan) == "<HydrationPlan 'fix it': 0 entities, 0 of 4,000 tokens, 0 dropped>"
    assert plan.prompt == ""
    opened = sennit.open(tmp_path / "notes")
    assert repr(opened) == f"<sennit.Database {str(tmp_path / 'notes')!r}>"
    opened.close()
    assert repr(opened).endswith("(closed)>")


def test_the_context_of_the_memory_prints_as_its_block(db: sennit.Database) -> None:
    db.memory.remember("Priya prefers the aisle seat")
    context = db.memory.context("Where does Priya sit?")
    assert "aisle seat" in str(context)
    assert str(context) == context.block


# Results as data


@pytest.fixture
def found(db: sennit.Database) -> sennit.SearchResult:
    db.add(
        [
            Record(
                id="a",
                text="vines",
                metadata={"year": 2026, "tags": ["x", "y"], "source": {"system": "mail"}},
            ),
            Record(id="b", text="vines and more", metadata={"year": "unknown", "mixed": [1, "a"]}),
            Record(id="c", text="vines in March", timestamp="2026-03-01"),  # type: ignore[arg-type]
        ]
    )
    return db.search("vines")


def test_a_result_becomes_dicts(found: sennit.SearchResult) -> None:
    assert [one["id"] for one in found.to_dicts()] == ids(found)
    assert found.to_dicts() == found.to_dict()["hits"]


def test_a_result_becomes_a_pandas_frame(found: sennit.SearchResult) -> None:
    frame = found.to_pandas()
    assert frame["id"].tolist() == ids(found)
    by_id = frame.set_index("id")
    assert by_id.loc["a", "metadata.tags"] == ["x", "y"]
    assert by_id.loc["a", "metadata.source"] == '{"system": "mail"}'
    assert by_id.loc["c", "timestamp"].year == 2026


def test_a_result_becomes_a_polars_frame(found: sennit.SearchResult, db: sennit.Database) -> None:
    frame = found.to_polars()
    assert frame["id"].to_list() == ids(found)
    assert frame["score"].to_list() == [hit.score for hit in found]
    rows = {row["id"]: row for row in frame.to_dicts()}
    assert rows["a"]["metadata.tags"] == ["x", "y"]
    assert rows["b"]["metadata.year"] == "unknown"
    assert db.search("vines", filters="kind = 'none'").to_polars().columns[:3] == [
        "rank",
        "score",
        "relevance",
    ]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named_with_its_command(
    found: sennit.SearchResult, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=f"pip install {package}"):
        getattr(found, f"to_{package}")()


# What a new process imports


def test_a_search_imports_only_what_a_search_needs() -> None:
    code = (
        "import sys, sennit\n"
        "with sennit.open(':memory:', privacy__open=True) as db:\n"
        "    db.add([sennit.Record(id='a', text='vines')])\n"
        "    assert db.search('vines')\n"
        "    assert db.files.project_at('.') is None\n"
        "print(*sorted(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {".".join(name.split(".")[:2]) for name in found.stdout.split()}
    assert packages.isdisjoint({"asyncio", "faiss", "filelock", "ssl", "sennit.hydration", "sennit.llm"})
    assert packages.isdisjoint({"sennit.ingest", "sennit.periods"})
    modules = set(found.stdout.split())
    assert modules.isdisjoint({"sennit.ranking.features", "sennit.ranking.ranker", "sennit.engine.inventory"})
