"""Word documents in full: lists, tables, notes, margins, and what the library's paragraphs leave out."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import docx
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls, qn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sennit
from ingest.conftest import write
from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.formats.docx import read_docx

MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def saved(document: Any, parts: dict[str, str] | None = None) -> bytes:
    """The bytes of a document, with further parts by the kind of their relationship."""
    before, out = io.BytesIO(), io.BytesIO()
    document.save(before)
    with zipfile.ZipFile(before) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            data = source.read(entry)
            for kind in parts or {}:
                name = (
                    f"<Relationship Id='x{kind}' Type='{OFFICE}/{kind}' Target='{kind}.xml'/></Relationships>"
                )
                kind_of = f"application/vnd.openxmlformats-officedocument.wordprocessingml.{kind}+xml"
                override = f"<Override PartName='/word/{kind}.xml' ContentType='{kind_of}'/></Types>"
                if entry.filename == "word/_rels/document.xml.rels":
                    data = data.replace(b"</Relationships>", name.encode())
                elif entry.filename == "[Content_Types].xml":
                    data = data.replace(b"</Types>", override.encode())
            target.writestr(entry.filename, data)
        for kind, content in (parts or {}).items():
            target.writestr(f"word/{kind}.xml", content)
    return out.getvalue()


def lines(document: Any, parts: dict[str, str] | None = None) -> list[str]:
    return [line for line in read_docx(saved(document, parts)).lines if line]


def numbered(document: Any) -> list[tuple[int, str]]:
    marked = read_docx(saved(document))
    return [(number, line) for number, line in zip(marked.numbers, marked.lines, strict=True) if line]


def xml(content: str) -> Any:
    return parse_xml(f"<w:p {nsdecls('w')}>{content}</w:p>")


def test_lists_keep_their_kind_and_level() -> None:
    document = docx.Document()
    for text, style in (
        ("ropes", "List Bullet"),
        ("of hemp", "List Bullet 2"),
        ("open the valve", "List Number"),
        ("by hand", "List Number 2"),
        ("a paragraph", "Normal"),
    ):
        document.add_paragraph(text, style=style)
    own = document.add_paragraph("bare item")
    own._p.get_or_add_pPr().append(
        parse_xml(f'<w:numPr {nsdecls("w")}><w:ilvl w:val="2"/><w:numId w:val="999"/></w:numPr>')
    )
    taken_out = document.add_paragraph("no item any more", style="List Bullet")
    taken_out._p.get_or_add_pPr().append(parse_xml(f'<w:numPr {nsdecls("w")}><w:numId w:val="0"/></w:numPr>'))
    assert lines(document) == [
        "- ropes",
        "  - of hemp",
        "1. open the valve",
        "  1. by hand",
        "a paragraph",
        "    - bare item",
        "no item any more",
    ]


def test_a_list_is_numbered_as_the_document_defines_it() -> None:
    document = docx.Document()
    numbering = document.part.numbering_part.element
    numbering.insert(
        0,
        parse_xml(
            f'<w:abstractNum {nsdecls("w")} w:abstractNumId="77"><w:lvl w:ilvl="0"><w:numFmt w:val="lowerRoman"/></w:lvl>'
            '<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
        ),
    )
    numbering.append(parse_xml(f'<w:num {nsdecls("w")} w:numId="77"><w:abstractNumId w:val="77"/></w:num>'))
    for level in ("0", "1"):
        document.add_paragraph(f"level {level}")._p.get_or_add_pPr().append(
            parse_xml(f'<w:numPr {nsdecls("w")}><w:ilvl w:val="{level}"/><w:numId w:val="77"/></w:numPr>')
        )
    assert lines(document) == ["1. level 0", "  - level 1"]


def test_tables_have_merged_and_nested_cells_once_and_a_number_for_each_row() -> None:
    document = docx.Document()
    document.add_paragraph("Fees")
    table = document.add_table(rows=3, cols=2)
    for cell, text in zip(table._cells, ("vessel", "fee", "yacht", "40 | 50", "", ""), strict=True):
        cell.text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    inner = table.cell(2, 1).add_table(rows=1, cols=2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "in winter", "20"
    document.add_paragraph("After the table")
    assert numbered(document) == [
        (1, "Fees"),
        (2, "| vessel | fee |"),
        (2, "|---|---|"),
        (3, "| yacht | 40 \\| 50 |"),
        (4, "|  | in winter 20 |"),
        (5, "After the table"),
    ]


def test_notes_stand_where_they_are_referred_to(db: sennit.Database, root: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("The ferry leaves at noon")
    for kind, name in (("footnote", "2"), ("endnote", "3")):
        paragraph._p.append(parse_xml(f'<w:r {nsdecls("w")}><w:{kind}Reference w:id="{name}"/></w:r>'))
    document.add_paragraph("More")
    parts = {
        f"{kind}s": (
            f'<w:{kind}s xmlns:w="{MAIN}"><w:{kind} w:type="separator" w:id="0"><w:p/></w:{kind}>'
            f'<w:{kind} w:id="{name}"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:{kind}></w:{kind}s>'
        )
        for kind, name, text in (("footnote", "2", "Not in storms."), ("endnote", "3", "By law."))
    }
    assert lines(document, parts) == [
        "The ferry leaves at noon[^f2][^e3]",
        "[^f2]: Not in storms.",
        "[^e3]: By law.",
        "More",
    ]
    write(root, {"ferry.docx": saved(document, parts)})
    db.index(root)
    assert "Not in storms." in db.files.read(f"{root}/ferry.docx#paragraph=1").text


def test_headers_and_footers_are_read_once_and_page_numbers_are_not() -> None:
    document = docx.Document()
    document.add_paragraph("Text")
    section = document.sections[0]
    section.header.paragraphs[0].text = "Port of Goa, confidential"
    section.footer.paragraphs[0].text = "12"
    second = document.add_section()
    second.header.is_linked_to_previous = False
    second.header.paragraphs[0].text = "Port of Goa, confidential"
    assert lines(document) == ["Text", "Header: Port of Goa, confidential"]


def test_controls_insertions_and_boxes_are_text_and_deletions_are_not() -> None:
    document = docx.Document()
    body = document.element.body
    run = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>".format
    control = f"<w:sdt {nsdecls('w')}><w:sdtContent><w:p>{run('In a control')}</w:p></w:sdtContent></w:sdt>"
    body.insert(0, parse_xml(control))
    body.insert(
        1,
        xml(
            f"{run('It ')}<w:ins w:id='1'>{run('now ')}</w:ins><w:del w:id='2'><w:r><w:delText>never</w:delText></w:r></w:del>"
            f"<w:hyperlink>{run('leaves')}</w:hyperlink><w:moveFrom w:id='3'>{run('gone')}</w:moveFrom>"
            "<w:r><w:tab/><w:t>at</w:t><w:br/><w:t>noon</w:t></w:r>"
        ),
    )
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('In a box')}</w:p></w:txbxContent></w:pict></w:r>"
    body.insert(2, xml(f"{run('Beside')}{box}"))
    assert lines(document) == ["In a control", "It now leaves\tat", "noon", "Beside", "In a box"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12, deadline=None)
@given(
    at=st.floats(0, 1),
    junk=st.sampled_from(
        ["", "<w:p/>", "<w:numPr/>", "<w:tbl/>", "<w:tr/>", "<w:ilvl w:val='x'/>", "&x;", "<"]
    ),
)
def test_a_damaged_document_is_read_or_refused_with_a_reason(at: float, junk: str) -> None:
    document = docx.Document()
    document.add_paragraph("item", style="List Number 2")
    document.add_table(rows=1, cols=1).cell(0, 0).text = "cell"
    source, out = io.BytesIO(saved(document)), io.BytesIO()
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(out, "w") as target:
        for entry in archive.infolist():
            data = archive.read(entry)
            if entry.filename == "word/document.xml":
                tags = [found for found in range(len(data)) if data[found : found + 1] == b">"]
                place = tags[int(at * (len(tags) - 1))] + 1
                data = data[:place] + junk.encode() + data[place:]
            target.writestr(entry.filename, data)
    try:
        read_docx(out.getvalue())
    except UnreadableFile as error:
        assert "cannot be read" in str(error)  # noqa: PT017 - either is a result


def test_elements_inside_each_other_end_with_a_result() -> None:
    document = docx.Document()
    inside: Any = xml("<w:r><w:t>deep</w:t></w:r>")
    for _ in range(240):
        outer = parse_xml(f"<w:sdt {nsdecls('w')}><w:sdtContent/></w:sdt>")
        outer.find(qn("w:sdtContent")).append(inside)
        inside = outer
    document.element.body.insert(0, inside)
    try:
        assert lines(document) in ([], ["deep"])
    except UnreadableFile as error:
        assert str(error).startswith("a Word document")  # noqa: PT017 - either is a result
