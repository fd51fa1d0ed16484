"""Names in questions and names in code: which words a name is made of, and which words of a question are names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\dA-Za-z_]+|\d+")
_SYMBOL: Final = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#|->)[^\W\d]\w*)*")
_JOINTS: Final = re.compile(r"\.|::|#|->")
_LOOKS_LIKE_CODE: Final = re.compile(r"_|\.|::|#|->|[a-z\d][A-Z]|[A-Z]{2}[a-z]")

LEAST_PREFIX: Final = 3
"""Letters that a short form has at least: err for errors, auth for authentication."""

LEAST_ENDING: Final = 4
"""Letters of a word that a joined name ends with at least: proxy in noproxy, list in skiplist."""

DOORS: Final = frozenset({"__init__", "index", "mod", "lib", "main"})
"""Files that are called by their folder."""


@lru_cache(maxsize=4096)
def parts_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case: HTTPServer is http and server, read_file is read and file."""
    return tuple(part.lower() for part in _PART.findall(name))


def symbols_in(query: str) -> dict[str, tuple[str, ...]]:
    """Words of a question that are names in code, by their last part, with all their parts.

    A name looks like one (snake_case, camelCase, a.b, a::b), stands between backticks, is written with a capital
    inside the sentence, or is all there is.
    """
    out: dict[str, tuple[str, ...]] = {}
    quoted = set(re.findall(r"`([^`\s]+)`", query))
    plain = query.replace("`", " ").strip()
    for found in _SYMBOL.finditer(plain):
        word = found[0]
        capital = word[0].isupper() and found.start() > 0 and not word.isupper()
        if word in quoted or word == plain or capital or _LOOKS_LIKE_CODE.search(word):
            parts = tuple(part for part in _JOINTS.split(word) if part)
            out[parts[-1]] = parts
    return out


@lru_cache(maxsize=16_384)
def file_words(path: str) -> tuple[str, ...]:
    """The words a file is called by: its name without its ending, or its folder's where all are called the same."""
    *folders, name = path.split("/")
    stem = name.lstrip(".").partition(".")[0]
    if stem in DOORS:
        if not folders:
            return ()
        stem = folders[-1]
    return parts_of(stem)


class Said:
    """The words of a question."""

    def __init__(self, query: str) -> None:
        self._words = frozenset(parts_of(query))
        self._by_start: dict[str, list[str]] = {}
        for word in self._words:
            self._by_start.setdefault(word[:LEAST_PREFIX], []).append(word)
        self._endings = tuple(word for word in self._words if len(word) >= LEAST_ENDING)

    def share(self, words: Sequence[str]) -> float:
        """The share of words that the question says, in this or a longer or shorter form, or as the end of a joined one."""
        said = 0
        for word in words:
            # Forms of one word begin alike.
            near = self._by_start.get(word[:LEAST_PREFIX])
            if (near is not None and any(alike(word, other) for other in near)) or word.endswith(
                self._endings
            ):
                said += 1
        return said / len(words) if said else 0.0


@lru_cache(maxsize=65_536)
def alike(one: str, other: str) -> bool:
    """Whether two words are forms of one: session and sessions, auth and authentication, routing and routes."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < LEAST_PREFIX:
        return False
    if long.startswith(short):
        return True
    shared = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    # What is left of both must be an ending.
    return shared >= 4 and len(short) - shared <= 2 and len(long) - shared <= 3
