"""One index serves every recipe: each file is read by its kind, once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sennit
from ingest.conftest import contents_of, counts, write
from sennit.ingest.conversation import is_transcript
from sennit.ingest.readers import reader_of
from sennit.ingest.roles import text_role

EXAMPLES = [
    {
        "id": "e1",
        "title": "Retry a job",
        "description": "Try it three times.",
        "code": "retry(3)",
        "url": "/e/1",
        "tags": ["retry"],
    },
    {"id": "e2", "title": "Cancel a job", "code": "cancel()"},
]
TURNS = [
    {"speaker": "Rajesh", "text": "We could fly to Goa in March.", "session": "goa", "id": "t1"},
    {"speaker": "Priya", "text": "March is warm there.", "session": "goa", "id": "t2"},
]
PROJECT: dict[str, str | bytes] = {
    "docs/retries.md": (
        "# Retries\n\n## Summary\n\nA failed job is tried again after a pause.\n\n"
        "## Examples\n\n```python\n@task(retries=3)\n```\n\n## Backoff\n\nThe pause doubles with each attempt.\n"
    ),
    "docs/page.html": "<h1>Leases</h1><p>A lease is a loan of a job to a worker.</p>",
    "src/queue.py": "def enqueue(job):\n    '''Put a job into the queue.'''\n    return job\n",
    "src/auth.go": "package shop\n\n// Authenticate checks a password.\nfunc Authenticate() bool { return true }\n",
    "chat/goa.jsonl": "\n".join(map(json.dumps, TURNS)),
    "chat/standup.txt": "Ana: The build is red.\nBen: I will fix it.\nAna: Thank you.\nBen: It is green now.\n",
    "samples.jsonl": "\n".join(map(json.dumps, EXAMPLES)),
    "measurements.jsonl": '{"x": 1, "y": 2}\n{"x": 3, "y": 4}\n',
    "notes.txt": "Remember to water the plants on Friday.\n",
    "config.toml": "[server]\nport = 8080\n",
}


@pytest.fixture
def project(root: Path) -> Path:
    write(root, PROJECT)
    return root


def collections_by_path(db: sennit.Database) -> dict[str, set[str]]:
    out: dict[str, set[str]] = {}
    for record in db:
        out.setdefault(record.path or "", set()).add(record.collection)
    return out


def test_each_file_is_read_by_its_kind_into_the_collections_of_its_recipes(
    db: sennit.Database, project: Path
) -> None:
    db.index(project)
    assert collections_by_path(db) == {
        "docs/retries.md": {"docs", "examples"},
        "docs/page.html": {"docs"},
        "src/queue.py": {"code", "code_files"},
        "src/auth.go": {"code", "code_files"},
        "chat/goa.jsonl": {"history"},
        "chat/standup.txt": {"history"},
        "samples.jsonl": {"examples"},
        "measurements.jsonl": {"files"},
        "notes.txt": {"files"},
        "config.toml": {"files"},
    }


def test_after_one_index_every_recipe_and_command_finds_what_it_needs(
    db: sennit.Database, project: Path
) -> None:
    db.index(project)
    first = {
        recipe: db.search(query, recipe=recipe)[0].record.path
        for recipe, query in {
            "default": "how does the pause grow",
            "docs": "how does the pause grow",
            "examples": "cancel a job",
            "code": "Authenticate",
            "memory": "fly to Goa in March",
            "files": "water the plants",
        }.items()
    }
    assert first == {
        "default": "docs/retries.md",
        "docs": "docs/retries.md",
        "examples": "samples.jsonl",
        "code": "src/auth.go",
        "memory": "chat/goa.jsonl",
        "files": "notes.txt",
    }
    assert db.plan("fix `enqueue` in queue.py").entries[0].qualified == "enqueue"
    assert "pause" in db.ask("how does the pause grow?").text
    assert [Path(p.path).name for p in db.files.grep("port = 8080").passages] == ["config.toml"]


def test_memory_finds_no_documentation_and_no_code(db: sennit.Database, project: Path) -> None:
    db.index(project)
    found = db.search("a failed job in the queue with a password", recipe="memory", limit=50)
    assert {hit.collection for hit in found} <= {"history", "memory", "facts", "entities", "default"}
    db.remember("Rajesh waters the plants on Friday.")
    assert db.search("water the plants", recipe="memory")[0].collection == "memory"
    named = db.search("how does the pause grow", recipe="memory", include=["docs"])
    assert "docs" in {hit.collection for hit in named}


def test_files_finds_passages_pages_and_code_by_meaning_and_each_place_once(
    db: sennit.Database, project: Path
) -> None:
    db.index(project)
    db.remember("A lease is a loan.")
    for query, path in (
        ("the pause doubles with each attempt", "docs/retries.md"),
        ("put a job into the queue", "src/queue.py"),
    ):
        hits = db.search(query, recipe="files", keywords=["zzz-not-there"], limit=50)
        assert hits[0].record.path == path
        assert not {hit.collection for hit in hits} & {"memory", "code_files"}


def test_turns_of_a_file_keep_their_session_speaker_and_lines(db: sennit.Database, project: Path) -> None:
    db.index(project)
    hit = db.search("March is warm there", recipe="memory")[0]
    assert (hit.metadata["session"], hit.metadata["speaker"]) == ("goa", "Priya")
    assert hit.record.lines == (2, 2)
    spoken = next(record for record in db if record.text == "I will fix it.")
    assert (spoken.metadata["session"], spoken.metadata["speaker"], spoken.lines) == (
        "standup",
        "Ben",
        (2, 2),
    )
    (project / "chat/goa.jsonl").write_text(json.dumps(TURNS[0]))
    assert db.index(project).updated == 1
    assert [r.text for r in db if r.path == "chat/goa.jsonl"] == ["We could fly to Goa in March."]
    (project / "chat/goa.jsonl").unlink()
    assert db.index(project).records_removed == 1


@pytest.mark.parametrize("recipe", ["docs", "code", "memory", "files", "default", "artifacts"])
def test_indexing_again_for_another_recipe_takes_no_records_away(
    db: sennit.Database, project: Path, recipe: str
) -> None:
    db.index(project)
    before = contents_of(db)
    db.index(project, recipe=recipe)
    assert before.items() <= contents_of(db).items()
    db.index(project / "docs", recipe=recipe)
    db.index(project / "notes.txt", recipe=recipe)
    assert before.items() <= contents_of(db).items()
    assert counts(db.index(project))[4] == len(PROJECT)


def test_a_recipe_narrows_what_is_read(db: sennit.Database, project: Path) -> None:
    assert db.index(project, recipe="code").added == 2
    assert set(collections_by_path(db)) == {"src/queue.py", "src/auth.go"}
    assert db.index(project, recipe="docs").added == 3
    assert db.index(project, recipe="examples").added == 0
    assert db.index(project, recipe="memory").added == 2
    assert db.index(project).added == 3


def test_a_recipe_with_its_own_collection_reads_each_file_again_for_it(
    db: sennit.Database, project: Path
) -> None:
    db.index(project)
    db.index(project, recipe="artifacts")
    assert db.search("the pause doubles", recipe="artifacts")[0].record.path == "docs/retries.md"
    (project / "docs/retries.md").write_text("# Retries\n\nA job is never tried again.\n")
    report = db.index(project)
    assert (report.updated, report.unchanged) == (1, len(PROJECT) - 1)
    for collection in ("docs", "artifacts"):
        texts = [r.text for r in db if r.path == "docs/retries.md" and r.collection == collection]
        assert len(texts) == 1
        assert "never tried again" in texts[0]
    (project / "docs/retries.md").unlink()
    assert db.index(project).removed == 1
    assert "docs/retries.md" not in collections_by_path(db)


def test_lines_that_only_begin_like_turns_or_examples_are_passages(db: sennit.Database, root: Path) -> None:
    write(
        root,
        {
            "mixed.jsonl": '{"text": "hello", "speaker": "A"}\n{"value": 3}\n',
            "broken.jsonl": '{"title": "a", "code": "b"}\nnot JSON\n',
            "list.jsonl": "[1, 2]\n",
            "deep.jsonl": "[" * 100_000,
        },
    )
    report = db.index(root)
    assert report.added == 4
    assert {record.collection for record in db} == {"files"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ana: hi\nBen: hello\nAna: how are you\nBen: fine\n", True),
        ("== 2026-03-01 ==\n09:30 Ana: hi\n09:31 Ben: hello\nAna: a\nsecond line\nBen: b\n", True),
        ("Name: sennit\nVersion: 1\nLicence: MIT\nAuthor: nobody\n", False),
        ("Note: this\nNote: that\nNote: more\nNote: again\n", False),
        ("A story.\nAna: hi\nBen: hello\nAna: a\nBen: b\n", False),
        ("Ana: hi\nBen: hello\n", False),
        ("", False),
    ],
)
def test_a_transcript_has_speakers_who_take_turns(text: str, expected: bool) -> None:
    assert is_transcript(text) == expected


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("docs/guide.rst", "docs"),
        ("README.md", "docs"),
        ("CHANGES.rst", "changelog"),
        ("docs/whatsnew/1.0.md", "changelog"),
        ("docs/changes.md", "changelog"),
        ("LICENSE.txt", "licence"),
        ("docs/license.md", "licence"),
        ("tests/data/page.md", "test"),
        ("pyproject.toml", "data"),
        ("Makefile", "source"),
        ("docs/history-of-art.md", "docs"),
        ("docs/release-notes-1.2.md", "changelog"),
    ],
)
def test_the_role_of_a_text_file_is_told_by_its_path(path: str, role: str) -> None:
    assert text_role(path) == role


def test_without_the_extra_code_is_passages_and_is_read_again_once_it_is_there(
    tmp_path: Path, project: Path
) -> None:
    script = (
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "PathFinder.find_spec = classmethod(lambda cls, name, *rest: None if name.startswith('tree_sitter') "
        "else find(name, *rest))\n"
        "import sennit\n"
        "with sennit.open(sys.argv[1]) as db:\n"
        "    report = db.index(sys.argv[2])\n"
        "    print(report.hints)\n"
        "    print(sorted(r.collection for r in db if r.path == 'src/queue.py'))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "db"), str(project)],
        capture_output=True,
        text=True,
        check=True,
    )
    hints, collections = run.stdout.splitlines()
    assert hints.count("sennit[code]") == 1
    assert collections == "['files']"
    assert reader_of("a.py").name == "code"
    with sennit.open(tmp_path / "db") as db:
        report = db.index(project)
        assert (report.updated, report.hints) == (2, [])
        assert collections_by_path(db)["src/queue.py"] == {"code", "code_files"}
