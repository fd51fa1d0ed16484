"""Matches names in code with a query: the words of a name, and the words of a query that are names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from sennit.locales import LANGUAGES, locale_language

_NAME_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\dA-Za-z_]+|\d+")
_VERSION_FOLDER: Final = re.compile(r"/v(\d{1,3})(?=/)")
_SYMBOL: Final = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#|->)[^\W\d]\w*)*")
_SEPARATORS: Final = re.compile(r"\.|::|#|->")
_LOOKS_LIKE_CODE: Final = re.compile(r"_|\.|::|#|->|[a-z\d][A-Z]|[A-Z]{2}[a-z]")

MIN_PREFIX_LETTERS: Final = 3
"""The shortest abbreviation: err for errors, auth for authentication."""

MIN_SUFFIX_LETTERS: Final = 4
"""The shortest word that may end a compound name: proxy in noproxy, list in skiplist."""

FUNCTION_WORDS: Final = frozenset(
    "a an and are as at be by can do does for from has have how if in into is it its not of on or that the their them "
    "there this to use used using was what when where which who why will with".split()
)
"""Words of a question that are no part of a name."""

ENTRY_MODULES: Final = frozenset({"__init__", "index", "mod", "lib", "main"})
"""File names that say nothing; such a file is known by the name of its folder."""


@lru_cache(maxsize=4096)
def split_name(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case: http and server for HTTPServer, read and file for read_file."""
    return tuple(part.lower() for part in _NAME_PART.findall(name))


def find_symbols(query: str) -> dict[str, tuple[str, ...]]:
    """Return the names in code that a query has: all parts of each name, by its last part.

    A word is a name if it looks like one (snake_case, camelCase, a.b, a::b), is between backticks, has a capital
    inside the sentence, or is the whole query.
    """
    out: dict[str, tuple[str, ...]] = {}
    quoted = set(re.findall(r"`([^`\s]+)`", query))
    plain = query.replace("`", " ").strip()
    for match in _SYMBOL.finditer(plain):
        word = match[0]
        capital = word[0].isupper() and match.start() > 0 and not word.isupper()
        if word in quoted or word == plain or capital or _LOOKS_LIKE_CODE.search(word):
            parts = tuple(part for part in _SEPARATORS.split(word) if part)
            out[parts[-1]] = parts
    return out


def file_stem(path: str) -> str:
    """Return the name of a file without its folders and extensions: auth for src/auth.d.ts."""
    return path.rpartition("/")[2].lstrip(".").partition(".")[0]


@lru_cache(maxsize=16_384)
def file_words(path: str) -> tuple[str, ...]:
    """Return the words of a file's name without its extension, or those of its folder for an entry module."""
    folders = path.split("/")[:-1]
    stem = file_stem(path)
    if stem in ENTRY_MODULES:
        if not folders:
            return ()
        stem = folders[-1]
    return split_name(stem)


def find_older_versions(paths: Iterable[str], query_words: QueryWords) -> list[str]:
    """Return the files in folders such as v3 that have a newer version beside them, and that the query does not name.

    A newer version is a folder with a higher number beside it, or the file of the same name outside of the folder.
    """
    versioned = []
    newest: dict[str, int] = {}
    for path in paths:
        match = _VERSION_FOLDER.search(path)
        if match is not None:
            number = int(match[1])
            versioned.append((path, match.start(), number))
            newest[path[: match.start()]] = max(newest.get(path[: match.start()], 0), number)
    if not versioned:
        return []
    names = {(path.rpartition("/")[0], path.rpartition("/")[2]) for path in paths}
    return [
        path
        for path, start, number in versioned
        if (number < newest[path[:start]] or (path[:start], path.rpartition("/")[2]) in names)
        and not query_words.has_version(number)
    ]


class QueryWords:
    """The words of a query, indexed for matching."""

    def __init__(self, query: str) -> None:
        self._words = frozenset(split_name(query))
        self._by_prefix: dict[str, list[str]] = {}
        for word in self._words:
            self._by_prefix.setdefault(word[:MIN_PREFIX_LETTERS], []).append(word)
        self._suffixes = tuple(word for word in self._words if len(word) >= MIN_SUFFIX_LETTERS)
        self._languages = self._words & LANGUAGES.keys()
        self.content = self._words - FUNCTION_WORDS
        """The words that may be part of a name."""
        self._content_by_prefix: dict[str, list[str]] = {}
        for word in self.content:
            self._content_by_prefix.setdefault(word[:MIN_PREFIX_LETTERS], []).append(word)

    def coverage(self, words: Sequence[str]) -> float:
        """Return the share of words that the query has, in any form of the word or as the end of a compound."""
        covered = 0
        for word in words:
            # All forms of a word have the same prefix.
            forms = self._by_prefix.get(word[:MIN_PREFIX_LETTERS])
            if (forms is not None and any(same_word(word, other) for other in forms)) or word.endswith(
                self._suffixes
            ):
                covered += 1
        return covered / len(words) if covered else 0.0

    def file_coverage(self, path: str) -> float:
        """Return the share of the words of a file's name that the query has; 1 for the locale of a language it names."""
        if self._languages and locale_language(path) in self._languages:
            return 1.0
        return self.coverage(file_words(path))

    def folder_coverage(self, path: str) -> float:
        """Return the share of the words of the file's folder that the query has; 0 in the topmost folder.

        The topmost folder is the project's, which its files have in common. An entry module goes by its folder's name, so
        the folder around that counts.
        """
        folders = path.split("/")[:-1]
        if file_stem(path) in ENTRY_MODULES:
            folders = folders[:-1]
        return self.coverage(split_name(folders[-1])) if len(folders) > 1 else 0.0

    def has_version(self, number: int) -> bool:
        """Return whether the query names a version: v3 or 3."""
        return str(number) in self._words

    def matches(self, words: Sequence[str]) -> tuple[frozenset[str], int]:
        """Return the content words of the query that are among these words, and how many of these words match."""
        found: list[str] = []
        matching = 0
        for word in words:
            forms = self._content_by_prefix.get(word[:MIN_PREFIX_LETTERS])
            if forms is not None:
                same = [other for other in forms if same_word(word, other)]
                found += same
                matching += bool(same)
        return frozenset(found), matching


@lru_cache(maxsize=65_536)
def same_word(one: str, other: str) -> bool:
    """Return whether two words are forms of one: session and sessions, auth and authentication, routing and routes."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < MIN_PREFIX_LETTERS:
        return False
    if long.startswith(short):
        return True
    shared = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    # The rest of both words must be short enough for an inflection.
    return shared >= 4 and len(short) - shared <= 2 and len(long) - shared <= 3
