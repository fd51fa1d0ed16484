"""What texts mention, and how much of a question's interest goes along with it."""

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
    CAPITAL,
    CASELESS,
    INITIAL,
    NUMBER,
    ORDINARY,
    PLAIN,
    SHOUTED,
    STOP,
    SURE,
    Hashes,
    Words,
    joined,
    phrases,
)

MOST_SHARED: Final = 64
"""A name that more records share tells none of them from the others."""

RARE_SHARE: Final = 0.01
RARE_RECORDS: Final = 3
"""Where nothing but the words is there, as in a question typed in lower case, one of them has to be rare: in one
of a hundred records, or in three of a small database. `heat transfer` among papers on it is not a name."""

_GAP: Final = np.array([0xD1B54A32D192ED03], np.uint64)
"""The number of no word; not 0, for 0 and a word would be the word."""

Keys = NDArray[np.int64]


class Bearers(NamedTuple):
    """Which records bear which of the names asked for: flat pairs, in the order of the names."""

    which: NDArray[np.intp]
    """The position of the name among those asked for."""
    rows: Keys
    flags: NDArray[np.uint8]


Find = Callable[[Hashes], Bearers]


class Mention(NamedTuple):
    """A name in a text, and the records that bear it."""

    written: str
    rows: tuple[int, ...]
    certain: bool
    """False where only the words are there, and nothing tells that they are meant as a name."""


@dataclass(frozen=True, slots=True)
class Linking:
    """How interest spreads from a question along mentions; measured in docs/graph.md."""

    seeds: int = 3
    """Keyword hits whose mentions count. From 3 to 10 the figures hardly move; each costs a text to read."""
    seed_share: float = 0.5
    """What a keyword hit hands on, against a record that the question names: a guess against a statement."""
    floor: float = 0.8
    """A target hands in floor + its own relevance: the answer's text often has none of the question's words."""
    most_named: int = 16
    """Names of one question. A pasted page names hundreds, and none of them is what it asks for."""
    most_seeds: int = 24
    """Texts that are read for their mentions, those of named records included."""
    most_links: int = 64
    """Mentions of one seed."""

    def __post_init__(self) -> None:
        for name in ("seeds", "most_named", "most_seeds", "most_links"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= 1000:
                raise ValueError(f"{name} must be a whole number from 0 to 1000, not {value!r}")
        for name in ("seed_share", "floor"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
                raise ValueError(f"{name} must be a number of at least 0, not {value!r}")


class Gain(NamedTuple):
    """What a record gets, and from where: the question itself (`seed` is None), or a seed that mentions it."""

    score: float
    name: str
    seed: int | None


def mentions(texts: Sequence[Words], find: Find) -> list[list[Mention]]:
    """What each text mentions, in order: longer names first, and no word is part of two."""
    out: list[list[Mention]] = [[] for _ in texts]
    if not texts:
        return out
    # One text after the other, with a word between them that no name has: one look-up for all.
    row_of_words = np.concatenate([part for words in texts for part in (words.hashes, _GAP)])
    starts = [0, *accumulate(len(words.hashes) + 1 for words in texts)]
    numbers = list(phrases(row_of_words))
    lengths = [0, *accumulate(map(len, numbers))]
    names: dict[int, tuple[list[int], int]] = {}
    found = find(np.concatenate(numbers))
    for which, row, flags in zip(*(column.tolist() for column in found), strict=True):
        rows, known = names.get(which, ((), 0))
        names[which] = ([*rows, row], known | flags)
    chosen: list[tuple[int, int, list[int], bool]] = []
    taken: set[int] = set()
    # Phrases are numbered by length and then by place, so that the last of them are the longest.
    for level, group in groupby(sorted(names, reverse=True), lambda which: bisect_right(lengths, which)):
        for which in sorted(group):
            rows, flags = names[which]
            start = which - lengths[level - 1]
            span = range(start, start + level)
            if len(rows) > MOST_SHARED or not taken.isdisjoint(span):
                continue
            text = bisect_right(starts, start) - 1
            meant = _is_meant(texts[text], start - starts[text], level, flags)
            if meant is not False:
                taken.update(span)
                chosen.append((start, level, rows, meant is True))
    for start, length, rows, certain in sorted(chosen):
        text = bisect_right(starts, start) - 1
        begin = start - starts[text]
        written = joined(texts[text].written[begin : begin + length])
        out[text].append(Mention(written, tuple(sorted(set(rows))), certain))
    return out


def _is_meant(words: Words, begin: int, length: int, name: int) -> bool | None:
    """Whether a writer who put these words down meant the name, and not just the words; None where nothing tells."""
    if length == len(words.hashes):
        return True
    flags = words.flags[begin : begin + length].tolist()
    content = [flag for flag in flags if not flag & STOP]
    if not content:
        # The Who; Will. Only their capitals tell them from what the words do in any sentence.
        telling = all(flag & CAPITAL for flag in flags) and not flags[-1] & INITIAL
        return telling and bool(length > 1 or name & SURE)
    if all(flag & NUMBER for flag in content):
        # 1984 is a year far more often than a novel.
        return False
    if len(content) > 1 and all(flag & CASELESS for flag in content):
        return True
    if name & SURE or any(_stands_out(flag) for flag in content):
        return True
    alone = len(content) == 1
    if words.shows_case and not name & PLAIN and not (alone and content[0] & (CAPITAL | CASELESS)):
        return False
    return False if alone and content[0] & ORDINARY else None


def _stands_out(flag: int) -> bool:
    """A capital inside a sentence; an everyday word all in capitals is a heading."""
    return flag & (CAPITAL | INITIAL) == CAPITAL and flag & (SHOUTED | ORDINARY) != SHOUTED | ORDINARY


def gains(
    named: Iterable[Mention],
    seeds: Mapping[int, float],
    linked: Mapping[int, Sequence[Mention]],
    relevance: Callable[[list[int]], Sequence[float]],
    rarity: Callable[[Mention], float],
    linking: Linking,
) -> dict[int, Gain]:
    """What each record gets.

    A record that the question names gets the name's rarity, shared among those that bear it. A record that a
    seed mentions gets the seed's strength times the same, times (floor + its own relevance). Of several seeds
    the best counts; being named and being mentioned add up.
    """
    strength: dict[int, float] = {}
    by_name: dict[int, Gain] = {}
    for mention in named:
        worth = _worth(mention, rarity)
        for row in mention.rows:
            if row not in by_name or worth > by_name[row].score:
                by_name[row] = Gain(worth, mention.written, None)
                strength[row] = worth
    for row, relevant in seeds.items():
        strength[row] = max(strength.get(row, 0.0), linking.seed_share * relevant)
    along: dict[int, Gain] = {}
    for seed, mentioned in linked.items():
        for mention in mentioned[: linking.most_links]:
            if seed in mention.rows or not mention.certain:
                continue
            worth = strength[seed] * _worth(mention, rarity)
            for row in mention.rows:
                if row not in along or worth > along[row].score:
                    along[row] = Gain(worth, mention.written, seed)
    targets = list(along)
    out = dict(by_name)
    for row, relevant in zip(targets, relevance(targets), strict=True):
        gain = along[row]
        score = gain.score * (linking.floor + relevant)
        if row in out:
            out[row] = out[row]._replace(score=out[row].score + score)
        elif score > 0:
            out[row] = gain._replace(score=score)
    return out


def _worth(mention: Mention, rarity: Callable[[Mention], float]) -> float:
    return rarity(mention) / math.sqrt(len(mention.rows))


def rareness(share: float, count: int, certain: bool = True) -> float:
    """Of a name, from the share of `count` records that hold its rarest word: 1 for a word of one record,
    towards 0 for one of all. What is not certainly a name is none unless it is rare."""
    share = max(share, 1 / max(count, 1))
    if not certain and share * count > max(RARE_RECORDS, RARE_SHARE * count):
        return 0.0
    return math.log1p(1 / share) / math.log1p(max(count, 1))
