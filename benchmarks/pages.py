"""How fast pages of Markdown are chunked: megabytes a CPU-second, beside a full parser.

    python -m benchmarks.pages [FOLDER …]

Reads every different .md, .mdx and .markdown file below the folders (without any: what is installed on this machine) and
chunks them all. Change logs are counted apart: they are few, long, and one list from beginning to end.
"""

from __future__ import annotations

import argparse
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from markdown_it import MarkdownIt

from sennit.ingest.chunk import split_lines
from sennit.ingest.pages import page_chunks
from sennit.ingest.pages.markdown import scan

ROOTS = (sysconfig.get_path("purelib"), "/usr/share", "/usr/lib", "/usr/local")
ENDINGS = (".md", ".mdx", ".markdown")
ROUNDS = 3

Pages = Sequence[tuple[str, str]]


def pages_below(roots: Sequence[str]) -> Pages:
    """Path and text of each different file."""
    found: dict[str, str] = {}
    for root in roots:
        for path in sorted(Path(root).rglob("*.m*")):
            if path.suffix in ENDINGS and path.is_file():
                found.setdefault(path.read_bytes().decode("utf-8", "replace"), path.as_posix().lstrip("/"))
    return [(path, text) for text, path in found.items()]


def rate(work: Callable[[str, str], object], pages: Pages, rounds: int = ROUNDS) -> float:
    """Megabytes a CPU-second, the best of several rounds."""
    size = sum(len(text.encode(errors="replace")) for _, text in pages) / 1e6
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        for path, text in pages:
            work(path, text)
        seconds.append(time.process_time() - start)
    return size / min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", default=ROOTS)
    everything = pages_below(parser.parse_args().folders)
    logs = [page for page in everything if "change" in page[0].lower() or "history" in page[0].lower()]
    others = [page for page in everything if page not in logs]

    whole = MarkdownIt("commonmark").enable("table")
    blocks = MarkdownIt("commonmark").enable("table")
    blocks.core.ruler.disable("inline")
    ways: dict[str, tuple[Callable[[str, str], object], int]] = {
        "markdown-it-py": (lambda _, text: whole.parse(text), 1),
        "markdown-it-py, blocks only": (lambda _, text: blocks.parse(text), 1),
        "scan": (lambda _, text: scan(split_lines(text)), ROUNDS),
        "page_chunks": (lambda path, text: page_chunks(text, path=path), ROUNDS),
    }
    print(f"{'MB/s':30} {'files':>6} {'MB':>6}", *(f"{way:>28}" for way in ways))
    for name, pages in (("pages", others), ("change logs", logs), ("all", everything)):
        if pages:
            size = sum(len(text) for _, text in pages) / 1e6
            rates = (rate(work, pages, rounds) for work, rounds in ways.values())
            print(f"{name:30} {len(pages):6} {size:6.1f}", *(f"{speed:28.1f}" for speed in rates), flush=True)


if __name__ == "__main__":
    main()
