"""Index profiles: files become records as plain text, as pages of documentation, or as code entities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sennit.errors import InvalidInput
from sennit.ingest import text_profile
from sennit.ingest.file_reader import decode
from sennit.ingest.languages import file_kind
from sennit.records import Record

FileParser = Callable[[str, bytes, str, int], list[Record]]
"""Takes path, content, collection and modification time in nanoseconds; returns the records."""

PAGES_VERSION: Final = 4
CODE_VERSION: Final = 3
"""Increase when the same file would produce other records. Files of an older version are indexed again."""

EXAMPLES: Final = "examples"
"""The collection of code examples, and the folder that holds files of them."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How files become records."""

    reader_version: Callable[[str], str]
    """Names the reader of a path and its version. When the name changes, the file is indexed again."""
    create_parser: Callable[[Sequence[str]], FileParser]
    """Creates the parser for a run over these root folders."""


def get_profile(name: str) -> Profile:
    """The profile with this name; raises InvalidInput if there is none."""
    if name not in PROFILES:
        raise InvalidInput(f"There is no profile {name!r}. Use one of: {', '.join(PROFILES)}")
    return PROFILES[name]


def _page_reader_version(path: str) -> str:
    kind, _ = file_kind(path)
    return f"pages/{PAGES_VERSION}" if kind in ("markdown", "html") else text_profile.reader_version(path)


def _create_page_parser(roots: Sequence[str]) -> FileParser:
    from sennit.ingest.pages import (
        PageOptions,
        example_records,
        examples_from_file,
        examples_from_page,
        page_records,
        parse_page,
    )

    # Each root is the root of a site: docs/retries.md below it is the page /docs/retries.
    options = PageOptions(urls=dict.fromkeys(roots, "/"))

    def parse(path: str, data: bytes, collection: str, mtime_ns: int) -> list[Record]:
        kind, _ = file_kind(path)
        if kind not in ("markdown", "html"):
            return text_profile.file_records(path, data, collection, mtime_ns)
        text, timestamp = decode(data).text, text_profile.modified_at(mtime_ns)
        if EXAMPLES in path.split("/")[:-1]:
            whole = examples_from_file(text, path=path, options=options)
            if whole:
                return example_records(whole, path=path, collection=EXAMPLES)
        page = parse_page(text, path=path, options=options)
        return [
            *page_records(page, path=path, collection=collection, timestamp=timestamp),
            *example_records(examples_from_page(page, path=path), path=path, collection=EXAMPLES),
        ]

    return parse


def _code_reader_version(path: str) -> str:
    from sennit.ingest.code.grammars import candidate_languages

    return f"code/{CODE_VERSION}" if candidate_languages(path) else text_profile.reader_version(path)


def _create_code_parser(_roots: Sequence[str]) -> FileParser:
    from sennit.ingest.code.grammars import candidate_languages
    from sennit.ingest.code.parser import parse_code
    from sennit.ingest.code.records import CodeOptions, code_records

    def parse(path: str, data: bytes, collection: str, mtime_ns: int) -> list[Record]:
        if not candidate_languages(path):
            return text_profile.file_records(path, data, collection, mtime_ns)
        options = CodeOptions(timestamp=text_profile.modified_at(mtime_ns))
        return code_records(parse_code(path, data), collection=collection, options=options)

    return parse


PROFILES: Final[Mapping[str, Profile]] = {
    "text": Profile(text_profile.reader_version, lambda _roots: text_profile.file_records),
    "pages": Profile(_page_reader_version, _create_page_parser),
    "code": Profile(_code_reader_version, _create_code_parser),
}
