"""EPUB books: the chapters in reading order, each read as an HTML page."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from typing import Final
from urllib.parse import unquote

from sennit.ingest.file_reader import UnreadableFile, decode
from sennit.ingest.formats.marked_text import MarkedText
from sennit.ingest.html import parse_html

MAX_UNPACKED_BYTES: Final = 64 * 1024 * 1024
"""The chapters and lists of a book together, unpacked; a thousand pages of text have about two."""
MAX_CHAPTERS: Final = 10_000

MAX_TITLE_CHARACTERS: Final = 200

_CONTAINER: Final = "META-INF/container.xml"
_ENCRYPTION: Final = "META-INF/encryption.xml"
_TITLE: Final = re.compile(r"<(?:\w+:)?title\b[^<>]*>([^<>]*)<")
_ATTRIBUTE: Final = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def read_epub(data: bytes) -> MarkedText:
    """Read a book; raises UnreadableFile with the reason."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(_Unpacker(archive))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise UnreadableFile("a book that cannot be unpacked (it is damaged or protected)") from error


class _Unpacker:
    """Unpacks parts of an archive up to a limit for all of them, whatever sizes the archive claims."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._left = MAX_UNPACKED_BYTES

    def read(self, name: str) -> bytes | None:
        try:
            entry = self._archive.getinfo(name)
        except KeyError:
            return None
        with self._archive.open(entry) as part:
            data = part.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableFile(f"a book of more than {MAX_UNPACKED_BYTES:,} bytes unpacked")
        return data


def _read(unpacker: _Unpacker) -> MarkedText:
    out = MarkedText("chapter")
    root, package = _package(unpacker)
    if title := _title(package):
        out.add(1, [f"# {title}"])
    encrypted = {
        unquote(one.get("URI", "")) for one in _elements(unpacker.read(_ENCRYPTION) or b"", "CipherReference")
    }
    for number, name in enumerate(_chapters(root, package), 1):
        if number > MAX_CHAPTERS:
            raise UnreadableFile(f"a book of more than {MAX_CHAPTERS:,} chapters")
        if name in encrypted:
            raise UnreadableFile("a book whose chapters are encrypted")
        data = unpacker.read(name)
        if data is None:
            continue
        document = parse_html(decode(data).text)
        lines = [
            f"{'#' * min(6, document.headings[at][0])} {line.strip()}" if at in document.headings else line
            for at, line in enumerate(document.lines)
        ]
        out.add(number, lines)
    return out


def _package(unpacker: _Unpacker) -> tuple[str, bytes]:
    """The name of the package document, which lists what the book consists of, and its text."""
    container = unpacker.read(_CONTAINER)
    if container is None:
        raise UnreadableFile("not a book, despite its name")
    root = next((one.get("full-path", "") for one in _elements(container, "rootfile")), "")
    package = unpacker.read(root)
    if package is None:
        raise UnreadableFile("a book without a list of its chapters")
    return root, package


def _title(package: bytes) -> str:
    """The title of the book; empty if it has none."""
    found = _TITLE.search(decode(package).text)
    return "" if found is None else " ".join(unescape(found[1]).split())[:MAX_TITLE_CHARACTERS]


def _chapters(root: str, package: bytes) -> Iterator[str]:
    """The names of the chapters in the archive, in reading order."""
    base = posixpath.dirname(root)
    files = {
        item["id"]: posixpath.normpath(posixpath.join(base, unquote(item["href"])))
        for item in _elements(package, "item")
        if {"id", "href"} <= item.keys()
    }
    for reference in _elements(package, "itemref"):
        name = files.get(reference.get("idref", ""))
        if name is not None:
            yield name


def _elements(xml: bytes, name: str) -> Iterator[dict[str, str]]:
    """The attributes of the elements with this name. Entities of the document's own are never expanded."""
    pattern = re.compile(rf"<(?:\w+:)?{name}\b([^<>]*)>")
    for found in pattern.finditer(decode(xml).text):
        yield {key: unescape(first or second) for key, first, second in _ATTRIBUTE.findall(found[1])}
