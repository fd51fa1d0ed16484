"""The parser of Word documents, run by `child_main.py`. It imports nothing from sennit.

It walks the elements themselves, because the library's paragraphs are without the text of content controls, of insertions
that nobody accepted yet, and of text boxes.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from importlib import import_module
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
DELETED = {f"{W}del", f"{W}moveFrom", FALLBACK}
"""What is not shown: deleted text, and the older form of something that is there in a newer form."""

NOTES = {f"{W}footnoteReference": "footnotes", f"{W}endnoteReference": "endnotes"}
MAX_DEPTH = 200
MAX_LIST_LEVEL = 8


def read(data: bytes, max_unpacked: int) -> dict[str, object]:
    """Return blocks of lines, each line with the number of its paragraph; a row of a table counts as one."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile:
        return {"problem": "not a Word document, despite its name"}
    if unpacked > max_unpacked:
        return {"problem": f"a Word document of {unpacked:,} bytes unpacked; the limit is {max_unpacked:,}"}
    docx = import_module("docx")
    try:
        return {"blocks": _Reader(docx.Document(io.BytesIO(data))).blocks()}
    except Exception:  # noqa: BLE001 - the library raises many kinds for a damaged file
        return {"problem": "a Word document that cannot be read"}


class _Reader:
    def __init__(self, document: Any) -> None:
        self._document = document
        self._parse = import_module("docx.oxml").parse_xml
        self._styles = {style.style_id: style.name or "" for style in document.styles}
        self._formats = self._list_formats()
        self._notes = {kind: self._read_notes(kind) for kind in NOTES.values()}
        self._number = 0

    def blocks(self) -> list[list[tuple[int, str]]]:
        out = [block for one in self._content(self._document.element.body) if (block := self._block(one))]
        marginal = self._margins()
        return [*out, [(max(1, self._number), line) for line in marginal]] if marginal else out

    def _content(self, parent: Any, depth: int = 0) -> Iterator[Any]:
        """Yield the paragraphs and tables in an element, also those in content controls and the like."""
        for child in parent:
            if child.tag in (f"{W}p", f"{W}tbl"):
                yield child
            elif child.tag not in DELETED and isinstance(child.tag, str) and depth < MAX_DEPTH:
                yield from self._content(child, depth + 1)

    def _block(self, element: Any) -> list[tuple[int, str]]:
        if element.tag == f"{W}p":
            self._number += 1
            return [(self._number, line) for line in self._paragraph(element)]
        rows = [
            [self._cell(cell) for cell in row.iter(f"{W}tc") if _owner(cell, f"{W}tr") is row]
            for row in element.iter(f"{W}tr")
            if _owner(row, f"{W}tbl") is element
        ]
        first = self._number + 1
        self._number += max(1, len(rows))
        if not any(any(row) for row in rows):
            return []
        width = max(map(len, rows))
        lines = [
            (first + at, "| " + " | ".join(row + [""] * (width - len(row))) + " |")
            for at, row in enumerate(rows)
        ]
        return [lines[0], (first, "|" + "---|" * width), *lines[1:]]

    def _cell(self, cell: Any) -> str:
        """The text of a cell on one line; one that a merged cell continues is empty."""
        merge = cell.find(f"{W}tcPr/{W}vMerge")
        if merge is not None and merge.get(f"{W}val") != "restart":
            return ""
        texts = [" ".join(self._text(one).split()) for one in cell.iter(f"{W}p")]
        return " ".join(filter(None, texts)).replace("|", "\\|")

    def _paragraph(self, element: Any) -> list[str]:
        text = self._text(element).strip()
        boxes = [
            " ".join(self._text(one).split())
            for box in element.iter(f"{W}txbxContent")
            if _is_shown(box)
            for one in box.iter(f"{W}p")
        ]
        notes = [
            f"[^{kind[0]}{name}]: {note}"
            for tag, kind in NOTES.items()
            for reference in element.iter(tag)
            if (note := self._notes[kind].get(name := reference.get(f"{W}id", "")))
        ]
        return [*self._marked(element, text), *filter(None, boxes), *notes]

    def _marked(self, element: Any, text: str) -> list[str]:
        if not text:
            return []
        style = element.find(f"{W}pPr/{W}pStyle")
        name = "" if style is None else self._styles.get(style.get(f"{W}val"), "")
        heading = re.fullmatch(r"Heading (\d)", name)
        if name == "Title":
            return [f"# {' '.join(text.split())}"]
        if heading:
            return [f"{'#' * min(6, int(heading[1]) + 1)} {' '.join(text.split())}"]
        lines = [re.sub(r"^(\s*)([#>])", r"\1\\\2", line) for line in text.splitlines()]
        marker = self._list_marker(element, name)
        if marker:
            inside = " " * len(marker)
            return [f"{marker}{lines[0]}", *(f"{inside}{line}" for line in lines[1:])]
        return lines

    def _list_marker(self, element: Any, style: str) -> str:
        """`- ` or `1. `, indented by its level; empty for a paragraph that is no item of a list."""
        named = re.fullmatch(r"List(?: (Bullet|Number))?(?: (\d))?", style)
        level = int(named[2]) - 1 if named and named[2] else 0
        is_numbered = bool(named and named[1] == "Number")
        numbering = element.find(f"{W}pPr/{W}numPr")
        if numbering is not None:
            given = numbering.find(f"{W}ilvl")
            number = numbering.find(f"{W}numId")
            level = _whole(given)
            kind = self._formats.get(("" if number is None else number.get(f"{W}val"), level))
            if number is not None and number.get(f"{W}val") == "0":
                return ""  # taken out of the list of its style
            is_numbered = kind not in (None, "bullet", "none")
        elif named is None:
            return ""
        return "  " * min(level, MAX_LIST_LEVEL) + ("1. " if is_numbered else "- ")

    def _list_formats(self) -> dict[tuple[str, int], str]:
        """How each level of each list is numbered, by the id of the list and the level."""
        root = self._part("numbering")
        if root is None:
            return {}
        abstract = {
            one.get(f"{W}abstractNumId"): {
                _whole(level, f"{W}ilvl"): form.get(f"{W}val")
                for level in one.iter(f"{W}lvl")
                if (form := level.find(f"{W}numFmt")) is not None
            }
            for one in root.iter(f"{W}abstractNum")
        }
        return {
            (one.get(f"{W}numId"), level): form
            for one in root.iter(f"{W}num")
            if (link := one.find(f"{W}abstractNumId")) is not None
            for level, form in abstract.get(link.get(f"{W}val"), {}).items()
        }

    def _read_notes(self, kind: str) -> dict[str, str]:
        root = self._part(kind)
        if root is None:
            return {}
        return {note.get(f"{W}id", ""): self._line(note) for note in root if note.get(f"{W}type") is None}

    def _margins(self) -> list[str]:
        """What stands above and below the text of pages, each once; numbers of pages alone are left out."""
        found: dict[str, None] = {}
        for kind in ("header", "footer"):
            for text in map(self._line, self._parts(kind)):
                if re.search(r"[^\W\d_]", text):
                    found[f"{kind.capitalize()}: {text}"] = None
        return list(found)

    def _part(self, kind: str) -> Any:
        return next(self._parts(kind), None)

    def _parts(self, kind: str) -> Iterator[Any]:
        """Yield the parts of a kind that stand beside the text in the file."""
        for relation in self._document.part.rels.values():
            if relation.reltype.endswith(f"/{kind}") and not relation.is_external:
                yield self._parse(relation.target_part.blob)

    def _line(self, element: Any) -> str:
        """The text of all paragraphs in an element, on one line."""
        return " ".join(" ".join(self._text(one) for one in element.iter(f"{W}p")).split())

    def _text(self, paragraph: Any) -> str:
        """The text of a paragraph without that of the paragraphs inside it."""
        out = []
        for element in paragraph.iter():
            if _owner(element, f"{W}p") is not paragraph or not _is_shown(element, paragraph):
                continue
            if element.tag == f"{W}t":
                out.append(element.text or "")
            elif element.tag == f"{W}tab" and _owner(element, f"{W}r") is not None:
                out.append("\t")
            elif element.tag in (f"{W}br", f"{W}cr"):
                out.append("\n")
            elif element.tag == f"{W}noBreakHyphen":
                out.append("-")
            elif element.tag in NOTES and element.get(f"{W}id") in self._notes[NOTES[element.tag]]:
                out.append(f"[^{NOTES[element.tag][0]}{element.get(f'{W}id')}]")
        return "".join(out)


def _owner(element: Any, tag: str) -> Any:
    """The nearest element around one with this tag."""
    return next(element.iterancestors(tag), None)


def _is_shown(element: Any, until: Any = None) -> bool:
    for one in element.iterancestors():
        if one is until:
            break
        if one.tag in DELETED:
            return False
    return True


def _whole(element: Any, name: str = f"{W}val") -> int:
    text = "" if element is None else element.get(name) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 3 else 0
