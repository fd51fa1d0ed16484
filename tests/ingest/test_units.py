"""Reading the part of a file that a citation names, where the file has no lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import sennit
from ingest.conftest import write
from ingest.test_formats import CHATGPT, CLAUDE, SLACK, book, message, notebook, word_document
from ingest.test_pdf import document, shows
from sennit.folders import Folders, ReadError
from sennit.places import parse_fragment

MAILBOX = (
    b"From a\n"
    + message("One", "first words").as_bytes()
    + b"\nFrom b\n"
    + message("Two", "second").as_bytes()
)


def table() -> bytes:
    out = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table({"name": ["Marlin", "Tern"], "crew": [3, None]}), out)
    return bytes(out.getvalue().to_pybytes())


FILES: dict[str, str | bytes] = {
    "a.docx": word_document(),
    "a.ipynb": notebook(),
    "a.csv": "name,length\nMarlin,7\n\nTern,3\n",
    "a.parquet": table(),
    "a.mbox": MAILBOX,
    "a.eml": message("Crane", "It is repaired.").as_bytes(),
    "a.epub": book("<p>The harbour</p>", "<p>The storm</p>"),
    "a.pdf": document(shows("the harbour at dawn"), shows("the market at noon")),
    "chatgpt.json": json.dumps(CHATGPT),
    "claude.json": json.dumps(CLAUDE),
    "slack.json": json.dumps(SLACK),
}


@pytest.mark.parametrize(
    ("part", "begins", "count"),
    [
        ("a.docx#paragraph=4", "A ferry is moored with two ropes", 7),
        ("a.docx#paragraph=3-4", "## Mooring\n\nA ferry", 7),
        ("a.docx#paragraph=7", "| yacht | 40 euros |", 7),
        ("a.ipynb#cell=2", "```python\ndef high_tide", 3),
        ("a.ipynb#cell=3", "## Storm surge", 3),
        ("a.csv#row=2", "name: Tern\nlength: 3", 2),
        ("a.parquet#row=1", "name: Marlin\ncrew: 3", 2),
        ("a.mbox#message=2", "Subject: Two\nFrom: Ana Silva", 2),
        ("a.eml#message=1", "Subject: Crane", 1),
        ("a.epub#chapter=2", "The storm", 2),
        ("a.pdf#page=2", "the market at noon", 2),
        ("chatgpt.json#message=2", "assistant: Use linseed oil paint.", 2),
        ("claude.json#message=1", "user: Which knot", 2),
        ("slack.json#message=2", "Rui: Marta has it.", 2),
    ],
)
def test_a_cited_part_is_read(root: Path, part: str, begins: str, count: int) -> None:
    write(root, FILES)
    found = Folders([root]).read(part)
    assert found.text.startswith(begins)
    assert found.text.endswith("\n")
    assert (Path(found.location).name, found.lines) == (part, count)


def test_everything_that_a_search_cites_can_be_read(db: sennit.Database, root: Path) -> None:
    write(root, FILES)
    db.index(root)
    for hit in db.search("harbour ferry paint knot boathouse marlin crane tide", limit=50):
        found = db.files.read(hit.citation)
        assert set(hit.text.split()) & set(found.text.split()), hit.citation
        assert db.files.read(hit.id).text == found.text


@pytest.mark.parametrize(
    ("part", "code", "reason"),
    [
        ("a.csv#row=3", "BAD_RANGE", "it has 2 rows; there is no row 3"),
        ("a.csv#cell=1", "BAD_RANGE", "it has rows and no cells"),
        ("a.csv#row=0", "NOT_FOUND", "no file"),
        ("a.csv#row=2-1", "NOT_FOUND", "no file"),
        ("none.csv#row=1", "NOT_FOUND", "no file"),
        ("../secret.csv#row=1", "ACCESS_DENIED", "may not be read"),
        ("notes.md#cell=1", "NOT_FOUND", "no file"),
        ("broken.docx#paragraph=1", "UNREADABLE", "not a Word document"),
        ("broken.ipynb#cell=1", "UNREADABLE", "a zip archive"),
        ("broken.parquet#row=1", "UNREADABLE", "Parquet"),
        ("broken.pdf#page=1", "UNREADABLE", "not a PDF"),
        ("narrow.csv#row=1", "UNREADABLE", "fewer than two columns"),
    ],
)
def test_a_part_that_cannot_be_read_is_refused_with_the_reason(
    root: Path, part: str, code: str, reason: str
) -> None:
    write(root, FILES)
    write(root, {f"broken.{one}": "PK\x03\x04" for one in ("docx", "ipynb", "parquet", "pdf")})
    write(root, {"notes.md": "# Notes\n", "narrow.csv": "a\n1\n", "../secret.csv": "a,b\n1,2\n"})
    with pytest.raises(ReadError, match=reason) as refused:
        Folders([root]).read(part)
    assert refused.value.code == code


def test_a_part_is_bounded_as_lines_are(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"a.csv": "a,b\n" + "x" * 2_000 + ",y\nshort,row\n"})
    folders = Folders([root], max_bytes=1_000)
    assert folders.read("a.csv#row=2").text == "a: short\nb: row\n"
    with pytest.raises(ReadError, match=r"row=1-2 of .a\.csv. is too long") as refused:
        folders.read("a.csv#row=1-2")
    assert refused.value.code == "TOO_LARGE"
    monkeypatch.setattr("sennit.folders.access.MAX_PARSED_BYTES", 1_000)
    with pytest.raises(ReadError, match="Larger files are not parsed") as refused:
        folders.read("a.csv#row=2")
    assert refused.value.code == "TOO_LARGE"


def test_a_file_whose_name_looks_like_a_citation_is_read_itself(root: Path) -> None:
    write(root, {"a.csv": "a,b\n1,2\n", "a.csv#row=1": "its own text"})
    assert Folders([root]).read("a.csv#row=1").text == "its own text"


def test_a_part_of_a_hidden_file_does_not_exist(root: Path) -> None:
    write(root, {"a.csv": "a,b\n1,2\n"})
    with pytest.raises(ReadError) as refused:
        Folders([root], is_hidden=lambda path: path.name == "a.csv").read("a.csv#row=1")
    assert refused.value.code == "NOT_FOUND"


def test_a_failing_parser_is_an_error_of_the_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise IndexError("damaged")

    write(root, {"a.mbox": MAILBOX})
    monkeypatch.setattr("sennit.ingest.formats.mail._heading", fail)
    with pytest.raises(ReadError, match="IndexError: damaged"):
        Folders([root]).read("a.mbox#message=1")


def test_models_and_commands_read_a_cited_part(
    db: sennit.Database, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"sub/a.csv": "name,length\nMarlin,7\nTern,3\n"})
    db.index(root)
    monkeypatch.chdir(root / "sub")
    result = sennit.Tools(db).call("read_file", {"path": "a.csv#row=2"})
    assert "a.csv#row=2 of 2 rows." in result.text
    answer = result.structured_content
    assert answer is not None
    assert answer["first_line"] == answer["total_lines"] == 2
    assert answer["text"] == "name: Tern\nlength: 3\n"


@pytest.mark.parametrize(
    "text", ["a.csv", "a.csv#row", "a.csv#row=", "#row=1", "a#Row=1", "a#row=0", "a#row=3-2"]
)
def test_other_text_is_no_fragment(text: str) -> None:
    assert parse_fragment(text) is None
