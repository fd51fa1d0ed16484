"""The role of a file without a grammar, by its path: what it is for in a project."""

from __future__ import annotations

import re
from typing import Final

from sennit.ingest.languages import file_kind

_TEST_FOLDER: Final = re.compile(r"(?:^|/)(?:tests?|__tests__|specs?|testdata|__mocks__|fixtures)/", re.I)

_CHANGELOG: Final = re.compile(
    r"(?:^|/)(?:(?:change[-_ ]?logs?|changes|history|news|release[-_ ]?notes?|releases|what'?s[-_ ]?new)(?:[-_. ]?v?\d[\w.-]*)?(?:\.\w+)?"
    r"|(?:change[-_]?logs?|newsfragments|release[-_]?notes?|releases|whats[-_]?new)/.*)$",
    re.I,
)
_LICENCE: Final = re.compile(
    r"(?:^|/)(?:licen[cs]es?|copying|notice|authors|contributors|maintainers|credits|code_of_conduct|governance|codeowners)"
    r"(?:[-_.][^/]*)?$|(?:^|/)licen[cs]es/[^/]*$",
    re.I,
)
_DATA_LANGUAGES: Final = frozenset(
    {"json", "yaml", "toml", "ini", "xml", "diff", "csv", "tsv", "po", "pot", "log"}
)


def text_role(path: str) -> str:
    """Return docs, changelog, licence, test, data or source."""
    kind, language = file_kind(path)
    if _LICENCE.search(path):
        return "licence"
    if kind != "code" and _CHANGELOG.search(path):
        return "changelog"
    if _TEST_FOLDER.search(path):
        return "test"
    if language in _DATA_LANGUAGES:
        return "data"
    return "source" if kind == "code" else "docs"
