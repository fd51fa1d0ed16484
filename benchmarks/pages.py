"""The speed of chunking Markdown pages in megabytes per CPU second, compared with a full parser.

    python -m benchmarks.pages [FOLDER …]

Chunks all distinct .md, .mdx and .markdown files below the folders. Default: the folders of installed software. Change
logs are reported separately: they are few and long, and mostly one list.
"""

from __future__ import annotations

import argparse
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from markdown_it import MarkdownIt

from sennit.ingest.chunk import split_lines
from sennit.ingest.markdown import parse_markdown
from sennit.ingest.pages import parse_page

ROOTS = (sysconfig.get_path("purelib"), "/usr/share", "/usr/lib", "/usr/local")
SUFFIXES = (".md", ".mdx", ".markdown")
ROUNDS = 3

Pages = Sequence[tuple[str, str]]


def find_pages(roots: Sequence[str]) -> Pages:
    """The path and text of each distinct file."""
    found: dict[str, str] = {}
    for root in roots:
        for path in sorted(Path(root).rglob("*.m*")):
            if path.suffix in SUFFIXES and path.is_file():
                found.setdefault(path.read_bytes().decode("utf-8", "replace"), path.as_posix().lstrip("/"))
    return [(path, text) for text, path in found.items()]


def megabytes_per_second(work: Callable[[str, str], object], pages: Pages, rounds: int = ROUNDS) -> float:
    """Megabytes per CPU second, the best of several rounds."""
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
    all_pages = find_pages(parser.parse_args().folders)
    logs = [page for page in all_pages if "change" in page[0].lower() or "history" in page[0].lower()]
    others = [page for page in all_pages if page not in logs]

    full_parser = MarkdownIt("commonmark").enable("table")
    block_parser = MarkdownIt("commonmark").enable("table")
    block_parser.core.ruler.disable("inline")
    functions: dict[str, tuple[Callable[[str, str], object], int]] = {
        "markdown-it-py": (lambda _, text: full_parser.parse(text), 1),
        "markdown-it-py, blocks only": (lambda _, text: block_parser.parse(text), 1),
        "parse_markdown": (lambda _, text: parse_markdown(split_lines(text)), ROUNDS),
        "parse_page": (lambda path, text: parse_page(text, path=path), ROUNDS),
    }
    print(f"{'MB/s':30} {'files':>6} {'MB':>6}", *(f"{name:>28}" for name in functions))
    for name, pages in (("pages", others), ("change logs", logs), ("all", all_pages)):
        if pages:
            size = sum(len(text) for _, text in pages) / 1e6
            rates = (megabytes_per_second(work, pages, rounds) for work, rounds in functions.values())
            print(f"{name:30} {len(pages):6} {size:6.1f}", *(f"{speed:28.1f}" for speed in rates), flush=True)


if __name__ == "__main__":
    main()
