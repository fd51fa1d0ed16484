"""Extracting the text of a PDF page by page, in a child process that may crash without harm."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from sennit.ingest.file_reader import UnreadableFile

CPU_SECONDS: Final = 30
"""CPU time for one PDF; a thousand ordinary pages take about five seconds."""

WALL_CLOCK_FACTOR: Final = 4
"""The wall clock limit, in multiples of CPU_SECONDS: a busy machine runs the child only part of the time."""

MAX_MEMORY_BYTES: Final = 1536 * 1024 * 1024
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
    limits = [str(limit) for limit in (CPU_SECONDS, MAX_MEMORY_BYTES, MAX_PAGES, MAX_CHARACTERS)]
    try:
        # -I: the working directory and the environment have no influence on imports.
        child = subprocess.run(
            [sys.executable, "-I", str(_CHILD), *limits],
            input=data,
            capture_output=True,
            check=False,
            timeout=CPU_SECONDS * WALL_CLOCK_FACTOR,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableFile(f"a PDF that takes more than {CPU_SECONDS} s to read") from None
    except OSError as error:
        raise UnreadableFile(
            f"the PDF reader cannot be started: {error.strerror}", permanent=False
        ) from error
    return _parse_output(child)


def _parse_output(child: subprocess.CompletedProcess[bytes]) -> PdfPages:
    if child.returncode == -24:  # SIGXCPU
        raise UnreadableFile(f"a PDF that takes more than {CPU_SECONDS} s to read")
    if child.returncode == -2:  # SIGINT: the user pressed Ctrl-C
        raise UnreadableFile("interrupted", permanent=False)
    try:
        output = json.loads(child.stdout) if child.returncode == 0 else {}
    except ValueError:
        output = {}
    texts = output.get("pages")
    if output.get("problem"):
        raise UnreadableFile(str(output["problem"]))
    if not isinstance(texts, list):
        raise UnreadableFile("the PDF reader fails on this file (it crashes or needs too much memory)")
    return PdfPages([_clean(str(text)) for text in texts], int(output.get("broken", 0)))


def _clean(text: str) -> str:
    """Return valid Unicode with \\n line ends. PDFium writes U+FFFE where a word is hyphenated at the end of a line."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "-").replace("\0", "\ufffd")


@cache
def _is_installed() -> bool:
    return find_spec("pypdfium2") is not None
