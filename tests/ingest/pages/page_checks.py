"""Markdown files installed on this machine, and the properties that the chunks of every page have."""

from __future__ import annotations

import itertools
import sysconfig
from functools import cache
from pathlib import Path

from sennit.ingest.chunk import split_lines
from sennit.ingest.pages import DocPage, PageChunk, PageOptions

ROOTS = (sysconfig.get_path("purelib"), "/usr/share/doc", "/usr/share", "/usr/lib", "/usr/local")
ENDINGS = (".md", ".mdx", ".markdown")
MAX_FILES = 1000


@cache
def installed_pages() -> tuple[tuple[str, str], ...]:
    """Return the paths and texts of up to a thousand distinct Markdown files on this machine."""
    found: dict[str, str] = {}
    for root in ROOTS:
        for path in sorted(Path(root).rglob("*.m*")):
            if path.suffix in ENDINGS and path.is_file():
                text = path.read_bytes().decode("utf-8", "replace").replace("\0", "\ufffd")
                found.setdefault(text, path.as_posix().lstrip("/"))
                if len(found) == MAX_FILES:
                    return tuple((path, text) for text, path in found.items())
    return tuple((path, text) for text, path in found.items())


def own_text(chunk: PageChunk) -> str:
    """Return the text of a chunk without the repeated head of a table or fence."""
    return "\n".join(chunk.text.split("\n")[chunk.repeated_lines :])


def metadata_lines(page: DocPage) -> set[int]:
    return {line for first, last in page.metadata_lines for line in range(first, last + 1)}


def check(text: str, page: DocPage, options: PageOptions) -> None:
    """Check that no text is lost or repeated, that line numbers are right, and that no chunk is too long."""
    lines = split_lines(text.removeprefix("\ufeff"))
    metadata = metadata_lines(page)
    chunks = [chunk for chunk in page.chunks if chunk.last_line not in metadata]
    for chunk in chunks:
        assert 1 <= chunk.first_line <= chunk.last_line <= len(lines)
        own = own_text(chunk)
        assert own.strip()
        assert len(own) <= options.max_chars
        source = "\n".join(
            "" if line in metadata else lines[line - 1]
            for line in range(chunk.first_line, chunk.last_line + 1)
        )
        if chunk.parts == 1:
            assert own == source
        else:
            assert own in source
            assert own.split("\n")[0] in lines[chunk.first_line - 1]
            assert own.split("\n")[-1] in lines[chunk.last_line - 1]
    for before, after in itertools.pairwise(chunks):
        assert before.last_line <= after.first_line
    content = [line for number, line in enumerate(lines, 1) if number not in metadata]
    assert "".join("".join(map(own_text, chunks)).split()) == "".join("".join(content).split())
    kinds = [chunk.kind for chunk in page.chunks]
    assert kinds.count("PAGE_SUMMARY") == (1 if page.chunks else 0)
    assert kinds.count("PAGE_EXAMPLES") <= 1
