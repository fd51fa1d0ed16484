"""Which files and which symbols a question names. What a name stands for is decided by what is there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MOST_QUOTED: Final = 300
"""Characters between quotes that may still be a path."""

BARE: Final = frozenset(
    "Makefile Dockerfile Jenkinsfile Justfile Rakefile Gemfile Procfile Vagrantfile".split()
)
"""Names of files that have neither an ending nor a folder in front."""

OWN: Final = frozenset({"self", "this", "cls", "super", "Self"})
"""What code calls itself: `self.login` is any `login`."""

ACRONYMS: Final = frozenset(
    "api css db dns gpu html http https id io ip json jwt os rpc sql ssh tcp tls ui uri url uuid xml".split()
)
"""Words that some styles write in capitals: parse_url is ParseURL."""

_TOKEN: Final = re.compile(r"[^\s\"'`’“”<>|,;(){}=*]+")
_QUOTED: Final = re.compile(
    r"`([^`\n]{1,%d})`|\"([^\"\n]{1,%d})\"|'([^'\n]{1,%d})'" % ((MOST_QUOTED,) * 3)  # noqa: UP031
)
_PLACE: Final = re.compile(
    r"(?::(?P<a>\d{1,9})(?:-(?P<b>\d{1,9})|(?::\d{1,9})(?:-\d{1,9}(?::\d{1,9})?)?)?"
    r"|#L(?P<c>\d{1,9})(?:C\d{1,9})?(?:-L?(?P<d>\d{1,9})(?:C\d{1,9})?)?)$"
)
_AFTER: Final = re.compile(
    r"[\"'`)]?,?\s{1,3}(?:(?:on|at|in)\s{1,3})?lines?\s{1,3}(?P<a>\d{1,9})(?:\s?(?:-|–|to)\s?(?P<b>\d{1,9}))?"
    r"|\((?P<c>\d{1,9})(?:,\d{1,9})?\)"
)
_DRIVE: Final = re.compile(r"^(?:file:/{2,3})?(?:[A-Za-z]:(?=[\\/]))?")
_NAME: Final = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d][\w$]*)*(?P<call>\()?")
_JOINTS: Final = re.compile(r"\.|::|#|->")
_SHAPE: Final = re.compile(r"\w_+\w|^_+\w|\w_+$|[a-z\d][A-Z]|[A-Z]{2}[a-z]|\.|::|#|->")
_SENTENCE_END: Final = re.compile(r"(?:^|[.!?:\n]\s*|\n\s*[-*\d.)]*\s*)$")
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\dA-Za-z_]+|\d+")


@dataclass(frozen=True, slots=True)
class FileMention:
    """A path as the question has it, perhaps with lines."""

    path: str
    at: int
    """Where in the question."""
    lines: tuple[int, int] | None = None
    function: str = ""
    """What a stack trace says the line is in."""
    end: int = 0


@dataclass(frozen=True, slots=True)
class SymbolMention:
    """A name as the question has it."""

    parts: tuple[str, ...]
    at: int
    types: bool = False
    """Only a type may be meant: the word is marked by nothing but its capital."""

    @property
    def name(self) -> str:
        return self.parts[-1]


def file_mentions(query: str) -> list[FileMention]:
    """What may be a path, in the order of the question."""
    found: dict[int, FileMention] = {}
    for quoted in _QUOTED.finditer(query):
        inside = quoted[quoted.lastindex or 0]
        start = quoted.start(quoted.lastindex or 0)
        mention = _mention(inside.strip(), start, quoted.end() - 1, query)
        if mention is not None:
            found[start] = mention
    taken = covered(query, ((one.at, one.end) for one in found.values() if " " in one.path))
    for token in _TOKEN.finditer(query):
        if taken[token.start()]:
            continue
        text = token[0].rstrip(".:!?]").lstrip("[@")
        start = token.start() + token[0].index(text) if text else token.start()
        mention = _mention(text, start, start + len(text), query)
        if mention is not None:
            found.setdefault(start, mention)
    return [found[at] for at in sorted(found)]


def _mention(text: str, at: int, end: int, query: str) -> FileMention | None:
    place = _PLACE.search(text)
    path = text[: place.start()] if place else text
    path = _DRIVE.sub("", path).replace("\\", "/").rstrip("/")
    name = path.rpartition("/")[2]
    if not name or not (("." in name.strip(".")) or "/" in path or name in BARE):
        return None
    numbers = place or _AFTER.match(query, end)
    return FileMention(path, at, _lines(numbers), end=end)


def _lines(match: re.Match[str] | None) -> tuple[int, int] | None:
    if match is None:
        return None
    groups = match.groupdict()
    first = int(groups["a"] or groups["c"])
    last = int(groups.get("b") or groups.get("d") or first)
    return (first, last) if 1 <= first <= last else (max(first, 1), max(first, 1))


def covered(query: str, spans: Iterable[tuple[int, int]]) -> bytearray:
    """For each character of a question, whether it is in one of the spans."""
    out = bytearray(len(query))
    for first, last in spans:
        out[first:last] = b"\1" * (last - first)
    return out


def resolve(path: str, known: Iterable[str]) -> list[str]:
    """The files that a path means: itself, or those that share most of its end; the shortest first."""
    wanted = [part for part in path.split("/") if part not in ("", ".", "..", "~")]
    if not wanted:
        return []
    alike: dict[str, int] = {}
    for one in known:
        if one == path:
            return [one]
        shared = _shared_end(wanted, one.split("/"))
        if shared:
            alike[one] = shared
    most = max(alike.values(), default=0)
    found = [one for one, shared in alike.items() if shared == most]
    return sorted(found, key=lambda one: (one.count("/"), one))


def _shared_end(one: Sequence[str], other: Sequence[str]) -> int:
    shared = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        shared += 1
    return shared


def symbol_mentions(query: str) -> list[SymbolMention]:
    """Names that are marked as code, or are written like code, or with a capital inside a sentence."""
    marked = covered(query, (quoted.span(1) for quoted in _QUOTED.finditer(query) if quoted[1]))
    out: list[SymbolMention] = []
    whole = query.strip().strip("`")
    for found in _NAME.finditer(query):
        word = found[0].removesuffix("(")
        parts = tuple(_JOINTS.split(word))
        if marked[found.start()] or found["call"] or _SHAPE.search(word) or word == whole:
            out.append(SymbolMention(parts, found.start()))
        elif word[0].isupper() and not _SENTENCE_END.search(query, max(0, found.start() - 20), found.start()):
            out.append(SymbolMention(parts, found.start(), types=True))
    return out


def spellings(name: str) -> list[str]:
    """The name in the styles of other languages, itself first."""
    words = [part.lower() for part in _PART.findall(name)]
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


def names_wanted(mentions: Iterable[SymbolMention]) -> Iterator[str]:
    """Every spelling to look up; words that only a capital marks as they are."""
    for mention in mentions:
        if mention.types:
            yield mention.name
        else:
            yield from spellings(mention.name)


def qualifies(mention: SymbolMention, qualified: str, path: str) -> bool:
    """Whether what stands before the last name fits an entity: its outer entities, then its file and folders.

    Upper and lower case and underscores are the same here: a `session` is often a Session.
    """
    heads = [_plain(head) for head in mention.parts[:-1] if head not in OWN]
    outers = [_plain(outer) for outer in _JOINTS.split(qualified)[:-1]]
    while heads and outers and heads[-1] == outers[-1]:
        heads.pop()
        outers.pop()
    if not heads:
        return True
    if outers:
        return False  # `Other.name` is not `Outer.name`, wherever its file is
    *folders, name = (_plain(part) for part in path.split("/"))
    if name.partition(".")[0] == heads[-1]:
        heads.pop()
    return folders[len(folders) - len(heads) :] == heads


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
