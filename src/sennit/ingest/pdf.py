"""PDF to text, page by page, by a program of its own that may fail without doing harm."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from sennit.ingest.reading import Unreadable

SECONDS: Final = 30
"""Of computing; a thousand ordinary pages take about five."""

PATIENCE: Final = 4
"""Times SECONDS that may pass on a busy machine."""

MEMORY: Final = 1536 * 1024 * 1024
MAX_PAGES: Final = 10_000
MAX_CHARACTERS: Final = 10_000_000

_CHILD: Final = Path(__file__).with_name("pdf_child.py")


class Pages(NamedTuple):
    """The text of each page, and how many pages could not be read."""

    texts: list[str]
    broken: int


def pages(data: bytes) -> Pages:
    """The text of each page; raises Unreadable with the reason."""
    if b"%PDF-" not in data[:1024]:
        raise Unreadable("not a PDF, in spite of its name")
    if not _installed():
        raise Unreadable(
            "PDF needs an optional package; install it with: pip install 'sennit[pdf]'", lasting=False
        )
    limits = [str(limit) for limit in (SECONDS, MEMORY, MAX_PAGES, MAX_CHARACTERS)]
    try:
        # -I: neither the working folder nor the environment decides what is imported.
        child = subprocess.run(
            [sys.executable, "-I", str(_CHILD), *limits],
            input=data,
            capture_output=True,
            check=False,
            timeout=SECONDS * PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise Unreadable(f"a PDF that takes more than {SECONDS} s to read") from None
    except OSError as error:
        raise Unreadable(f"the reader of PDFs cannot be started: {error.strerror}", lasting=False) from error
    return _answer(child)


def _answer(child: subprocess.CompletedProcess[bytes]) -> Pages:
    if child.returncode == -24:  # SIGXCPU
        raise Unreadable(f"a PDF that takes more than {SECONDS} s to read")
    if child.returncode == -2:  # SIGINT: the user has stopped everything
        raise Unreadable("interrupted", lasting=False)
    try:
        answer = json.loads(child.stdout) if child.returncode == 0 else {}
    except ValueError:
        answer = {}
    texts = answer.get("pages")
    if answer.get("problem"):
        raise Unreadable(str(answer["problem"]))
    if not isinstance(texts, list):
        raise Unreadable("a PDF on which its reader fails (it crashes or needs too much memory)")
    return Pages([_clean(str(text)) for text in texts], int(answer.get("broken", 0)))


def _clean(text: str) -> str:
    """Valid Unicode with plain line ends; U+FFFE is how the reader marks a word broken at a line's end."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "-").replace("\0", "\ufffd")


@cache
def _installed() -> bool:
    return find_spec("pypdfium2") is not None
