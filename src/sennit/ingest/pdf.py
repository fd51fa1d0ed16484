"""Extracting the text of a PDF page by page, in a child process that may crash without harm."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from sennit.ingest import bounded_child
from sennit.ingest.file_reader import UnreadableFile

MAX_PAGES: Final = 10_000
MAX_CHARACTERS: Final = 10_000_000

_CHILD: Final = Path(__file__).with_name("pdf_child.py")


class PdfPages(NamedTuple):
    """The text of each page, and the number of pages that could not be read."""

    texts: list[str]
    broken: int


def extract_pages(data: bytes) -> PdfPages:
    """Extract the text of each page; raises UnreadableFile with the reason."""
    if b"%PDF-" not in data[:1024]:
        raise UnreadableFile("not a PDF, despite its name")
    if not _is_installed():
        raise UnreadableFile(
            "PDF needs an optional package; install it with: pip install 'sennit[pdf]'", permanent=False
        )
    output = bounded_child.run_child(_CHILD, data, "a PDF", (MAX_PAGES, MAX_CHARACTERS))
    texts = output.get("pages")
    if not isinstance(texts, list):
        raise UnreadableFile("the PDF reader fails on this file")
    return PdfPages([_clean(str(text)) for text in texts], int(output.get("broken", 0)))


def _clean(text: str) -> str:
    """Return valid Unicode with \\n line ends. PDFium writes U+FFFE where a word is hyphenated at the end of a line."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "-").replace("\0", "\ufffd")


@cache
def _is_installed() -> bool:
    return find_spec("pypdfium2") is not None
