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
from typing import Any, ClassVar, Final

import numpy as np

from sennit.ranking.naming import Said, file_words, symbols_in
from sennit.ranking.stages import Ranked, Staged, stage
from sennit.results import Dropped

BESIDE: Final = ("test", "stub", "reexport", "example", "generated")
"""Roles of files that come after what they serve."""

COMPANY: Final = 3
"""Records of a file, after its best, that count for it."""


class _File:
    """What is known of one file among the candidates."""

    __slots__ = ("best", "company", "found", "name", "outline")

    def __init__(self, name: float) -> None:
        self.name = name
        """For what the question says of its name."""
        self.outline = 0.0
        self.company = 0.0
        self.found = 0
        """Records that are no outline."""
        self.best = -1
        """The place of the best of them."""


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
    beside: float = 1.0
    """Taken from what is in a file of one of these roles, or is a test by itself: as much as a list can give."""
    roles: Sequence[str] = BESIDE

    def __post_init__(self) -> None:
        for name in ("outline", "definition", "file_name", "company", "beside"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, not {value!r}")
        object.__setattr__(self, "roles", tuple(self.roles))

    def apply(self, ranked: Ranked) -> Staged:
        rows = ranked.values("id", "path", "collection", "qualified", "role")
        # Numbers of Python: one at a time, numpy's cost several times as much.
        scores: list[float] = ranked.scores.tolist()
        files = self._files(ranked.query, rows, scores)
        symbols = symbols_in(ranked.query) if self.definition else {}
        defining: set[int] = set()
        outlines: list[int] = []
        for at, (file, (name, _, collection, qualified, role)) in enumerate(zip(files, rows, strict=True)):
            # What stands beside something is often called like it, so its name says nothing.
            added = file.outline + file.company + (-self.beside if role in self.roles else file.name)
            if collection == self.outlines:
                # Its own score is in what the file adds.
                scores[at] = added
                outlines.append(at)
                continue
            if symbols and qualified and _defines(qualified, symbols):
                added += self.definition
                defining.add(at)
            score = scores[at] = scores[at] + added
            best = file.best
            if best < 0 or score > scores[best] or (score == scores[best] and name < rows[best][0]):
                file.best = at
        gave_way = {at: files[at].best for at in outlines if files[at].best >= 0}
        for at, part in gave_way.items():
            # The file stands where its best record does, also when that is the outline.
            scores[part] = max(scores[part], scores[at])
        ordered = sorted(zip(map(neg, scores), [row[0] for row in rows], range(len(rows)), strict=True))
        left = [at for _, _, at in ordered if at not in gave_way]
        staged = Staged(ranked.keys[left], np.array([scores[at] for at in left], np.float64))
        if not ranked.explain:
            return staged
        keys = ranked.keys.tolist()
        dropped = {
            keys[at]: Dropped(
                self.name,
                f"a part of the file is in the answer: {rows[part][0]}",
                scores[at],
                scores[part],
                keys[part],
            )
            for at, part in gave_way.items()
        }
        reasons = {}
        for at, (file, (_, _, _, qualified, role)) in enumerate(zip(files, rows, strict=True)):
            why = self._reasons(role, file)
            if at in defining:
                why.append(f"{self.definition:+.2f} defines {qualified}")
            if why:
                reasons[keys[at]] = ", ".join(why)
        return replace(staged, dropped=dropped, reasons=reasons)

    def _files(self, query: str, rows: Sequence[tuple[Any, ...]], scores: Sequence[float]) -> list[_File]:
        """The file of each record, with what it adds to all of its records: an object for each file, not for each record."""
        said = Said(query)
        known: dict[str, _File] = {}
        out = []
        for (name, own, collection, _, _), score in zip(rows, scores, strict=True):
            path = own or name
            file = known.get(path)
            if file is None:
                file = known[path] = _File(self.file_name * said.share(file_words(path)))
            out.append(file)
            if collection == self.outlines:
                file.outline = self.outline * score
            else:
                # The best comes first, and the next ones after it.
                if 0 < file.found <= COMPANY:
                    file.company += self.company * score
                file.found += 1
        return out

    def _reasons(self, role: object, file: _File) -> list[str]:
        """What a file adds, in words."""
        beside = role in self.roles
        said = (
            (file.outline, "by the outline of its file"),
            (-self.beside, f"in a file of role {role}") if beside else (file.name, "by the name of its file"),
            (file.company, "by what else is found of its file"),
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


def _defines(qualified: str, symbols: dict[str, tuple[str, ...]]) -> bool:
    """Whether a name is that of a symbol; for `Outer.inner` the outer has to be the same too."""
    outer, _, name = qualified.rpartition(".")
    parts = symbols.get(name)
    if parts is None or not outer or len(parts) == 1:
        return parts is not None
    # A question may name a module before the name, such as flask.Flask, which a qualified name does not have.
    pairs = zip(reversed(outer.split(".")), reversed(parts[:-1]), strict=False)
    return all(one == other for one, other in pairs)
