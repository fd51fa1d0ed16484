"""Stages for code search: boosts, penalties, and one result per file."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ranking.code import CodeRanking, PerFile, match_names
from sennit.ranking.code_names import QueryWords
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage_from_dict, stage_to_dict
from sennit.records import Record

OUTLINES = "code_files"


def entity(path: str, qualified: str, role: str = "source") -> Record:
    metadata = {"qualified": qualified, "role": role}
    return Record(id=f"{path}::{qualified}", text="…", collection="code", path=path, metadata=metadata)


def outline(path: str, role: str = "source") -> Record:
    return Record(id=path, text="…", collection=OUTLINES, path=path, metadata={"role": role})


Ranked = tuple[Ranking, StageContext]


def ranking(query: str, listed: list[tuple[Record, float]], limit: int = 10) -> Ranked:
    listed = sorted(listed, key=lambda pair: -pair[1])
    records = [record for record, _ in listed]
    scores = np.array([score for _, score in listed])
    return Ranking(np.arange(len(listed), dtype=np.int64), scores), StageContext(
        query=query,
        limit=limit,
        now=datetime(2026, 1, 1, tzinfo=UTC),
        records=lambda keys: {key: records[key] for key in keys},
    )


def ids(ranked: Ranked, staged: StageOutput) -> list[str]:
    return [record.id for record in ranked[1].read(staged.keys)]


@pytest.mark.parametrize("stage", [CodeRanking(), PerFile()])
def test_order_is_the_same_without_explain(stage: CodeRanking | PerFile) -> None:
    listed = [(entity("a.py", "f"), 0.9), (entity("a.py", "g"), 0.8), (outline("a.py"), 0.7)]
    ranked = ranking("where is a", [*listed, (entity("test_a.py", "g", "test"), 0.6)])
    told, untold = stage.apply(*ranked), stage.apply(ranked[0], replace(ranked[1], explain=False))
    assert told.keys.tolist() == untold.keys.tolist()
    assert told.scores.tolist() == untold.scores.tolist()
    assert told.reasons
    assert not untold.reasons


def test_record_gets_the_score_of_its_file_outline() -> None:
    ranked = ranking(
        "anything", [(entity("a.py", "f"), 0.9), (entity("b.py", "g"), 0.8), (outline("b.py"), 0.5)]
    )
    staged = CodeRanking(outline_weight=2.0).apply(*ranked)
    assert ids(ranked, staged)[0] == "b.py::g"
    assert staged.scores[0] == pytest.approx(0.8 + 2 * 0.5)
    assert staged.reasons[1] == "+1.00 by the outline of its file"


def test_source_file_gets_the_outline_score_of_the_header_that_declares_it() -> None:
    listed = [
        (entity("db/other.cc", "g"), 0.9),
        (entity("db/table.cc", "f"), 0.6),
        (outline("include/table.h", "stub"), 0.8),
        (outline("include/other.h", "source"), 0.8),
    ]
    ranked = ranking("anything", listed)
    staged = CodeRanking().apply(*ranked)
    assert ids(ranked, staged)[0] == "db/table.cc::f"
    assert staged.scores[0] == pytest.approx(0.6 + 0.8)
    assert ids(ranked, staged)[-1] == "include/table.h"


def test_file_in_a_folder_that_the_query_names_comes_first() -> None:
    ranked = ranking(
        "OpenAPI schema", [(entity("web/app.py", "f"), 0.5), (entity("web/openapi/u.py", "g"), 0.4)]
    )
    staged = CodeRanking(file_name_boost=0.5).apply(*ranked)
    assert ids(ranked, staged) == ["web/openapi/u.py::g", "web/app.py::f"]
    assert staged.scores[0] == pytest.approx(0.4 + 0.5 * 0.5)


def test_best_record_of_a_file_replaces_its_outline() -> None:
    ranked = ranking(
        "anything", [(outline("a.py"), 0.9), (outline("b.py"), 0.8), (entity("a.py", "f"), -0.5)]
    )
    staged = CodeRanking().apply(*ranked)
    assert ids(ranked, staged) == ["a.py::f", "b.py"]
    assert staged.scores[0] == pytest.approx(0.9)
    assert staged.dropped[0].reason == "a record of the same file was kept: a.py::f"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Flask", "a.py::Flask"),
        ("where is Flask configured", "a.py::Flask"),
        ("what does flask do", "a.py::Flask"),
        ("how does read_file work", "c.py::Reader.read_file"),
        ("`Reader.read_file`", "c.py::Reader.read_file"),
        ("Writer.read_file", "b.py::helper"),
        ("io::Reader::read_file", "c.py::Reader.read_file"),
    ],
)
def test_the_definition_of_a_named_symbol_comes_first(query: str, first: str) -> None:
    ranked = ranking(
        query,
        [
            (entity("b.py", "helper"), 0.9),
            (entity("a.py", "Flask"), 0.5),
            (entity("c.py", "Reader.read_file"), 0.4),
        ],
    )
    assert ids(ranked, CodeRanking().apply(*ranked))[0] == first


@pytest.mark.parametrize(
    ("query", "path", "share"),
    [
        ("session handling", "src/sessions.py", 1.0),
        ("authentication of users", "auth.go", 1.0),
        ("parse JSON", "toJsonSchema.ts", 1 / 3),
        ("how routes are matched", "routing.rs", 1.0),
        ("dependency injection", "dependencies/__init__.py", 1.0),
        ("anything", "__init__.py", 0.0),
        ("go", "golang.c", 0.0),
        ("hosts that bypass the proxy", "noproxy.c", 1.0),
        ("bar", "crowbar.c", 0.0),
    ],
)
def test_file_name_boost_is_proportional_to_the_words_in_the_query(
    query: str, path: str, share: float
) -> None:
    ranked = ranking(query, [(entity(path, "f"), 0.25)])
    assert CodeRanking(file_name_boost=0.5).apply(*ranked).scores[0] == pytest.approx(0.25 + 0.5 * share)


def test_file_with_more_hits_ranks_before_an_equal_one() -> None:
    listed = [(entity("a.py", "f"), 0.9), (entity("b.py", "g"), 0.9)]
    listed += [(entity("b.py", f"g{n}"), 0.4) for n in range(5)]
    ranked = ranking("anything", listed)
    staged = CodeRanking().apply(*ranked)
    assert ids(ranked, staged)[0] == "b.py::g"
    # The next three records count.
    assert staged.scores[0] == pytest.approx(0.9 + 0.15 * 3 * 0.4)
    assert staged.reasons[1] == "+0.18 by further hits in its file"
    alone = CodeRanking(context_boost=0.0).apply(*ranked)
    assert ids(ranked, alone)[0] == "a.py::f"


def test_tests_and_reexports_rank_after_what_they_serve() -> None:
    ranked = ranking(
        "session", [(entity("test_session.py", "f", "test"), 0.6), (entity("other.py", "g"), 0.5)]
    )
    staged = CodeRanking(secondary_penalty=0.4).apply(*ranked)
    assert ids(ranked, staged) == ["other.py::g", "test_session.py::f"]
    assert staged.scores[1] == pytest.approx(0.6 - 0.4)


def test_test_function_in_a_source_file_ranks_after_the_code() -> None:
    ranked = ranking(
        "x", [(entity("add.rs", "tests.adds", "test"), 0.6), (entity("add.rs", "add"), 0.5)], limit=2
    )
    staged = CodeRanking(context_boost=0.0).apply(*ranked)
    assert ids(ranked, staged) == ["add.rs::add", "add.rs::tests.adds"]
    assert staged.scores.tolist() == pytest.approx([0.5, 0.6 - 1.0])


def test_the_best_of_each_file_comes_first() -> None:
    listed = [(entity("a.py", name), 0.9 - at / 10) for at, name in enumerate("fgh")]
    ranked = ranking("x", [*listed, (entity("b.py", "k"), 0.1)], limit=4)
    assert ids(ranked, PerFile().apply(*ranked)) == ["a.py::f", "b.py::k", "a.py::g", "a.py::h"]
    assert ids(ranked, PerFile(records_per_file=2).apply(*ranked)) == [
        "a.py::f",
        "a.py::g",
        "b.py::k",
        "a.py::h",
    ]


def test_record_without_a_path_counts_as_its_own_file() -> None:
    listed = [(Record(id=name, text="…"), score) for name, score in (("a", 0.3), ("b", 0.2))]
    ranked = ranking("x", listed)
    assert ids(ranked, PerFile().apply(*ranked)) == ["a", "b"]


@pytest.mark.parametrize(
    "value",
    [CodeRanking(), CodeRanking(secondary_roles=("test",), outline_weight=0.0), PerFile(records_per_file=3)],
)
def test_a_stage_is_read_back_from_its_table(value: CodeRanking | PerFile) -> None:
    assert stage_from_dict(stage_to_dict(value)) == value


@pytest.mark.parametrize(
    "table", [{"definition_boost": -1.0}, {"outline_weight": float("nan")}, {"secondary_penalty": "much"}]
)
def test_invalid_number_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be a number of at least 0"):
        stage_from_dict({"stage": "code", **table})
    with pytest.raises(ValueError, match="records_per_file must be"):
        PerFile(records_per_file=0)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.floats(-2, 2)), unique_by=lambda t: t[:2]),
    st.integers(1, 12),
    st.integers(1, 3),
)
def test_per_file_keeps_all_records_and_interleaves_files(
    drawn: list[tuple[int, int, float]], limit: int, most: int
) -> None:
    listed = [(entity(f"{file}.py", f"f{at}") if at else outline(f"{file}.py"), s) for file, at, s in drawn]
    ranked = ranking("f1 of 3", listed, limit)
    sensed = CodeRanking().apply(*ranked)
    assert {*sensed.keys.tolist(), *sensed.dropped} == set(ranked[0].keys.tolist())
    assert (np.diff(sensed.scores) <= 0).all()
    after = ranking(
        "f1 of 3", list(zip(ranked[1].read(sensed.keys), sensed.scores.tolist(), strict=True)), limit
    )
    staged = PerFile(records_per_file=most).apply(*after)
    assert sorted(staged.keys.tolist()) == sorted(after[0].keys.tolist())
    shown = [record.path for record in after[1].read(staged.keys)][:limit]
    records = after[1].read(after[0].keys)
    files = len({record.path for record in records})
    firsts = sum(min(most, sum(r.path == f for r in records)) for f in {r.path for r in records})
    head = shown[: min(limit, firsts)]
    assert all(head.count(path) <= most for path in head) or files == 0


@pytest.mark.parametrize("query", ["suggest a similar command", "how are similar commands suggested"])
def test_a_query_that_nearly_spells_a_name_finds_it(query: str) -> None:
    listed = [
        (entity("a.go", "Command.Execute"), 1.4),
        (entity("b.go", "Command.Find"), 1.2),
        (entity("c.go", "suggestSimilarCommand"), 0.9),
        (entity("d.go", "Command.commandPath"), 0.8),
    ]
    ranked = ranking(query, listed)
    staged = CodeRanking(file_name_boost=0).apply(*ranked)
    assert ids(ranked, staged)[0] == "c.go::suggestSimilarCommand"
    assert "by its name suggestSimilarCommand" in staged.reasons[2]
    assert (
        ids(ranked, CodeRanking(file_name_boost=0, name_boost=0).apply(*ranked))[0] == "a.go::Command.Execute"
    )


def test_a_named_symbol_gives_similar_names_no_boost() -> None:
    listed = [(entity("a.py", "Dependant"), 1.0), (entity("b.py", "Depends"), 0.5)]
    ranked = ranking("Depends", listed)
    assert ids(ranked, CodeRanking(file_name_boost=0).apply(*ranked))[0] == "b.py::Depends"


def test_an_older_version_ranks_below_the_newer_one_unless_the_query_names_it() -> None:
    listed = [
        (entity("src/v3/types.ts", "parse"), 1.0),
        (entity("src/v4/core.ts", "parse"), 0.8),
        (entity("lib/v1/main.py", "parse"), 0.7),
        (entity("lib/main.py", "parse"), 0.6),
        (entity("api/v1/users.go", "parse"), 0.55),
    ]
    ranked = ranking("parsing of values", listed)
    assert [one.rpartition("::")[0] for one in ids(ranked, CodeRanking().apply(*ranked))] == [
        "src/v4/core.ts",
        "lib/main.py",
        "api/v1/users.go",
        "src/v3/types.ts",
        "lib/v1/main.py",
    ]
    named = ranking("parsing of values in v3", listed)
    assert ids(named, CodeRanking().apply(*named))[0] == "src/v3/types.ts::parse"


@given(
    st.lists(st.sampled_from(["parse", "parseToken", "Outer.parse_url", "x", ""]), max_size=6),
    st.text(max_size=40),
)
def test_a_name_match_is_between_0_and_1(names: list[str], query: str) -> None:
    for at, share in match_names(QueryWords(query), names).items():
        assert names[at]
        assert 0 < share <= 1 + 1e-9
