"""Formats besides text: real files made by the libraries of each format, exact places, and broken files."""

from __future__ import annotations

import io
import json
import mailbox
import os
import subprocess
import sys
import zipfile
from email.message import EmailMessage
from pathlib import Path

import docx
import nbformat
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from ingest.conftest import write
from sennit.errors import InvalidInput
from sennit.ingest.chunk import split_lines
from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.formats import epub, tables
from sennit.ingest.formats.docx import read_docx
from sennit.ingest.formats.epub import read_epub
from sennit.ingest.formats.markup_pages import markdown_of_asciidoc, markdown_of_rst
from sennit.ingest.formats.notebook import MAX_OUTPUT_CHARACTERS, read_notebook
from sennit.ingest.formats.tables import read_csv
from sennit.ingest.readers import read_records
from sennit.places import Folder


def best(db: sennit.Database, query: str) -> sennit.Hit:
    hit = db.search(query, limit=1)[0]
    reference = hit.citation
    assert db.find(reference).id == hit.id
    assert db.why(query, reference).kept, "the printed place is a reference"
    return hit


def cited(db: sennit.Database, query: str) -> str:
    return Path(best(db, query).citation).name


def word_document() -> bytes:
    document = docx.Document()
    document.add_heading("Harbour handbook", 0)
    document.add_paragraph("This handbook describes the work at the harbour.")
    document.add_heading("Mooring", 1)
    document.add_paragraph("A ferry is moored with two ropes at the northern quay.")
    document.add_heading("Fees", 1)
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(table._cells, ("vessel", "fee", "yacht", "40 euros"), strict=True):
        cell.text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_a_word_document_is_a_page_cited_by_paragraph(db: sennit.Database, root: Path) -> None:
    write(root, {"handbook.docx": word_document()})
    db.index(root)
    assert cited(db, "how is a ferry moored") == "handbook.docx#paragraph=3-4"
    hit = best(db, "what is the fee for a yacht")
    assert hit.title == "Harbour handbook > Fees"
    assert "| yacht | 40 euros |" in hit.text
    assert {record.collection for record in db} == {"docs"}
    assert all(record.lines is None for record in db)


def book(*chapters: str, package: str | None = None) -> bytes:
    out = io.BytesIO()
    items = "".join(f'<item id="c{at}" href="text/ch%20{at}.xhtml"/>' for at in range(len(chapters)))
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "META-INF/container.xml",
            '<container><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>',
        )
        archive.writestr(
            "OEBPS/content.opf",
            package or f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
        )
        for at, chapter in enumerate(chapters):
            archive.writestr(f"OEBPS/text/ch {at}.xhtml", f"<html><body>{chapter}</body></html>")
    return out.getvalue()


def test_a_book_is_read_in_order_and_cited_by_chapter(db: sennit.Database, root: Path) -> None:
    chapters = (
        "<h1>Departure</h1><p>The ship leaves the harbour at dawn.</p>",
        "<h1>Storm</h1><p>The captain lowers the sails in the storm.</p>",
    )
    write(root, {"voyage.epub": book(*chapters)})
    db.index(root)
    assert cited(db, "who lowers the sails") == "voyage.epub#chapter=2"
    assert best(db, "when does the ship leave").title.endswith("Departure")


def test_a_book_is_found_by_its_title(db: sennit.Database, root: Path) -> None:
    package = (
        '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title id="t">\n The  Fog &amp; the Lamp'
        '</dc:title></metadata><manifest><item id="c0" href="text/ch%200.xhtml"/></manifest>'
        '<spine><itemref idref="c0"/></spine></package>'
    )
    write(root, {"b.epub": book("<h1>Departure</h1><p>The ship leaves.</p>", package=package)})
    db.index(root)
    assert best(db, "ship leaves").title == "The Fog & the Lamp > Departure"
    assert cited(db, "fog and lamp") == "b.epub#chapter=1"


def test_an_encrypted_book_is_reported(db: sennit.Database, root: Path) -> None:
    whole = io.BytesIO(book("<p>The ship leaves.</p>"))
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr("META-INF/encryption.xml", '<x><e:CipherReference URI="OEBPS/text/ch 0.xhtml"/></x>')
    write(root, {"b.epub": whole.getvalue()})
    assert [one.reason for one in db.index(root).skipped] == ["a book whose chapters are encrypted"]


def notebook() -> str:
    made = nbformat.v4.new_notebook()
    long_output = "row " * 1000
    made.cells = [
        nbformat.v4.new_markdown_cell("# Tides\n\nThis notebook computes the tides."),
        nbformat.v4.new_code_cell(
            "def high_tide(moon_phase):\n    return 4.2 * moon_phase",
            outputs=[nbformat.v4.new_output("stream", text=long_output)],
        ),
        nbformat.v4.new_markdown_cell("## Storm surge\n\nA surge adds two metres."),
    ]
    return str(nbformat.writes(made))


def test_a_notebook_without_ids_of_cells_is_read_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    old = json.loads(notebook())
    old["nbformat_minor"] = 5
    for cell in old["cells"]:
        cell.pop("id", None)
    assert read_notebook(json.dumps(old)).lines == read_notebook(notebook()).lines
    assert not recwarn.list


def test_a_notebook_is_a_page_cited_by_cell_with_outputs_cut(db: sennit.Database, root: Path) -> None:
    write(root, {"tides.ipynb": notebook()})
    db.index(root)
    assert cited(db, "how much does a storm surge add") == "tides.ipynb#cell=3"
    assert "high_tide" in best(db, "high tide by moon phase").text
    marked = read_notebook(notebook())
    assert sum(map(len, marked.lines)) < MAX_OUTPUT_CHARACTERS + 400


def test_each_row_of_a_table_is_a_record_with_typed_columns(db: sennit.Database, root: Path) -> None:
    write(
        root,
        {"boats.csv": 'name,length,home\n"Sea, Star",12.5,Porto\nMarlin,7,"Goa\nIndia"\nAlbatross,007,\n'},
    )
    db.index(root)
    hit = best(db, "which boat has its home in Goa")
    assert Path(hit.citation).name == "boats.csv#row=2"
    assert hit.text == "name: Marlin\nlength: 7\nhome: Goa\nIndia"
    assert [one.metadata["name"] for one in db.search("boat", filters="length > 10")] == ["Sea, Star"]
    assert next(record for record in db if "Albatross" in record.text).metadata["length"] == "007"


def test_cells_beyond_the_head_of_a_table_are_kept() -> None:
    rows = dict(read_csv(b"name,berth\nskiff,3\ndory,4,oak,,1987\nyawl\n"))
    assert rows[1] == {"name": "skiff", "berth": 3}
    assert rows[2] == {"name": "dory", "berth": 4, "column 3": "oak", "column 4": "", "column 5": 1987}
    assert rows[3] == {"name": "yawl"}


def test_a_template_makes_the_text_of_a_row_and_is_remembered(db: sennit.Database, root: Path) -> None:
    write(root, {"boats.tsv": "name\tabout\nMarlin\tA fast yacht\n"})
    db.index(root, row_template="{name} is {about}.{missing}")
    assert [record.text for record in db] == ["Marlin is A fast yacht."]
    write(root, {"boats.tsv": "name\tabout\nMarlin\ta slow yacht\n"})
    db.index(root)
    assert [record.text for record in db] == ["Marlin is a slow yacht."]


@pytest.mark.parametrize("template", ["{", "{0.__class__}", "{name!r}", "{name:>10}", "{a[0]}", "{}"])
def test_a_template_holds_only_names_of_columns(db: sennit.Database, root: Path, template: str) -> None:
    with pytest.raises(InvalidInput, match="row template"):
        db.index(root, row_template=template)


def test_a_parquet_file_has_the_rows_of_its_table(db: sennit.Database, root: Path) -> None:
    table = pyarrow.table(
        {"name": ["Marlin", "Tern"], "crew": [3, None], "note": ["fast yacht", "rowing boat"]}
    )
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out)
    write(root, {"boats.parquet": out.getvalue()})
    db.index(root)
    assert cited(db, "rowing boat") == "boats.parquet#row=2"
    assert [hit.metadata["name"] for hit in db.search("boat", filters="crew = 3")] == ["Marlin"]


def parquet(table: pyarrow.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out)
    return out.getvalue()


def test_lists_structs_and_maps_of_parquet_are_text_and_metadata(db: sennit.Database, root: Path) -> None:
    table = pyarrow.table(
        {
            "name": ["Marlin", "Tern"],
            "tags": [["fast", "red"], []],
            "home": [{"city": "Goa", "at": {"lat": 15.5, "lon": float("nan")}}, None],
            "crew": [[{"who": "Ana", "role": "cook"}], None],
            "fees": pyarrow.array([[("day", 40)], None], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
            "note": [b"wooden", b"\xff\x00"],
            "vector": [[0.5] * 300, [0.25] * 300],
        }
    )
    write(root, {"boats.parquet": parquet(table)})
    db.index(root)
    marlin = best(db, "which boat is at home in Goa")
    assert marlin.text == (
        "name: Marlin\ntags: fast, red\nhome.city: Goa\nhome.at.lat: 15.5\ncrew: (who: Ana, role: cook)\n"
        "fees.day: 40\nnote: wooden"
    )
    assert marlin.metadata["home"] == {"city": "Goa", "at": {"lat": 15.5}}
    assert [hit.metadata["name"] for hit in db.search("boat", filters={"metadata.tags": {"has": "red"}})] == [
        "Marlin"
    ]
    assert [hit.metadata["name"] for hit in db.search("boat", filters="home.at.lat > 15")] == ["Marlin"]
    assert next(record for record in db if "Tern" in record.text).text == "name: Tern"


def test_large_cells_of_parquet_are_read_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pyarrow.table({"name": [f"n{at}" for at in range(300)], "text": ["x" * 1_000_000] * 300})
    rows = list(tables.read_parquet(parquet(table)))
    assert len(rows) == 300
    assert len(str(rows[0][1]["text"])) == tables.MAX_CELL_CHARACTERS
    long = pyarrow.table({"text": ["y" * 100_000] * 700, "name": list(range(700))})
    with pytest.raises(UnreadableFile, match="more than 67,108,864 characters"):
        list(tables.read_parquet(parquet(long)))


def test_nesting_of_parquet_is_bounded() -> None:
    kind, value = pyarrow.string(), "deep"
    for _ in range(60):
        kind, value = pyarrow.struct([("a", kind)]), {"a": value}  # type: ignore[assignment]
    table = pyarrow.table({"name": ["x"], "deep": pyarrow.array([value], kind)})
    ((_, row),) = tables.read_parquet(parquet(table))
    records = tables.row_records([(1, row)], "x", template="", collection="files", timestamp=None)
    assert "deep" in records[0].text


def message(subject: str, text: str, html: str | None = None) -> EmailMessage:
    out = EmailMessage()
    out["Subject"], out["From"], out["To"] = subject, "Ana Silva <ana@example.org>", "crew@example.org"
    out["Date"] = "Tue, 03 Mar 2026 10:15:00 +0100"
    out.set_content(text)
    if html is not None:
        out.add_alternative(html, subtype="html")
    out.add_attachment(b"\x00\x01", maintype="application", subtype="octet-stream", filename="x.bin")
    return out


def test_a_message_has_its_subject_people_and_time(db: sennit.Database, root: Path) -> None:
    write(root, {"a.eml": message("Grüße from the quay", "The crane is repaired.").as_bytes()})
    db.index(root)
    hit = best(db, "is the crane repaired")
    assert (hit.title, hit.kind) == ("Grüße from the quay", "message")
    assert hit.metadata["from"] == "Ana Silva <ana@example.org>"
    assert str(hit.timestamp) == "2026-03-03 09:15:00+00:00"
    assert Path(hit.citation).name == "a.eml#message=1"


def test_each_message_of_a_mailbox_is_cited_by_its_number(
    db: sennit.Database, root: Path, tmp_path: Path
) -> None:
    box = mailbox.mbox(tmp_path / "made")
    box.add(message("Crane", "The crane is repaired.\nFrom tomorrow on it works."))
    box.add(message("Menu", " ", "<p>Lunch is <b>fish soup</b> on Friday</p>"))
    box.close()
    write(root, {"in.mbox": (tmp_path / "made").read_bytes()})
    db.index(root)
    assert cited(db, "what is for lunch on Friday") == "in.mbox#message=2"
    assert len(list(db)) == 2


def test_restructured_text_is_a_page_with_exact_lines(db: sennit.Database, root: Path) -> None:
    text = (
        "=======\nPumping\n=======\n\nAbout pumps. # not a heading\n\nStart the pump\n--------------\n\n"
        "Open the valve first::\n\n    # open\n    valve --open\n\nStop\n----\n\nClose the valve.\n"
    )
    write(root, {"pump.rst": text})
    db.index(root)
    assert cited(db, "how do I start the pump") == "pump.rst:7-13"
    assert best(db, "how do I start the pump").title == "Pumping > Start the pump"
    assert {record.collection for record in db} == {"docs"}


def test_asciidoc_is_a_page_with_exact_lines(db: sennit.Database, root: Path) -> None:
    text = (
        "= Pumping\n:toc:\n\nAbout pumps.\n\n== Start the pump\n\nOpen the valve first.\n\n[source,bash]\n----\n"
        "== not a heading\nvalve --open\n----\n\n////\n== a comment\n////\n\n== Stop\n\nClose the valve.\n"
    )
    write(root, {"pump.adoc": text})
    db.index(root)
    assert cited(db, "how do I start the pump") == "pump.adoc:6-14"
    assert {record.title for record in db} == {"Pumping", "Pumping > Start the pump", "Pumping > Stop"}


@given(st.text("=-`.# ab\n\t*_/+[]:", max_size=200))
def test_markup_keeps_the_number_of_lines(text: str) -> None:
    for convert in (markdown_of_rst, markdown_of_asciidoc):
        assert len(convert(text).split("\n")) == max(1, len(split_lines(text)))


CHATGPT = [
    {
        "title": "Boat",
        "conversation_id": "c-1",
        "current_node": "n3",
        "mapping": {
            "n0": {"message": None, "parent": None},
            "n1": {
                "message": {
                    "author": {"role": "user"},
                    "content": {"parts": ["Which paint suits a wooden hull?"]},
                    "create_time": 1767225600.5,
                },
                "parent": "n0",
            },
            "n2": {
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["Old answer"]}},
                "parent": "n1",
            },
            "n3": {
                "message": {
                    "author": {"role": "assistant"},
                    "content": {"parts": ["Use linseed oil paint."]},
                },
                "parent": "n1",
            },
        },
    }
]
CLAUDE = [
    {
        "uuid": "u-1",
        "name": "Ropes",
        "chat_messages": [
            {"sender": "human", "text": "Which knot holds a fender?", "created_at": "2026-01-02T03:04:05Z"},
            {
                "sender": "assistant",
                "content": [{"type": "text", "text": "A round turn and two half hitches."}],
            },
        ],
    }
]
SLACK = [
    {"type": "message", "user": "U1", "ts": "1767225600.000200", "text": "Who has the key of the boathouse?"},
    {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1767225601.0", "text": "has joined"},
    {
        "type": "message",
        "user": "U2",
        "ts": "1767225602.0",
        "text": "Marta has it.",
        "user_profile": {"real_name": "Rui"},
    },
]
WHATSAPP = "[31/12/2025, 21:15:00] Ana: The ferry is late\nbecause of fog\n[31/12/2025, 21:16:02] Rui: Then we take the train\n"


@pytest.mark.parametrize(
    ("name", "content", "query", "citation", "speaker", "session"),
    [
        ("conversations.json", CHATGPT, "paint for a wooden hull", "conversations.json#message=1", "user", "c-1"),
        ("claude.json", CLAUDE, "half hitches", "claude.json#message=2", "assistant", "u-1"),
        ("general/2026-01-01.json", SLACK, "Marta has it", "2026-01-01.json#message=2", "Rui", "2026-01-01"),
        ("chat.txt", WHATSAPP, "we take the train", "chat.txt:3", "Rui", "chat"),
    ],
)  # fmt: skip
def test_exports_of_assistants_and_chat_tools_are_turns(
    db: sennit.Database,
    root: Path,
    name: str,
    content: object,
    query: str,
    citation: str,
    speaker: str,
    session: str,
) -> None:
    write(root, {name: content if isinstance(content, str) else json.dumps(content)})
    db.index(root)
    hit = best(db, query)
    assert (hit.collection, Path(hit.citation).name) == ("history", citation)
    assert (hit.metadata["speaker"], hit.metadata["session"]) == (speaker, session)
    assert "Old answer" not in {record.text for record in db}


def test_other_json_stays_plain_text(db: sennit.Database, root: Path) -> None:
    write(root, {"a.json": '{"mapping": 3, "name": "x"}', "b.json": "[1, 2]", "c.json": "{"})
    db.index(root)
    assert {record.collection for record in db} == {"files"}
    assert len(list(db)) == 3


BROKEN: dict[str, bytes] = {
    "a.docx": b"PK\x03\x04 not a zip",
    "b.docx": b"plain text",
    "empty.docx": b"",
    "c.epub": b"PK\x05\x06" + bytes(18),
    "d.epub": book("<p>x</p>", package="<package/>"),
    "e.parquet": b"PAR1 broken PAR1",
    "f.ipynb": b"{}",
    "g.ipynb": b"[1,",
    "h.mbox": b"no separator\n",
    "i.eml": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_reported_and_the_rest_is_indexed(
    db: sennit.Database, root: Path, name: str
) -> None:
    write(root, {name: BROKEN[name], "good.md": "# Good\n\nText.\n"})
    report = db.index(root)
    assert {record.path for record in db} >= {"good.md"}
    problems = [one for one in report.skipped if one.path.endswith(name)]
    assert problems or name in {record.path for record in db}
    assert not any("Traceback" in one.reason or "Error:" in one.reason for one in problems), problems


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(300 * 1024 * 1024))
    with pytest.raises(UnreadableFile, match="bytes unpacked"):
        read_docx(out.getvalue())
    monkeypatch.setattr(epub, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(UnreadableFile, match="unpacked"):
        read_epub(book("<p>" + "a" * 5000 + "</p>"))


def test_a_table_has_a_limit_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    rows = tables.read_csv(b"a,b\n1,2\n3,4\n5,6\n")
    with pytest.raises(UnreadableFile, match="more than 2 rows"):
        tables.row_records(rows, "x.csv", template="", collection="files", timestamp=None)


@pytest.mark.parametrize("name", ["x.eml", "x.mbox", "x.csv", "x.rst", "x.adoc", "x.epub", "x.json", "x.txt"])
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused_with_a_reason(name: str, data: bytes) -> None:
    try:
        records = read_records(Folder("f", "/f"), name, "", data, 0)
    except UnreadableFile:
        return
    assert all(record.path == name for record in records)


READER_PACKAGE = {
    "shouting.py": (
        "from sennit import Record\n"
        "from sennit.ingest import Reader\n\n\n"
        "def parse(file, urls):\n"
        "    text = file.data.decode().upper()\n"
        "    return [Record(id=f'{file.place}#1', text=text, collection='files', path=file.place, parent=file.place)]\n\n\n"
        "reader = Reader('shouting', lambda path: path.endswith('.loud'), lambda path: 'shouting/1', parse, ('files',))\n"
    ),
    "shouting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n",
    "shouting-1.0.dist-info/entry_points.txt": "[sennit.readers]\nshouting = shouting:reader\n",
}


def test_an_installed_package_brings_a_reader_of_its_own(root: Path, tmp_path: Path) -> None:
    package = tmp_path / "site"
    write(package, READER_PACKAGE)
    write(root, {"a.loud": "quiet words\n"})
    script = (
        f"import sennit; db = sennit.open(':memory:'); db.index({str(root)!r}); print([r.text for r in db])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['QUIET WORDS\\n']\n"


def test_the_scope_in_the_metadata_of_a_folder_protects_its_files(db: sennit.Database, root: Path) -> None:
    write(root, {"a.md": "# Diary\n\nThe harbour at night.\n"})
    db.index(root, metadata={"visibility_scope": "me"})
    assert not db.search("harbour")
    assert db.search("harbour", caller=sennit.Caller(scopes={"me"}))
