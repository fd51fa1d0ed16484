"""Files and symbols that a query may name. The catalogue decides which of them exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sennit.analysis import is_stop_word

MAX_QUOTED_CHARACTERS: Final = 300
"""Characters between quotes that can still be a path."""

BARE_FILE_NAMES: Final = frozenset(
    "Makefile Dockerfile Jenkinsfile Justfile Rakefile Gemfile Procfile Vagrantfile".split()
)
"""File names without an extension that need no folder in front."""

SELF_NAMES: Final = frozenset({"self", "this", "cls", "super", "Self"})
"""Names of the current object: `self.login` is any `login`."""

ACRONYMS: Final = frozenset(
    "api css db dns gpu html http https id io ip json jwt os rpc sql ssh tcp tls ui uri url uuid xml".split()
)
"""Words that some naming styles capitalise: parse_url is ParseURL."""

TASK_WORDS: Final = frozenset(
    "add bug change check class code create error file find fix function get issue make method remove set show test "
    "update use write".split()
)
"""Words of a task rather than names of what it is about."""

MIN_PLAIN_LETTERS: Final = 3
"""The shortest plain word that can name something."""

MAX_NAME_WORDS: Final = 3
"""Adjacent plain words that can be one name: `parse the token` is not, `parse token` is parseToken."""

MAX_PLAIN_WORDS: Final = 100
"""Plain words of a query that are looked up; a longer one is a pasted text."""

_TOKEN: Final = re.compile(r"[^\s\"'`’“”<>|,;(){}=*]+")
_QUOTED: Final = re.compile(
    r"`([^`\n]{1,%d})`|\"([^\"\n]{1,%d})\"|'([^'\n]{1,%d})'" % ((MAX_QUOTED_CHARACTERS,) * 3)  # noqa: UP031
)
_LINE_SUFFIX: Final = re.compile(
    r"(?::(?P<a>\d{1,9})(?:-(?P<b>\d{1,9})|(?::\d{1,9})(?:-\d{1,9}(?::\d{1,9})?)?)?"
    r"|#L(?P<c>\d{1,9})(?:C\d{1,9})?(?:-L?(?P<d>\d{1,9})(?:C\d{1,9})?)?)$"
)
_LINES_AFTER: Final = re.compile(
    r"[\"'`)]?,?\s{1,3}(?:(?:on|at|in)\s{1,3})?lines?\s{1,3}(?P<a>\d{1,9})(?:\s?(?:-|–|to)\s?(?P<b>\d{1,9}))?"
    r"|\((?P<c>\d{1,9})(?:,\d{1,9})?\)"
)
_DRIVE: Final = re.compile(r"^(?:file:/{2,3})?(?:[A-Za-z]:(?=[\\/]))?")
_NAME: Final = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d][\w$]*)*(?P<call>\()?")
_SEPARATORS: Final = re.compile(r"\.|::|#|->")
_LOOKS_LIKE_CODE: Final = re.compile(r"\w_+\w|^_+\w|\w_+$|[a-z\d][A-Z]|[A-Z]{2}[a-z]|\.|::|#|->")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:\n]\s*|\n\s*[-*\d.)]*\s*)$")
_PLAIN_WORD: Final = re.compile(r"(?<![\w.`/$#:])[^\W\d_]+(?![\w`/$(]|[.:#]\w)")
_WORD_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\dA-Za-z_]+|\d+")


@dataclass(frozen=True, slots=True)
class FileMention:
    """A path as the query writes it, perhaps with lines."""

    path: str
    at: int
    """The offset in the query."""
    lines: tuple[int, int] | None = None
    function: str = ""
    """The function that a stack trace names for the line."""
    end: int = 0


@dataclass(frozen=True, slots=True)
class SymbolMention:
    """A symbol as the query writes it."""

    parts: tuple[str, ...]
    at: int
    type_only: bool = False
    """Only a type can be meant, because nothing but its capital marks the word."""

    @property
    def name(self) -> str:
        return self.parts[-1]


@dataclass(frozen=True, slots=True)
class PlainName:
    """One or more adjacent plain words that may be a name."""

    words: tuple[str, ...]
    at: int

    @property
    def spellings(self) -> list[str]:
        """The name in every naming style."""
        return spelling_variants("_".join(self.words))


def file_mentions(query: str) -> list[FileMention]:
    """Return what may be a path, in the order of the query."""
    found: dict[int, FileMention] = {}
    for quoted in _QUOTED.finditer(query):
        inside = quoted[quoted.lastindex or 0]
        start = quoted.start(quoted.lastindex or 0)
        mention = _parse_file_mention(inside.strip(), start, quoted.end() - 1, query)
        if mention is not None:
            found[start] = mention
    taken = mark_spans(query, ((one.at, one.end) for one in found.values() if " " in one.path))
    for token in _TOKEN.finditer(query):
        if taken[token.start()]:
            continue
        text = token[0].rstrip(".:!?]").lstrip("[@")
        start = token.start() + token[0].index(text) if text else token.start()
        mention = _parse_file_mention(text, start, start + len(text), query)
        if mention is not None:
            found.setdefault(start, mention)
    return [found[at] for at in sorted(found)]


def _parse_file_mention(text: str, at: int, end: int, query: str) -> FileMention | None:
    place = _LINE_SUFFIX.search(text)
    path = text[: place.start()] if place else text
    path = _DRIVE.sub("", path).replace("\\", "/").rstrip("/")
    name = path.rpartition("/")[2]
    if not name or not (("." in name.strip(".")) or "/" in path or name in BARE_FILE_NAMES):
        return None
    numbers = place or _LINES_AFTER.match(query, end)
    return FileMention(path, at, _parse_lines(numbers), end=end)


def _parse_lines(match: re.Match[str] | None) -> tuple[int, int] | None:
    if match is None:
        return None
    groups = match.groupdict()
    first = int(groups["a"] or groups["c"])
    last = int(groups.get("b") or groups.get("d") or first)
    return (first, last) if 1 <= first <= last else (max(first, 1), max(first, 1))


def mark_spans(query: str, spans: Iterable[tuple[int, int]]) -> bytearray:
    """Return for each character of a query whether it is in one of the spans."""
    out = bytearray(len(query))
    for first, last in spans:
        out[first:last] = b"\1" * (last - first)
    return out


def resolve_path(path: str, known: Iterable[str]) -> list[str]:
    """Return the files that a path can mean: itself, or those that share the longest suffix, the shortest first."""
    wanted = [part for part in path.split("/") if part not in ("", ".", "..", "~")]
    if not wanted:
        return []
    alike: dict[str, int] = {}
    for one in known:
        if one == path:
            return [one]
        shared = _shared_suffix(wanted, one.split("/"))
        if shared:
            alike[one] = shared
    longest = max(alike.values(), default=0)
    found = [one for one, shared in alike.items() if shared == longest]
    return sorted(found, key=lambda one: (one.count("/"), one))


def _shared_suffix(one: Sequence[str], other: Sequence[str]) -> int:
    shared = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        shared += 1
    return shared


def symbol_mentions(query: str) -> list[SymbolMention]:
    """Return names that are marked as code, look like code, or have a capital inside a sentence."""
    marked = mark_spans(query, (quoted.span(1) for quoted in _QUOTED.finditer(query) if quoted[1]))
    out: list[SymbolMention] = []
    whole = query.strip().strip("`")
    for found in _NAME.finditer(query):
        word = found[0].removesuffix("(")
        parts = tuple(_SEPARATORS.split(word))
        if marked[found.start()] or found["call"] or _LOOKS_LIKE_CODE.search(word) or word == whole:
            out.append(SymbolMention(parts, found.start()))
        elif word[0].isupper() and not _SENTENCE_START.search(
            query, max(0, found.start() - 20), found.start()
        ):
            out.append(SymbolMention(parts, found.start(), type_only=True))
    return out


def plain_names(query: str) -> list[PlainName]:
    """Return the plain words of a query that may name something, and runs of two and three words."""
    found = [*_PLAIN_WORD.finditer(query)][:MAX_PLAIN_WORDS]
    out: list[PlainName] = []
    for first, start in enumerate(found):
        for last in range(first + 1, min(first + MAX_NAME_WORDS, len(found)) + 1):
            run = found[first:last]
            if any(query[a.end() : b.start()].strip() for a, b in pairwise(run)):
                break
            words = tuple(word[0].lower() for word in run)
            if len(words) > 1 or not (
                len(words[0]) < MIN_PLAIN_LETTERS or words[0] in TASK_WORDS or is_stop_word(words[0])
            ):
                out.append(PlainName(words, start.start()))
    return out


def spelling_variants(name: str) -> list[str]:
    """Return the name in the naming styles of other languages, itself first."""
    words = [part.lower() for part in _WORD_PART.findall(name)]
    if not words:
        return [name]
    tall = [word.upper() if word in ACRONYMS else word.capitalize() for word in words]
    humps = [word.capitalize() for word in words]
    out = [
        name,
        "_".join(words),
        words[0] + "".join(humps[1:]),
        "".join(humps),
        words[0] + "".join(tall[1:]),
        "".join(tall),
        "_".join(words).upper(),
        "".join(words),
    ]
    return list(dict.fromkeys(out))


def lookup_names(mentions: Iterable[SymbolMention]) -> Iterator[str]:
    """Yield every name to look up; a word that only a capital marks is looked up as it is."""
    for mention in mentions:
        if mention.type_only:
            yield mention.name
        else:
            yield from spelling_variants(mention.name)


def matches_qualifier(mention: SymbolMention, qualified: str, path: str) -> bool:
    """Whether the qualifier of a mention fits an entity: its enclosing entities, then its file and folders.

    Case and underscores are ignored: a `session` is often a Session.
    """
    heads = [_normalise(head) for head in mention.parts[:-1] if head not in SELF_NAMES]
    outers = [_normalise(outer) for outer in _SEPARATORS.split(qualified)[:-1]]
    while heads and outers and heads[-1] == outers[-1]:
        heads.pop()
        outers.pop()
    if not heads:
        return True
    if outers:
        return False  # `Other.name` is not `Outer.name`, whatever its file
    *folders, name = (_normalise(part) for part in path.split("/"))
    if name.partition(".")[0] == heads[-1]:
        heads.pop()
    return folders[len(folders) - len(heads) :] == heads


def _normalise(name: str) -> str:
    return name.replace("_", "").lower()
