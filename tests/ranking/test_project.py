"""Ranking in a mixed project: by role, without outlines, and with few records of each file first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit.ranking.project import ProjectRanking, is_about_code
from sennit.ranking.rescore import Rescore
from sennit.ranking.stages import Ranking, StageContext, StageOutput
from sennit.recipes import BUILTIN_RECIPES
from sennit.records import Record

HOW_TO = "how do I retry a failed job"


def record(name: str, role: str | None, path: str | None = "", **more: object) -> Record:
    metadata = {"folder": "f", "role": role} if role else {}
    own = f"{name}.md" if path == "" else path
    return Record(id=name, text=name, path=own, metadata={**metadata, **more.pop("metadata", {})}, **more)  # type: ignore[dict-item,arg-type]


def rank(records: list[Record], scores: list[float], query: str = HOW_TO, limit: int = 10) -> StageOutput:
    context = StageContext(
        query=query,
        limit=limit,
        now=datetime.now(UTC),
        records=lambda keys: {key: records[key] for key in keys},
    )
    ranking = Ranking(np.arange(len(records)), np.array(scores))
    return ProjectRanking().apply(ranking, context)


def names(output: StageOutput, records: list[Record]) -> list[str]:
    return [records[key].id for key in output.keys.tolist()]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("how do I retry a failed job", False),
        ("What is new in version 2.0?", False),
        ("set the port in sennit.toml", False),
        ("see example.com for more, e.g. the guide", False),
        ("How do I use Flask?", False),
        ("where is retry implemented", True),
        ("parse_filter", True),
        ("what does `enqueue` return", True),
        ("WorkerPool", True),
        ("fix queue.py", True),
        ("std::vector of jobs", True),
        ("call retry() twice", True),
        ("class Transaction", True),
        ("app.route decorator", True),
    ],
)
def test_a_question_about_code_names_code(query: str, expected: bool) -> None:
    assert is_about_code(query) == expected


def test_a_how_to_question_ranks_documentation_then_source_then_tests() -> None:
    records = [
        record("test", "test"),
        record("source", "source"),
        record("docs", "docs"),
        record("log", "changelog"),
    ]
    found = rank(records, [0.60, 0.59, 0.58, 0.57])
    assert names(found, records) == ["docs", "source", "test", "log"]
    found = rank(records, [0.60, 0.59, 0.58, 0.57], "where is retry implemented")
    assert names(found, records)[0] == "source"


def test_a_clearly_better_result_stays_first_whatever_its_role() -> None:
    records = [record("test", "test"), record("docs", "docs")]
    assert names(rank(records, [0.9, 0.3]), records) == ["test", "docs"]


def test_an_outline_gives_way_to_another_record_of_its_file() -> None:
    records = [
        record("outline", "source", "a.py", collection="code_files"),
        record("entity", "source", "a.py", collection="code"),
        record("alone", "source", "b.py", collection="code_files"),
    ]
    found = rank(records, [0.9, 0.5, 0.4])
    assert names(found, records) == ["entity", "alone"]
    assert found.scores[0] == pytest.approx(0.9 * 0.9)
    assert found.dropped[0].lost_to == 1


def test_one_file_does_not_fill_the_answer() -> None:
    records = [record(f"a{n}", "docs", "a.md") for n in range(5)] + [record("b", "docs", "b.md")]
    found = rank(records, [0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    assert names(found, records) == ["a0", "a1", "b", "a2", "a3", "a4"]
    assert found.reasons[2] == "after the best of other files"


def test_an_example_and_its_section_are_shown_once() -> None:
    section = record("section", "docs", "a.md", collection="pages", lines=(3, 20))
    example = record("example", "docs", "a.md", collection="examples", lines=(8, 12))
    elsewhere = record("elsewhere", "docs", "b.md", collection="examples", lines=(8, 12))
    later = record("later", "docs", "a.md", collection="pages", lines=(21, 30))
    records = [section, example, elsewhere, later]
    found = rank(records, [0.9, 0.8, 0.7, 0.6])
    assert names(found, records) == ["section", "elsewhere", "later"]
    assert found.dropped[1].reason == "a better record has the same lines: section"
    found = rank(records, [0.8, 0.9, 0.7, 0.6])
    assert names(found, records) == ["example", "elsewhere", "later"]


def test_a_class_and_its_method_are_two_records() -> None:
    records = [
        record("Worker", "source", "a.py", collection="code", lines=(1, 20)),
        record("Worker.run", "source", "a.py", collection="code", lines=(5, 9)),
    ]
    assert names(rank(records, [0.9, 0.8]), records) == ["Worker", "Worker.run"]


def test_the_definition_of_a_named_symbol_comes_first() -> None:
    records = [
        record("use", "source", "use.py", metadata={"qualified": "Store.open"}),
        record("definition", "source", "transaction.py", metadata={"qualified": "Transaction"}),
    ]
    found = rank(records, [0.6, 0.5], "class Transaction")
    assert names(found, records) == ["definition", "use"]
    assert "it defines Transaction" in found.reasons[1]


@given(
    st.lists(st.tuples(st.floats(-1, 2), st.sampled_from([None, "a.md", "b.md"]), st.booleans()), max_size=12)
)
def test_records_that_are_not_from_indexed_files_keep_their_order_and_scores(
    drawn: list[tuple[float, str | None, bool]],
) -> None:
    drawn.sort(key=lambda one: -one[0])
    records = [
        Record(id=f"{n:02}", text="", path=path, metadata={"role": "user"} if chat else {})
        for n, (_, path, chat) in enumerate(drawn)
    ]
    found = rank(records, [score for score, _, _ in drawn])
    assert found.keys.tolist() == list(range(len(records)))
    assert found.scores.tolist() == [score for score, _, _ in drawn]


@pytest.mark.parametrize(
    "options", [{"weights": {"docs": -1}}, {"records_per_file": 0}, {"definition_weight": -1}]
)
def test_invalid_settings_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ProjectRanking(**options)  # type: ignore[arg-type]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sennit.Database]:
    with sennit.open(tmp_path / "db") as opened:
        yield opened


def test_a_database_without_files_ranks_as_without_the_stage(db: sennit.Database) -> None:
    texts = ["retry a failed job", "a job that failed", "retry", "job queue", "how to fail"]
    db.add([Record(id=str(n), text=text, metadata={"role": "user"}) for n, text in enumerate(texts)])
    plain = BUILTIN_RECIPES["default"]
    without = sennit.Recipe(name="plain", sources=plain.sources, fusion=plain.fusion, stages=(Rescore(),))
    for query in (*texts, "where is retry implemented"):
        found, expected = db.search(query), db.search(query, recipe=without)
        assert [(hit.id, hit.score) for hit in found] == [(hit.id, hit.score) for hit in expected]


def test_documentation_answers_before_source_and_source_before_tests(
    db: sennit.Database, tmp_path: Path
) -> None:
    text = "Retry a failed job: it is tried three times, with a pause that doubles."
    for name, content in {
        "docs/retry.md": f"# Retry\n\n{text}\n",
        "src/retry.py": f'def retry(job):\n    """{text}"""\n    return job\n',
        "tests/test_retry.py": f'def test_retry():\n    """{text}"""\n    assert True\n',
    }.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    db.index(tmp_path / "project")
    found = db.search("how do I retry a failed job")
    assert [hit.record.path for hit in found] == ["docs/retry.md", "src/retry.py", "tests/test_retry.py"]
    assert db.search("where is retry() implemented")[0].record.path == "src/retry.py"
    explained = db.search("how do I retry a failed job", explain=True)
    assert "role test" in str(explained.trace.to_dict() if explained.trace else "")
