"""The ways in which files become records: as text, as pages of documentation, as entities of code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sennit.errors import InvalidInput
from sennit.ingest import readers
from sennit.ingest.languages import kind_of
from sennit.ingest.reading import decode
from sennit.records import Record

Read = Callable[[str, bytes, str, int], list[Record]]
"""From path, content, collection and time of change to records."""

PAGES_VERSION: Final = 3
CODE_VERSION: Final = 3
"""Raised when the same file would become other records: it is then read again."""

EXAMPLES: Final = "examples"


@dataclass(frozen=True, slots=True)
class Profile:
    """How files are read, and a name for that which changes when the way does."""

    reader_of: Callable[[str], str]
    reading: Callable[[Sequence[str]], Read]
    """What reads a file, in a run over those below these folders."""


def profile_named(name: str) -> Profile:
    """The profile of this name."""
    if name not in PROFILES:
        raise InvalidInput(f"There is no way of reading called {name!r}. There are: {', '.join(PROFILES)}")
    return PROFILES[name]


def _page_reader(path: str) -> str:
    kind, _ = kind_of(path)
    return f"pages/{PAGES_VERSION}" if kind in ("markdown", "html") else readers.reader_of(path)


def _pages(roots: Sequence[str]) -> Read:
    from sennit.ingest.pages import (
        PageOptions,
        example_records,
        examples_from_file,
        examples_from_page,
        page_chunks,
        page_records,
    )

    # What was indexed is taken for the site: docs/retries.md in it is the page /docs/retries.
    options = PageOptions(urls=dict.fromkeys(roots, "/"))

    def read(path: str, data: bytes, collection: str, mtime_ns: int) -> list[Record]:
        kind, _ = kind_of(path)
        if kind not in ("markdown", "html"):
            return readers.records(path, data, collection, mtime_ns)
        text, timestamp = decode(data).text, readers.moment(mtime_ns)
        if EXAMPLES in path.split("/")[:-1]:
            whole = examples_from_file(text, path=path, options=options)
            if whole:
                return example_records(whole, path=path, collection=EXAMPLES)
        page = page_chunks(text, path=path, options=options)
        return [
            *page_records(page, path=path, collection=collection, timestamp=timestamp),
            *example_records(examples_from_page(page, path=path), path=path, collection=EXAMPLES),
        ]

    return read


def _code_reader(path: str) -> str:
    from sennit.ingest.code.grammars import languages_for

    return f"code/{CODE_VERSION}" if languages_for(path) else readers.reader_of(path)


def _code(_roots: Sequence[str]) -> Read:
    from sennit.ingest.code.grammars import languages_for
    from sennit.ingest.code.parsing import parse
    from sennit.ingest.code.passages import CodeOptions, code_records

    def read(path: str, data: bytes, collection: str, mtime_ns: int) -> list[Record]:
        if not languages_for(path):
            return readers.records(path, data, collection, mtime_ns)
        options = CodeOptions(timestamp=readers.moment(mtime_ns))
        return code_records(parse(path, data), collection=collection, options=options)

    return read


PROFILES: Final[Mapping[str, Profile]] = {
    "text": Profile(readers.reader_of, lambda _roots: readers.records),
    "pages": Profile(_page_reader, _pages),
    "code": Profile(_code_reader, _code),
}
