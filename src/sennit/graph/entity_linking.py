"""Entity linking: the records that a text mentions by name, and the scores that follow from mentions."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.graph.names import (
    ALL_CAPS,
    CAPITAL,
    CASELESS,
    COMMON_WORD,
    DECLARED,
    LOWERCASE,
    NUMBER,
    SENTENCE_START,
    STOP_WORD,
    Hashes,
    Words,
    join_words,
    phrase_hashes,
)

MAX_SHARING_RECORDS: Final = 64
"""A name that more records share identifies none of them."""

RARE_SHARE: Final = 0.01
RARE_RECORDS: Final = 3
"""Without capitals, as in a query typed in lower case, only a rare word makes a phrase a name: one that occurs in one
of a hundred records, or in three records of a small database. Among papers on heat transfer, `heat transfer` is not a
name."""

_GAP: Final = np.array([0xD1B54A32D192ED03], np.uint64)
"""A hash that no word has. It is not 0, because a phrase of 0 and a word has the hash of the word."""

Keys = NDArray[np.int64]


class NameMatches(NamedTuple):
    """Pairs of a name that was looked up and a record that has it, ordered by name."""

    which: NDArray[np.intp]
    """The position of the name among those looked up."""
    rows: Keys
    flags: NDArray[np.uint8]


NameLookup = Callable[[Hashes], NameMatches]


class Mention(NamedTuple):
    """A name in a text, and the records that have this name."""

    surface: str
    """The name as the text spells it."""
    rows: tuple[int, ...]
    certain: bool
    """False when the words match but nothing shows that they are meant as a name."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How scores spread from a query along mentions; measured in docs/reference/graph.md."""

    seeds: int = 3
    """Keyword hits whose mentions count. From 3 to 10 the quality hardly changes, and each seed costs a read."""
    seed_share: float = 0.5
    """The strength of a keyword hit, relative to a record that the query names: a guess against a statement."""
    floor: float = 0.8
    """Added to a target's own relevance, because the answer's text often has none of the query's words."""
    max_named: int = 16
    """Names used of one query. A pasted page names hundreds, and none of them is what it asks for."""
    max_seeds: int = 24
    """Texts read for their mentions, including those of named records."""
    max_links: int = 64
    """Mentions used of one seed."""

    def __post_init__(self) -> None:
        for name in ("seeds", "max_named", "max_seeds", "max_links"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= 1000:
                raise ValueError(f"{name} must be a whole number from 0 to 1000, not {value!r}")
        for name in ("seed_share", "floor"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
                raise ValueError(f"{name} must be a number of at least 0, not {value!r}")


class LinkScore(NamedTuple):
    """The score of a record and its origin: the query itself (`seed` is None), or a seed that mentions the record."""

    score: float
    name: str
    seed: int | None


def find_mentions(texts: Sequence[Words], find: NameLookup) -> list[list[Mention]]:
    """The mentions in each text, in order. Longer names win, and no word is part of two mentions."""
    out: list[list[Mention]] = [[] for _ in texts]
    if not texts:
        return out
    # All texts in one array, separated by a word that no name contains, need only one lookup.
    all_words = np.concatenate([part for words in texts for part in (words.hashes, _GAP)])
    starts = [0, *accumulate(len(words.hashes) + 1 for words in texts)]
    hashes = list(phrase_hashes(all_words))
    offsets = [0, *accumulate(map(len, hashes))]
    names: dict[int, tuple[list[int], int]] = {}
    found = find(np.concatenate(hashes))
    for which, row, flags in zip(*(column.tolist() for column in found), strict=True):
        rows, known = names.get(which, ((), 0))
        names[which] = ([*rows, row], known | flags)
    chosen: list[tuple[int, int, list[int], bool]] = []
    taken: set[int] = set()
    # Phrases are numbered by length and then by position, so that the last ones are the longest.
    for length, group in groupby(sorted(names, reverse=True), lambda which: bisect_right(offsets, which)):
        for which in sorted(group):
            rows, flags = names[which]
            start = which - offsets[length - 1]
            span = range(start, start + length)
            if len(rows) > MAX_SHARING_RECORDS or not taken.isdisjoint(span):
                continue
            text = bisect_right(starts, start) - 1
            meant = _is_meant(texts[text], start - starts[text], length, flags)
            if meant is not False:
                taken.update(span)
                chosen.append((start, length, rows, meant is True))
    for start, length, rows, certain in sorted(chosen):
        text = bisect_right(starts, start) - 1
        begin = start - starts[text]
        surface = join_words(texts[text].surfaces[begin : begin + length])
        out[text].append(Mention(surface, tuple(sorted(set(rows))), certain))
    return out


def _is_meant(words: Words, begin: int, length: int, name_flags: int) -> bool | None:
    """Whether the words are meant as the name, and not just as words; None when nothing decides it."""
    if length == len(words.hashes):
        return True
    flags = words.flags[begin : begin + length].tolist()
    content = [flag for flag in flags if not flag & STOP_WORD]
    if not content:
        # The Who; Will. Only capitals distinguish such a name from the words of any sentence.
        capitalised = all(flag & CAPITAL for flag in flags) and not flags[-1] & SENTENCE_START
        return capitalised and bool(length > 1 or name_flags & DECLARED)
    if all(flag & NUMBER for flag in content):
        # 1984 is a year far more often than a novel.
        return False
    if len(content) > 1 and all(flag & CASELESS for flag in content):
        return True
    if name_flags & DECLARED or any(_stands_out(flag) for flag in content):
        return True
    alone = len(content) == 1
    lone_capital = alone and content[0] & (CAPITAL | CASELESS)
    if words.uses_capitals and not name_flags & LOWERCASE and not lone_capital:
        return False
    return False if alone and content[0] & COMMON_WORD else None


def _stands_out(flag: int) -> bool:
    """Whether a word has a capital inside a sentence. A common word all in capitals is a heading and does not count."""
    return (
        flag & (CAPITAL | SENTENCE_START) == CAPITAL
        and flag & (ALL_CAPS | COMMON_WORD) != ALL_CAPS | COMMON_WORD
    )


def score_links(
    named: Iterable[Mention],
    seeds: Mapping[int, float],
    linked: Mapping[int, Sequence[Mention]],
    relevance: Callable[[list[int]], Sequence[float]],
    rarity: Callable[[Mention], float],
    options: LinkOptions,
) -> dict[int, LinkScore]:
    """The score of each record that the query names or a seed mentions.

    A record that the query names scores the name's rarity, shared among the records with this name. A record that a
    seed mentions scores the seed's strength times that, times (floor + its own relevance). Of several seeds the best
    one counts. The score for being named and the score for being mentioned add up.
    """
    strength: dict[int, float] = {}
    by_name: dict[int, LinkScore] = {}
    for mention in named:
        weight = _mention_weight(mention, rarity)
        for row in mention.rows:
            if row not in by_name or weight > by_name[row].score:
                by_name[row] = LinkScore(weight, mention.surface, None)
                strength[row] = weight
    for row, relevant in seeds.items():
        strength[row] = max(strength.get(row, 0.0), options.seed_share * relevant)
    by_seed: dict[int, LinkScore] = {}
    for seed, mentioned in linked.items():
        for mention in mentioned[: options.max_links]:
            if seed in mention.rows or not mention.certain:
                continue
            weight = strength[seed] * _mention_weight(mention, rarity)
            for row in mention.rows:
                if row not in by_seed or weight > by_seed[row].score:
                    by_seed[row] = LinkScore(weight, mention.surface, seed)
    targets = list(by_seed)
    out = dict(by_name)
    for row, relevant in zip(targets, relevance(targets), strict=True):
        link = by_seed[row]
        score = link.score * (options.floor + relevant)
        if row in out:
            out[row] = out[row]._replace(score=out[row].score + score)
        elif score > 0:
            out[row] = link._replace(score=score)
    return out


def _mention_weight(mention: Mention, rarity: Callable[[Mention], float]) -> float:
    return rarity(mention) / math.sqrt(len(mention.rows))


def name_rarity(share: float, count: int, certain: bool = True) -> float:
    """The rarity of a name, from the share of `count` records that contain its rarest word.

    It is 1 for a word of one record and goes towards 0 for a word of all. An uncertain name that is not rare has
    rarity 0: it is not a name.
    """
    share = max(share, 1 / max(count, 1))
    if not certain and share * count > max(RARE_RECORDS, RARE_SHARE * count):
        return 0.0
    return math.log1p(1 / share) / math.log1p(max(count, 1))
