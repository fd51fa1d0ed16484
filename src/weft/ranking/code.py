"""What is known to help in code: outlines, definitions, names of files, how much of a file is found, and what stands
beside the thing itself.

Numbers are in the units of a list whose best score is 1, of which the fusion adds up several; docs/code.md has what
each is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import neg
from typing import ClassVar, Final, NamedTuple

import numpy as np

from weft.ranking.naming import Said, file_words, symbols_in
from weft.ranking.stages import Ranked, Staged, stage
from weft.results import Dropped

BESIDE: Final = ("test", "stub", "reexport", "example", "generated")
"""Roles of files that come after what they serve."""

COMPANY: Final = 3
"""Records of a file, after its best, that count for it."""


class Candidates(NamedTuple):
    """What this stage looks at of the records, side by side: an object for each would cost more than all else."""

    ids: Sequence[str]
    paths: Sequence[str]
    outlines: Sequence[bool]
    """Which are outlines."""
    qualified: Sequence[object]
    """Nothing for what defines nothing."""
    roles: dict[str, object]
    """By path."""


@stage
@dataclass(frozen=True, slots=True)
class CodeSense:
    """Adds to each record of code what its file and its name say; an outline gives way to what it outlines."""

    name: ClassVar[str] = "code"

    outlines: str = "code_files"
    """The collection whose records are outlines of files; `path` says of which."""
    outline: float = 1.0
    """How much of the score of its file's outline a record gets."""
    definition: float = 1.0
    """For the definition of a symbol that the question names."""
    file_name: float = 0.5
    """For a file whose name the question says in full; in part, the share."""
    company: float = 0.15
    """How much of the scores of its next three records a file gets: what a question is about is found in several."""
    beside: float = 0.4
    """Taken from what is in a file of one of these roles."""
    roles: Sequence[str] = BESIDE

    def __post_init__(self) -> None:
        for name in ("outline", "definition", "file_name", "company", "beside"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, not {value!r}")
        object.__setattr__(self, "roles", tuple(self.roles))

    def apply(self, ranked: Ranked) -> Staged:
        listed = _candidates(ranked, self.outlines)
        ids, paths = listed.ids, listed.paths
        # Numbers of Python: one at a time, numpy's cost several times as much.
        scores: list[float] = ranked.scores.tolist()
        parts = self._parts(ranked.query, listed, scores)
        symbols = symbols_in(ranked.query) if self.definition else {}
        defining: set[int] = set()
        best: dict[str, int] = {}
        outlines: list[int] = []
        for at, (path, outline, qualified) in enumerate(
            zip(paths, listed.outlines, listed.qualified, strict=True)
        ):
            added = sum(parts[path])
            if outline:
                # Its own score is in what the file adds.
                scores[at] = added
                outlines.append(at)
                continue
            scores[at] += added
            if symbols and qualified and _defines(str(qualified), symbols):
                scores[at] += self.definition
                defining.add(at)
            held = best.get(path)
            if held is None or (-scores[at], ids[at]) < (-scores[held], ids[held]):
                best[path] = at
        gave_way = {at: best[paths[at]] for at in outlines if paths[at] in best}
        for at, part in gave_way.items():
            # The file stands where its best record does, also when that is the outline.
            scores[part] = max(scores[part], scores[at])
        ordered = sorted(zip(map(neg, scores), ids, range(len(scores)), strict=True))
        left = [at for _, _, at in ordered if at not in gave_way]
        staged = Staged(ranked.keys[left], np.array([scores[at] for at in left], np.float64))
        if not ranked.explain:
            return staged
        keys = ranked.keys.tolist()
        dropped = {
            keys[at]: Dropped(
                self.name,
                f"a part of the file is in the answer: {ids[part]}",
                scores[at],
                scores[part],
                keys[part],
            )
            for at, part in gave_way.items()
        }
        reasons = {}
        for at, key in enumerate(keys):
            why = self._reasons(listed.roles[paths[at]], *parts[paths[at]])
            if at in defining:
                why.append(f"{self.definition:+.2f} defines {listed.qualified[at]}")
            if why:
                reasons[key] = ", ".join(why)
        return replace(staged, dropped=dropped, reasons=reasons)

    def _parts(
        self, query: str, listed: Candidates, scores: Sequence[float]
    ) -> dict[str, tuple[float, float, float]]:
        """What each file adds to all of its records: by its outline, by its role or its name, and by their number."""
        outlined: dict[str, float] = {}
        own: dict[str, list[float]] = {}
        for path, score, outline in zip(listed.paths, scores, listed.outlines, strict=True):
            if outline:
                outlined[path] = self.outline * score
            else:
                own.setdefault(path, []).append(score)
        said = Said(query)
        out = {}
        for path, role in listed.roles.items():
            # What stands beside something is often called like it, so its name says nothing.
            more = -self.beside if role in self.roles else self.file_name * said.share(file_words(path))
            others = sorted(own.get(path, ()), reverse=True)[1 : COMPANY + 1]
            out[path] = (outlined.get(path, 0.0), more, self.company * sum(others))
        return out

    def _reasons(self, role: object, by_outline: float, by_file: float, by_others: float) -> list[str]:
        """What a file adds, in words."""
        source = f"in a file of role {role}" if role in self.roles else "by the name of its file"
        said = (
            (by_outline, "by the outline of its file"),
            (by_file, source),
            (by_others, "by what else is found of its file"),
        )
        return [f"{amount:+.2f} {reason}" for amount, reason in said if amount]


@stage
@dataclass(frozen=True, slots=True)
class PerFile:
    """The best of each file first; what else there is of it after the best of all others."""

    name: ClassVar[str] = "per_file"

    most: int = 1
    """How many of one file stand among the first."""

    def __post_init__(self) -> None:
        if type(self.most) is not int or self.most < 1:
            raise ValueError(f"most must be a whole number of at least 1, not {self.most!r}")

    def apply(self, ranked: Ranked) -> Staged:
        first: list[int] = []
        later: list[int] = []
        taken: dict[str, int] = {}
        at = 0
        files = ranked.values("id", "path")
        while at < len(ranked.keys) and len(first) < ranked.limit:
            for name, path in files[at : at + 2 * ranked.limit]:
                file = name if path is None else path
                taken[file] = taken.get(file, 0) + 1
                (first if taken[file] <= self.most else later).append(at)
                at += 1
        order = [*first, *later, *range(at, len(ranked.keys))]
        behind = ranked.keys[later].tolist() if ranked.explain else ()
        reasons = dict.fromkeys(behind, "after the best of other files")
        return Staged(ranked.keys[order], ranked.scores[order], {}, reasons)


def _candidates(ranked: Ranked, outlines: str) -> Candidates:
    found = ranked.values("id", "path", "collection", "qualified", "role")
    if not found:
        return Candidates((), (), (), (), {})
    ids, own, collections, qualified, roles = zip(*found, strict=True)
    paths = [path or name for path, name in zip(own, ids, strict=True)]
    by_path: dict[str, object] = {}
    for path, role in zip(paths, roles, strict=True):
        by_path.setdefault(path, role)
    return Candidates(ids, paths, [one == outlines for one in collections], qualified, by_path)


def _defines(qualified: str, symbols: dict[str, tuple[str, ...]]) -> bool:
    """Whether a name is that of a symbol; for `Outer.inner` the outer has to be the same too."""
    names = qualified.split(".")
    parts = symbols.get(names[-1])
    # A question may name a module before the name, such as flask.Flask, which a qualified name does not have.
    return parts is not None and all(
        one == other for one, other in zip(reversed(names), reversed(parts), strict=False)
    )
