"""The command `sennit eval`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from evaluation.folders import write_folder
from sennit.apps.cli.program import program
from sennit.evaluation.quality import BEGIN_MARKER, END_MARKER


def run(*arguments: object) -> Result:
    return CliRunner().invoke(program, ["eval", *map(str, arguments)])


def figures(result: Result) -> dict[str, dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return {one["system"]: one for one in json.loads(result.stdout)["results"]}


def test_eval_prints_a_table(tmp_path: Path) -> None:
    result = run(write_folder(tmp_path / "fruit"))
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == "collection model system queries nDCG@10 MRR@10 R@5 R@10 R@100 ms".split()
    assert [line[2] for line in lines[1:6]] == ["keyword", "vector", "links", "rrf", "default"]


def test_json_has_every_metric(tmp_path: Path) -> None:
    found = figures(
        run(write_folder(tmp_path / "fruit"), "--json", "--category", "kind", "--model", "static")
    )
    assert list(found) == ["keyword", "vector", "links", "rrf", "default"]
    default = found["default"]
    assert default["collection"] == "fruit"
    assert (default["documents"], default["queries"], default["scope"]) == (4, 2, None)
    assert (default["model"], default["recipe"]) == ("static", "default")
    assert set(default) >= {"nDCG@10", "MRR@10", "R@5", "R@10", "R@100", "milliseconds"}
    assert list(default["categories"]) == ["2", "10"]
    assert found["keyword"]["MRR@10"] == 1.0


def test_scope_can_apply_to_one_folder(tmp_path: Path) -> None:
    first, second = (write_folder(tmp_path / name) for name in ("a", "b"))
    result = run(first, second, "--scope", "b=shelf", "--json")
    scopes = {one["collection"]: one["scope"] for one in json.loads(result.stdout)["results"]}
    assert scopes == {"a": None, "b": "shelf"}
    assert "one of these folders: a, b" in run(first, second, "--scope", "c=shelf").stderr


def test_known_collection_has_a_default_scope(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "locomo_dev")
    result = run(folder)
    assert result.exit_code != 0
    assert "has no metadata field 'conversation'" in result.stderr
    assert figures(run(folder, "--scope", "shelf", "--json"))["default"]["scope"] == "shelf"


def test_per_query_writes_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    result = run(write_folder(tmp_path / "c"), "--limit-queries", 1, "--per-query", file, "--recipe", "rrf")
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(line["system"], line["query"]) for line in lines] == [
        ("keyword", "q1"),
        ("vector", "q1"),
        ("rrf", "q1"),
    ]


def test_write_option_writes_tables_into_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN_MARKER}\n{END_MARKER}\n", encoding="utf-8")
    assert run(write_folder(tmp_path / "fruit"), "--write", page).exit_code == 0
    assert "| fruit | static | default | 2 |" in page.read_text(encoding="utf-8")


def test_collection_warnings_are_printed_and_in_the_json(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c", judged="q1\tpear\t1\nq2\tghost\t1\n")
    result = run(folder, "--json")
    assert "Warning:" in result.stderr
    assert "'ghost'" in json.loads(result.stdout)["warnings"][0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("rm queries.jsonl", "has no queries.jsonl"),
        ("break corpus.jsonl", "corpus.jsonl:1: not a line of JSON"),
    ],
)
def test_broken_folder_is_a_clear_error(tmp_path: Path, change: str, says: str) -> None:
    folder = write_folder(tmp_path / "c")
    verb, name = change.split()
    if verb == "rm":
        (folder / name).unlink()
    else:
        (folder / name).write_text("{", encoding="utf-8")
    result = run(folder)
    assert result.exit_code != 0
    assert says in result.stderr
    assert "Traceback" not in result.output


def test_unknown_recipe_and_duplicate_folder_names_are_errors(tmp_path: Path) -> None:
    first, second = write_folder(tmp_path / "x" / "c"), write_folder(tmp_path / "y" / "c")
    assert "There is no recipe 'none'" in run(first, "--recipe", "none").stderr
    assert "Two folders are called 'c'" in run(first, second).stderr


def test_systems_are_compared_query_by_query(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "fruit")
    plot = tmp_path / "plot.svg"
    result = run(folder, "--compare", "keyword", "--json", "--plot", plot)
    assert result.exit_code == 0, result.output
    values = json.loads(result.stdout)
    comparisons = {one["system"]: one for one in values["comparisons"]}
    assert list(comparisons) == ["vector", "links", "rrf", "default"]
    links = comparisons["links"]  # which finds nothing in texts without links
    assert links["difference"] < 0
    assert links["better"] == 0
    assert links["worse"] == links["queries"] == 2
    assert links["interval"][0] <= links["difference"] <= links["interval"][1]
    assert links["p_corrected"] >= links["p_randomisation"]
    (lost, *_) = links["worse_queries"]
    assert lost["after"] < lost["before"]
    assert lost["moved"][0]["after"] is None
    assert "ranks:" in lost["moved"][0]["reason"]
    for one in values["results"]:
        low, high = one["intervals"]["nDCG@10"]
        assert low <= one["nDCG@10"] <= high
    assert plot.read_text().startswith("<svg")
    text = run(folder, "--compare", "keyword", "--metric", "MRR@10").stdout
    assert "links - keyword, MRR@10" in text
    assert "links is worse than keyword for:" in text
    assert "●" in text


def test_a_run_is_compared_with_an_earlier_one(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "fruit")
    before = tmp_path / "before.jsonl"
    assert run(folder, "--per-query", before).exit_code == 0
    values = json.loads(run(folder, "--against", before, "--json").stdout)
    assert [one["difference"] for one in values["comparisons"]] == [0.0] * 5
    assert {one["p_corrected"] for one in values["comparisons"]} == {1.0}
    assert {one["baseline"] for one in values["comparisons"]} == {"before"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--compare", "keywrd"], "Did you mean 'keyword'"),
        (["--compare", "keyword", "--metric", "ndcg"], "There is no metric"),
        (["--against", "broken.jsonl"], "not a line that --per-query wrote"),
        (["--against", "other.jsonl"], "no system, model and collection"),
    ],
)
def test_a_comparison_with_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.jsonl").write_text('{"collection": "fruit"}\n')
    other = {"collection": "x", "model": "x", "system": "x", "query": "x", "ranking": [], "nDCG@10": 1}
    Path("other.jsonl").write_text(json.dumps(other) + "\n")
    result = run(write_folder(tmp_path / "fruit"), *options)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--recipe", "none"), "There is no recipe 'none'"),
        (("--model", "static", "--model", "onnx/absent"), "absent"),
        (("--model", "static", "--model", "nothing"), "There is no model 'nothing'"),
        (("--metric", "nDCG"), "There is no metric 'nDCG'"),
        (("--compare", "kyword"), "Did you mean 'keyword'?"),
        (("--now", "someday"), "someday"),
        (("--scope", "floor"), "has no metadata field 'floor'"),
        (("--category", "colour"), "no query has this field; they have: kind, shelf"),
        (("--against", "other.jsonl"), "has no system, model and collection of this run"),
        (("--against", "absent.jsonl"), "absent.jsonl"),
        (("--against", "broken.jsonl"), "not a line that --per-query wrote"),
        (("--per-query", "nowhere/a.jsonl"), "there is no folder nowhere"),
        (("--plot", "nowhere/a.svg"), "there is no folder nowhere"),
        (("--write", "page.md"), "needs the lines"),
        (("--write", "absent.md"), "cannot be read"),
        (("--ranker", "absent.json"), "absent.json"),
        (("--ablation",), "need --code"),
        (("--code", "--compare", "x"), "No system is called 'x'"),
        (("--code", "--recipe", "none"), "There is no recipe 'none'"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], says: str
) -> None:
    def index(*_: object) -> None:
        raise AssertionError("indexing has begun")

    monkeypatch.chdir(tmp_path)
    folder = write_folder(tmp_path / "fruit")
    (tmp_path / "page.md").write_text("# No markers\n")
    other = {
        "collection": "x",
        "model": "static",
        "system": "rrf",
        "query": "q1",
        "nDCG@10": 1,
        "ranking": [],
    }
    (tmp_path / "other.jsonl").write_text(json.dumps(other) + "\n")
    (tmp_path / "broken.jsonl").write_text("{}\n")
    monkeypatch.setattr("sennit.evaluation.run.index_collection", index)
    result = run(folder, *options)
    assert result.exit_code not in (0, 1)
    assert says in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "broken.jsonl",
        "fruit",
        "other.jsonl",
        "page.md",
    ]
