"""PDF: text by page number, and reports of broken and hostile files."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

import sennit
from ingest.conftest import reasons, write
from sennit.ingest import bounded_child, index, pdf
from sennit.ingest.file_reader import UnreadableFile

pytest.importorskip("pypdfium2", reason="sennit[pdf] is not installed")


def document(*streams: bytes, extra: str = "", packed: bool = False) -> bytes:
    """A PDF with one page for each stream of drawing commands."""
    numbers = range(4, 4 + 2 * len(streams), 2)
    kids = " ".join(f"{n} 0 R" for n in numbers)
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    for number, stream in zip(numbers, streams, strict=True):
        objects[number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {number + 1} 0 R "
            "/Resources << /Font << /F 3 0 R >> >> >>"
        ).encode()
        kind = "/Filter /FlateDecode " if packed else ""
        objects[number + 1] = (
            f"<< {kind}/Length {len(stream)} >>\nstream\n".encode() + stream + b"\nendstream"
        )
    out = bytearray(b"%PDF-1.4\n")
    places = {}
    for number, body in objects.items():
        places[number] = len(out)
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    for number in sorted(places):
        out += f"{places[number]:010d} 00000 n \n".encode()
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R {extra}>>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def shows(*lines: str) -> bytes:
    return b"BT /F 12 Tf 50 700 Td " + " ".join(f"({line}) Tj 0 -14 Td" for line in lines).encode() + b" ET"


def test_a_page_is_cited_by_its_number(db: sennit.Database, root: Path) -> None:
    write(root, {"a.pdf": document(shows("the harbour at dawn", "is quiet"), shows("the market at noon"))})
    report = index(db, root)
    assert (report.added, report.skipped) == (1, [])
    found = db.search("market noon", limit=1)[0]
    assert found.metadata["page"] == 2
    assert found.record.kind == "pdf"
    assert found.record.lines is None
    assert {record.text for record in db} == {"the harbour at dawn\nis quiet", "the market at noon"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"just some words", "not a PDF"),
        (b"%PDF-1.4\n" + b"garbage " * 100, "a PDF that cannot be read"),
        (document(shows("x"))[:200], "a PDF that cannot be read"),
        (b"%PDF-1.4\n" + b"1 0 obj " + b"[" * 200_000, "PDF"),
        (
            document(shows("x"), extra="/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O ("
                     + "o" * 32 + ") /U (" + "u" * 32 + ") >> /ID [(a) (a)] "),
            "needs a password",
        ),
    ],
)  # fmt: skip
def test_unreadable_pdf_is_reported_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason):
        pdf.extract_pages(data)


def test_pdf_bomb_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_child, "MAX_MEMORY_BYTES", 300 * 1024 * 1024)
    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(b"(a) Tj " * 150_000) for _ in range(320)) + packer.flush()
    try:
        found = pdf.extract_pages(document(bomb, packed=True))
    except UnreadableFile:
        return
    assert sum(map(len, found.texts)) < pdf.MAX_CHARACTERS


def test_pdf_that_takes_too_long_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_child, "CPU_SECONDS", 1)
    slow = b"BT /F 1 Tf " + b"(abcdefghij) Tj 0 -1 Td " * 1_200_000 + b" ET"
    with pytest.raises(UnreadableFile, match="more than"):
        pdf.extract_pages(document(slow, slow, slow))


def test_too_many_pages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MAX_PAGES", 1)
    with pytest.raises(UnreadableFile, match="2 pages; the limit is 1"):
        pdf.extract_pages(document(shows("a"), shows("b")))


def test_without_its_package_a_pdf_is_skipped_and_tried_again_later(
    db: sennit.Database, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"a.pdf": document(shows("words"))})
    with monkeypatch.context() as patch:
        patch.setattr(pdf, "_is_installed", lambda: False)
        assert "sennit[pdf]" in reasons(index(db, root), root)["a.pdf"]
    assert index(db, root).added == 1
