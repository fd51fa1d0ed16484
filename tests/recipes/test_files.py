"""The recipe `files`: grep, vector and hybrid search over a folder, and reading files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sennit
from sennit import Caller, Record
from sennit.context.status import status_message
from sennit.folders import ReadError
from sennit.ranking.fusion import RRF
from sennit.ranking.overlaps import LineRange, merge_overlaps
from sennit.recipes import BUILTIN_RECIPES, DISTANCES, SourceConfig

RECIPE = BUILTIN_RECIPES["files"]


def page(word: str, at: int, lines: int = 60) -> str:
    """Lines of filler with one line that holds the word."""
    rows = [f"line {n} says nothing much" for n in range(1, lines + 1)]
    rows[at - 1] = f"here the {word} stands"
    return "\n".join(rows) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "harbour.txt").write_text(page("lighthouse", 30))
    (notes / "kitchen.md").write_text("# Kitchen\n\nHow to bake bread: flour, water, salt and time.\n")
    (notes / "boats.md").write_text(
        "# Boats\n\nA ferry carries cars and people across the water to the island.\n"
    )
    return notes


@pytest.fixture
def db(tmp_path: Path, folder: Path) -> Iterator[sennit.Database]:
    with sennit.open(tmp_path / "db") as opened:
        opened.index(folder)
        yield opened


# grep_search


def test_a_filter_by_path_fills_the_limit_with_passages_of_its_files(tmp_path: Path) -> None:
    """The files that the filter excludes have more matches each, and are more than grep returns."""
    for folder, count, repeats in (("src", 150, 6), ("docs", 12, 1)):
        (tmp_path / "notes" / folder).mkdir(parents=True)
        for n in range(count):
            lines = "".join(f"the lighthouse {m}\n" for m in range(repeats))
            (tmp_path / "notes" / folder / f"{n}.txt").write_text(lines)
    with sennit.open(
        tmp_path / "db", embedding__provider="none", files__folders=[str(tmp_path / "notes")]
    ) as db:
        for form in ('path like "*/docs/*"', {"path": {"contains": "/docs/"}}, 'not path contains "/src/"'):
            found = db.search("lighthouse", recipe="files", keywords=["lighthouse"], filters=form, limit=10)
            assert len(found) == 10
            assert all("/docs/" in (hit.record.path or "") for hit in found)
        many = db.search(
            "lighthouse", recipe="files", keywords=["lighthouse"], filters="matches > 1", limit=10
        )
        assert len(many) == 10
        assert all("/src/" in (hit.record.path or "") for hit in many)


def test_a_match_comes_with_ten_lines_around_it(db: sennit.Database, folder: Path) -> None:
    (passage,) = db.files.grep("lighthouse").passages
    assert (passage.first, passage.last) == (20, 40)
    assert passage.matched == (30,)
    assert passage.path == str(folder / "harbour.txt")
    assert passage.text.splitlines()[10] == "here the lighthouse stands"


@pytest.mark.parametrize(("at", "lines"), [(1, (1, 11)), (5, (1, 15)), (60, (50, 60))])
def test_a_passage_ends_where_the_file_does(
    db: sennit.Database, folder: Path, at: int, lines: tuple[int, int]
) -> None:
    (folder / "edge.txt").write_text(page("periscope", at))
    (passage,) = db.files.grep("periscope").passages
    assert (passage.first, passage.last) == lines


@pytest.mark.parametrize(("gap", "passages"), [(1, 1), (20, 1), (21, 2)])
def test_two_matches_within_twenty_lines_are_one_passage(
    db: sennit.Database, folder: Path, gap: int, passages: int
) -> None:
    rows = page("periscope", 20, 80).splitlines()
    rows[20 + gap - 1] = "another periscope"
    (folder / "two.txt").write_text("\n".join(rows))
    assert len(db.files.grep("periscope").passages) == passages


# vector_search


@pytest.mark.parametrize(
    ("distance", "stays"), [(0.0, True), (0.4999, True), (0.5, False), (0.5001, False), (1.2, False)]
)
def test_a_chunk_at_distance_05_is_discarded_and_nearer_ones_stay(distance: float, stays: bool) -> None:
    use = next(use for use in RECIPE.sources if use.source == "vector")
    assert (use.max_distance, use.metric) == (0.5, "cosine")
    assert use.passes_threshold(np.array([1.0 - distance]))[0] == stays


@pytest.mark.parametrize(
    ("metric", "cosine", "distance"),
    [("cosine", 0.6, 0.4), ("inner_product", 0.6, 0.4), ("l2_squared", 0.6, 0.8), ("l2", 0.5, 1.0)],
)
def test_the_metric_is_a_setting(metric: str, cosine: float, distance: float) -> None:
    assert DISTANCES[metric](np.array([cosine]))[0] == pytest.approx(distance)
    with sennit.open(":memory:", files__metric=metric, files__vector_score_threshold=distance) as db:
        use = next(use for use in db.recipes["files"].sources if use.source == "vector")
        assert not use.passes_threshold(np.array([cosine - 1e-9]))[0]
        assert use.passes_threshold(np.array([cosine + 1e-6]))[0]


def test_the_trace_names_the_metric_and_why_gives_the_distance(db: sennit.Database, folder: Path) -> None:
    query = "ferry to the island"
    result = db.search(query, recipe="files", explain=True)
    assert result.trace is not None
    vector = next(s for s in result.trace.recipe["sources"] if s["source"] == "vector")
    assert (vector["metric"], vector["max_distance"]) == ("cosine", 0.5)
    kitchen = next(record.id for record in db if record.path == "kitchen.md")
    why = db.why(query, kitchen, recipe="files")
    assert not why.kept
    assert "cosine distance" in why.reason


# hybrid_search


def test_both_run_and_fuse_by_reciprocal_rank_into_ten(db: sennit.Database) -> None:
    assert RECIPE.fusion == RRF(k=60, first_rank=1)
    assert RECIPE.limit == 10
    assert [use.source for use in RECIPE.sources] == ["grep", "vector"]
    hit = db.search("a ferry across the water", recipe="files", keywords=["ferry"])[0]
    assert hit.sources == ("grep", "vector")
    assert hit.score == pytest.approx(2 / 61)


def test_without_grep_matches_vector_results_keep_their_order(db: sennit.Database) -> None:
    hits = db.search("a ferry carries cars across the water", recipe="files", keywords=["zzzz-not-there"])
    alone = db.search("a ferry carries cars across the water", recipe="vector")
    assert hits
    assert [hit.id for hit in hits] == [hit.id for hit in alone][: len(hits)]


def test_without_near_chunks_grep_matches_keep_their_order(db: sennit.Database) -> None:
    hits = db.search("qqq www eee", recipe="files", keywords=["lighthouse", "ferry", "water"])
    found = db.files.grep(["lighthouse", "ferry", "water"]).passages
    assert [hit.record.lines for hit in hits] == [(p.first, p.last) for p in found]
    assert all(hit.sources == ("grep",) for hit in hits)


@pytest.mark.parametrize("keywords", [None, [], [""], ["   "], ["Where is the lighthouse?"]])
def test_missing_keywords_are_extracted_from_the_query(
    db: sennit.Database, keywords: list[str] | None
) -> None:
    hits = db.search("Where is the lighthouse?", recipe="files", keywords=keywords)
    assert any("grep" in hit.sources and "lighthouse" in hit.text for hit in hits)
    assert hits[0].metadata["keywords"] == ["lighthouse"]


def test_overlapping_passage_and_chunk_are_one_result(db: sennit.Database, folder: Path) -> None:
    hits = db.search("ferry cars people island water", recipe="files", keywords=["ferry"])
    assert [hit.record.path for hit in hits].count("boats.md") == 1
    chunk = next(record.id for record in db if record.path == "boats.md")
    why = db.why("ferry cars people island water", chunk, recipe="files", keywords=["ferry"])
    assert why.stage == "merge_overlaps"
    assert "overlaps" in why.reason


def test_overlaps_merge_across_lists_and_never_within_one() -> None:
    places = {
        -1: LineRange("a", 1, 21),
        -2: LineRange("a", 40, 60),
        1: LineRange("a", 15, 45),
        2: LineRange("a", 44, 80),
        3: LineRange("a", 79, 90),
        4: LineRange("b", 1, 21),
    }
    grep = (np.array([-1, -2]), np.array([2.0, 1.0]))
    vector = (np.array([3, 2, 1, 4]), np.array([0.9, 0.8, 0.7, 0.6]))
    joined, merged_into = merge_overlaps([grep, vector], lambda keys: [places[key] for key in keys.tolist()])
    assert joined[0][0].tolist() == [-1, -2]
    # 1 shares seven lines with the first passage and six with the second; 2 shares lines with the second only.
    assert joined[1][0].tolist() == [3, -2, -1, 4]
    assert merged_into == {2: -2, 1: -1}


def test_a_citation_is_the_real_path_with_its_lines(db: sennit.Database, folder: Path) -> None:
    hits = db.search("the lighthouse", recipe="files")
    assert hits[0].citation == f"{folder / 'harbour.txt'}:20-40"


def test_every_search_reports_its_size(db: sennit.Database) -> None:
    result = db.search("the lighthouse", recipe="files", keywords=["lighthouse"])
    assert f"{sum(len(hit.text) for hit in result):,} characters" in status_message(result)
    answer = db.files.grep("lighthouse")
    assert "1 file matched" in status_message(answer)
    assert f"{sum(len(p.text) for p in answer.passages):,} characters" in status_message(answer)
    assert "chunk" in status_message(db.search("ferry", recipe="vector"))


def test_limit_reached_by_grep_is_reported(tmp_path: Path) -> None:
    notes = tmp_path / "many"
    notes.mkdir()
    for n in range(80):
        (notes / f"{n:03}.txt").write_text("harbour\n")
    with sennit.open(tmp_path / "db2") as db:
        db.index(notes)
        result = db.search("harbour", recipe="files", keywords=["harbour"])
        assert any(one.source == "grep" for one in result.degraded)
        assert result.answered == 2


# read_file


def test_a_file_is_read_whole(db: sennit.Database, folder: Path) -> None:
    assert db.files.read("kitchen.md").text == (folder / "kitchen.md").read_text()
    assert (
        db.files.read(str(folder / "harbour.txt"), lines=(30, 30)).text.strip()
        == "here the lighthouse stands"
    )


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("missing.txt", "NOT_FOUND"),
        ("../outside.txt", "ACCESS_DENIED"),
        ("/etc/passwd", "ACCESS_DENIED"),
        (".", "IS_DIRECTORY"),
    ],
)
def test_each_read_failure_has_its_code(db: sennit.Database, folder: Path, path: str, code: str) -> None:
    (folder.parent / "outside.txt").write_text("secret")
    with pytest.raises(ReadError) as error:
        db.files.read(path)
    assert str(error.value).startswith(f"[ERROR: {code}]")
    if code == "ACCESS_DENIED":
        assert str(folder) in str(error.value)


# Privacy


def test_a_file_that_the_caller_may_not_see_is_neither_found_nor_read(
    db: sennit.Database, folder: Path
) -> None:
    hidden = [record for record in db if record.path == "boats.md"]
    db.add([Record.from_dict({**record.to_dict(), "sensitivity": "private"}) for record in hidden])
    assert not db.files.grep("ferry").passages
    assert all(
        hit.record.path != "boats.md" for hit in db.search("ferry", recipe="files", keywords=["ferry"])
    )
    missing: list[str] = []
    unseen: list[str] = []
    for said, path in ((missing, "nowhere.md"), (unseen, "boats.md")):
        with pytest.raises(ReadError) as error:
            db.files.read(path)
        said.append(str(error.value).replace(path, ""))
    assert missing == unseen
    cleared = Caller(clearance="private")
    assert db.files.grep("ferry", caller=cleared).passages
    assert "ferry" in db.files.read("boats.md", caller=cleared).text


def test_unindexed_files_have_the_sensitivity_of_the_settings(tmp_path: Path, folder: Path) -> None:
    with sennit.open(tmp_path / "db", files__folders=[str(folder)], files__sensitivity="sensitive") as db:
        assert not db.files.grep("ferry").passages
        assert db.files.grep("ferry", caller=Caller(clearance="sensitive")).passages
        assert not db.files.grep("ferry", caller=Caller(tenant="acme", clearance="private")).passages


def test_grep_does_not_search_the_database_folder(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("periscope")
    with sennit.open(tmp_path / "visible.sennit") as db:
        db.add([Record(id="a", text="periscope")])
        assert [Path(p.path).name for p in db.files.grep("periscope").passages] == ["note.txt"]
        with pytest.raises(ReadError, match="NOT_FOUND"):
            db.files.read("visible.sennit/sennit.db")


def test_a_source_that_cannot_run_is_reported_and_the_other_answers(
    db: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.folders.ripgrep.find_ripgrep", lambda: "/nonexistent/rg")
    result = db.search("a ferry carries cars across the water", recipe="files")
    assert [one.source for one in result.degraded] == ["grep"]
    assert result.hits


def test_distance_settings_are_validated() -> None:
    with pytest.raises(sennit.SennitError, match="max_distance"):
        SourceConfig(source="vector", max_distance=-1)
    with pytest.raises(sennit.SennitError, match="metric"):
        SourceConfig(source="vector", metric="manhattan")  # type: ignore[arg-type]
