"""Team-draft interleaving: one list from two rankings, so that what people choose compares the rankings.

As two captains choose players: in each round a coin decides who picks first, and each side picks its best result that
is not in the list yet. A result counts for the side that picked it. (Radlinski, Kurup and Joachims, CIKM 2008.)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

Team = Literal["control", "treatment"]

CONTROL: Final[Team] = "control"
TREATMENT: Final[Team] = "treatment"


class Pick(NamedTuple):
    """A result of the list: the side that picked it, and its place in the ranking of that side, from 0."""

    team: Team
    place: int


def team_draft(
    control: Sequence[Hashable], treatment: Sequence[Hashable], limit: int, coins: Iterator[bool]
) -> list[Pick]:
    """Return up to `limit` picks. A coin decides each round; True lets the treatment pick first."""
    rankings: tuple[tuple[Team, Sequence[Hashable]], ...] = ((CONTROL, control), (TREATMENT, treatment))
    picked: set[Hashable] = set()
    next_index = {CONTROL: 0, TREATMENT: 0}
    out: list[Pick] = []
    while len(out) < limit:
        before = len(out)
        for team, ranking in reversed(rankings) if next(coins) else rankings:
            index = next_index[team]
            while index < len(ranking) and ranking[index] in picked:
                index += 1
            if index < len(ranking) and len(out) < limit:
                picked.add(ranking[index])
                out.append(Pick(team, index))
                index += 1
            next_index[team] = index
        if len(out) == before:
            break
    return out
