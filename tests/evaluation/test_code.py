"""The code format: projects, queries, and files as targets."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sennit.apps.cli.program import program
from sennit.errors import InvalidInput, NotFound
from sennit.evaluation.code import build_ablations, read_code_collections, read_manifest, same_file
from sennit.recipes.builtin import CODE_SEARCH
from sennit.records import Record
from sennit.results import Hit

SOURCES = {
    "src/shop/basket.py": 'class Basket:\n    """What a customer wants to buy."""\n\n    def add(self, item): ...\n',
    "src/shop/payment.py": 'def charge(card):\n    """Take the money from a credit card."""\n    return card\n',
    "src/shop/__init__.py": "from .basket import Basket\nfrom .payment import charge\n",
    "docs/index.md": "# Shop\n",
    "setup.py": "def setup(): ...\n",
}
QUESTIONS = [
    {
        "query": "charging a credit card",
        "relevant": ["src/shop/payment.py"],
        "secondary": [],
        "category": "semantic",
    },
    {
        "query": "Basket",
        "relevant": [{"path": "shop/basket.py", "start_line": 1, "end_line": 4}],
        "secondary": ["src/shop/payment.py"],
        "category": "symbol",
    },
]


def write(folder: Path, questions: Any = QUESTIONS, root: str = "src/shop") -> Path:
    (folder / "annotations").mkdir(parents=True)
    (folder / "annotations" / "shop.json").write_text(json.dumps(questions))
    (folder / "MANIFEST.json").write_text(json.dumps({"shop": {"version": "1.0", "benchmark_root": root}}))
    return folder


def unpacked(folder: Path) -> Path:
    for name, text in SOURCES.items():
        file = folder / "shop-1.0" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def packed(folder: Path) -> Path:
    folder.mkdir(parents=True)
    with tarfile.open(folder / "shop-1.0.tar.gz", "w:gz") as archive:
        for name, text in SOURCES.items():
            member = tarfile.TarInfo(f"shop-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(program, ["eval", "--code", *map(str, arguments)])


def hits(*paths: str) -> list[Hit]:
    return [Hit(Record(id=f"{path}::{at}", text="…", path=path), 1.0, at) for at, path in enumerate(paths, 1)]


@pytest.mark.parametrize("make", [unpacked, packed])
def test_project_is_read_from_a_folder_or_an_archive(tmp_path: Path, make: Any) -> None:
    (collection,) = read_code_collections(write(tmp_path / "set"), make(tmp_path / "sources"))
    assert {record.path for record in collection.documents} == {
        "src/shop/__init__.py",
        "src/shop/basket.py",
        "src/shop/payment.py",
    }
    assert [query.text for query in collection.queries] == ["charging a credit card", "Basket"]
    assert collection.judgements["shop/2"] == {"shop/basket.py": 1, "src/shop/payment.py": 1}
    assert collection.warnings == ()


def test_target_has_the_rank_of_the_first_hit_in_its_file(tmp_path: Path) -> None:
    (collection,) = read_code_collections(write(tmp_path / "set"), unpacked(tmp_path / "sources"))
    found = hits("src/shop/basket.py", "src/shop/basket.py", "setup.py", "src/shop/payment.py")
    ranking = collection.ranking(collection.queries[1], found)
    assert ranking == ["shop/basket.py", "#2", "#3", "src/shop/payment.py"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a/b.py", "a/b.py", True),
        ("src/a/b.py", "a/b.py", True),
        ("b.py", "a/b.py", True),
        ("ab.py", "b.py", False),
        ("a/b.py", "c/b.py", False),
    ],
)
def test_same_file_accepts_a_path_suffix(one: str, other: str, same: bool) -> None:
    assert same_file(one, other) is same
    assert same_file(other, one) is same


def test_command_reports_projects_all_queries_and_categories(tmp_path: Path) -> None:
    folder = write(tmp_path / "set")
    result = run(folder, "--projects", packed(tmp_path / "sources"), "--model", "static", "--json")
    assert result.exit_code == 0, result.output
    project, together = json.loads(result.stdout)["results"]
    assert (project["collection"], together["collection"], together["queries"]) == ("shop", "all", 2)
    assert together["MRR@10"] == pytest.approx(1.0)
    assert list(together["categories"]) == ["semantic", "symbol"]
    table = run(folder, "--projects", tmp_path / "sources", "--model", "static")
    assert [line.split()[0] for line in table.stdout.splitlines()[1:]] == ["shop", "all", "all", "all"]


def test_ablation_measures_the_recipe_without_each_part(tmp_path: Path) -> None:
    result = run(
        write(tmp_path / "set"), "--projects", unpacked(tmp_path / "sources"), "--ablation", "--json"
    )
    assert result.exit_code == 0, result.output
    systems = [one["system"] for one in json.loads(result.stdout)["results"]]
    assert systems == [system.name for system in build_ablations(CODE_SEARCH)]
    assert {"code", "only keyword", "without outline_vector", "without definition_boost"} <= set(systems)
    assert systems[-1] == "without per_file"


def test_missing_source_error_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"pip download --no-deps --no-binary :all: shop==1.0"):
        read_code_collections(write(tmp_path / "set"), tmp_path)


def test_folder_without_annotations_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="annotations"):
        read_code_collections(tmp_path)


def test_root_without_code_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no code in docs"):
        read_code_collections(write(tmp_path / "set", root="docs"), packed(tmp_path / "sources"))


def test_missing_target_is_a_warning(tmp_path: Path) -> None:
    questions = [{"query": "x", "relevant": ["gone.py"], "category": "symbol"}]
    (collection,) = read_code_collections(write(tmp_path / "set", questions), unpacked(tmp_path / "sources"))
    assert collection.warnings == ("shop has no file 'gone.py'; 1 targets are never found",)


def test_the_shared_annotations_are_read(shared_data: Path, tmp_path: Path) -> None:
    # The sources are not available. The error about the first project shows that the annotations were read.
    with pytest.raises(NotFound, match="The source of aiohttp 3"):
        read_code_collections(shared_data / "code_semble", tmp_path)


def test_code_options_require_code(tmp_path: Path) -> None:
    result = CliRunner().invoke(program, ["eval", str(tmp_path), "--ablation"])
    assert result.exit_code != 0
    assert "--ablation need --code" in result.output


@pytest.mark.parametrize("folder", ["languages", "languages/held_out"])
def test_language_annotations_match_their_manifest(
    folder: str,
) -> None:
    root = Path(__file__).parents[2] / "benchmarks" / folder
    listed = read_manifest(root)
    files = sorted((root / "annotations").glob("*.json"))
    assert [file.stem for file in files] == sorted(listed)
    for file in files:
        questions = json.loads(file.read_text())
        assert len(questions) == listed[file.stem]["queries"]
        assert {question["category"] for question in questions} <= {"architecture", "semantic", "symbol"}
        assert all(question["relevant"] for question in questions)
