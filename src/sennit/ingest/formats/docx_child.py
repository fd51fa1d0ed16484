"""The parser of Word documents, run by `child_main.py`. It imports nothing from sennit."""

import io
import re
import zipfile
from importlib import import_module


def read(data: bytes, max_unpacked: int) -> dict[str, object]:
    """Return the lines of each paragraph and table, with the number of the first paragraph."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile:
        return {"problem": "not a Word document, despite its name"}
    if unpacked > max_unpacked:
        return {"problem": f"a Word document of {unpacked:,} bytes unpacked; the limit is {max_unpacked:,}"}
    docx = import_module("docx")
    paragraph_type = import_module("docx.text.paragraph").Paragraph
    try:
        document = docx.Document(io.BytesIO(data))
        content = list(document.iter_inner_content())
    except Exception:  # noqa: BLE001 - the library raises many kinds for a damaged file
        return {"problem": "a Word document that cannot be read"}
    found = []
    number = 0
    for block in content:
        if isinstance(block, paragraph_type):
            number += 1
            lines = _paragraph(block)
        else:
            first = number + 1
            rows = [
                [" ".join(cell.text.split()).replace("|", "\\|") for cell in row.cells] for row in block.rows
            ]
            number += max(1, len(rows))
            lines = _table(rows)
            if lines:
                found.append((first, lines))
            continue
        if lines:
            found.append((number, lines))
    return {"paragraphs": found}


def _paragraph(block) -> list[str]:  # type: ignore[no-untyped-def]
    text = block.text.strip()
    if not text:
        return []
    style = (block.style.name if block.style is not None else "") or ""
    heading = re.fullmatch(r"Heading (\d)", style)
    if style == "Title":
        return [f"# {' '.join(text.split())}"]
    if heading:
        return [f"{'#' * min(6, int(heading[1]) + 1)} {' '.join(text.split())}"]
    lines = [re.sub(r"^(\s*)([#>])", r"\1\\\2", line) for line in text.splitlines()]
    if style.startswith("List"):
        return [f"- {lines[0]}", *lines[1:]]
    return lines


def _table(rows) -> list[str]:  # type: ignore[no-untyped-def]
    if not rows:
        return []
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]
