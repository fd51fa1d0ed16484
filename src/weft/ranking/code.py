"""What is known to help in code: outlines, definitions, names of files, and what stands beside the thing itself.

Numbers are in the units of a list whose best score is 1, of which the fusion adds up several; docs/code.md has what
each is worth.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

import numpy as np

from weft.ranking.naming import Said, file_words, symbols_in
from weft.ranking.stages import Ranked, Staged, stage
from weft.results import Dropped

BESIDE: Final = ("test", "stub", "reexport", "example", "generated")
"""Roles of files that come after what they serve."""


class Candidate(NamedTuple):
    """What this stage looks at of a record."""

    id: str
    path: str
    outline: bool
    qualified: str
    """Empty for what defines nothing."""
    role: str


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
    beside: float = 0.4
    """Taken from what is in a file of one of these roles."""
    roles: Sequence[str] = BESIDE

    def __post_init__(self) -> None:
        for name in ("outline", "definition", "file_name", "beside"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, not {value!r}")
        object.__setattr__(self, "roles", tuple(self.roles))

    def apply(self, ranked: Ranked) -> Staged:
        listed = _candidates(ranked, self.outlines)
        # Numbers of Python: one at a time, numpy's cost several times as much.
        scores: list[float] = ranked.scores.tolist()
        files = self._files(ranked, listed, scores)
        symbols = symbols_in(ranked.query) if self.definition else {}
        defining: set[int] = set()
        best: dict[str, int] = {}
        for at, one in enumerate(listed):
            added = files[one.path]
            if one.outline:
                # Its own score is in what the file adds.
                scores[at] = added
                continue
            scores[at] += added
            if symbols and one.qualified and _defines(one.qualified, symbols):
                scores[at] += self.definition
                defining.add(at)
            held = best.get(one.path)
            if held is None or (-scores[at], one.id) < (-scores[held], listed[held].id):
                best[one.path] = at
        gave_way = {at: best[one.path] for at, one in enumerate(listed) if one.outline and one.path in best}
        for at, part in gave_way.items():
            # The file stands where its best record does, also when that is the outline.
            scores[part] = max(scores[part], scores[at])
        left = [at for at in range(len(listed)) if at not in gave_way]
        left.sort(key=lambda at: (-scores[at], listed[at].id))
        staged = Staged(ranked.keys[left], np.array([scores[at] for at in left]))
        if not ranked.explain:
            return staged
        keys = ranked.keys.tolist()
        dropped = {
            keys[at]: Dropped(
                self.name,
                f"a part of the file is in the answer: {listed[part].id}",
                scores[at],
                scores[part],
                keys[part],
            )
            for at, part in gave_way.items()
        }
        return replace(staged, dropped=dropped, reasons=self._reasons(ranked, listed, defining))

    def _files(self, ranked: Ranked, listed: Sequence[Candidate], scores: Sequence[float]) -> dict[str, float]:
        """What each file adds to all of its records."""
        return {
            path: sum(amount for amount, _ in parts)
            for path, parts in self._parts(ranked, listed, scores).items()
        }

    def _reasons(
        self, ranked: Ranked, listed: Sequence[Candidate], defining: Container[int]
    ) -> dict[int, str]:
        """What was added to each record, and why."""
        files = {
            path: [f"{amount:+.2f} {reason}" for amount, reason in parts if amount]
            for path, parts in self._parts(ranked, listed, ranked.scores.tolist()).items()
        }
        out = {}
        for at, (key, one) in enumerate(zip(ranked.keys.tolist(), listed, strict=True)):
            defines = [f"{self.definition:+.2f} defines {one.qualified}"] if at in defining else []
            if why := ", ".join([*files[one.path], *defines]):
                out[key] = why
        return out

    def _parts(
        self, ranked: Ranked, listed: Sequence[Candidate], scores: Sequence[float]
    ) -> dict[str, list[tuple[float, str]]]:
        """What there is to add for each file, with reasons."""
        outlined = {one.path: score for one, score in zip(listed, scores, strict=True) if one.outline}
        roles = {one.path: one.role for one in reversed(listed)}
        said = Said(ranked.query)
        out = {}
        for path, role in roles.items():
            parts = [(self.outline * outlined.get(path, 0.0), "by the outline of its file")]
            if role in self.roles:
                # It is often called like what it serves, so its name says nothing.
                parts.append((-self.beside, f"in a file of role {role}"))
            elif self.file_name:
                parts.append((self.file_name * said.share(file_words(path)), "by the name of its file"))
            out[path] = parts
        return out


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
        reasons = {int(ranked.keys[place]): "after the best of other files" for place in later}
        return Staged(ranked.keys[order], ranked.scores[order], {}, reasons)


def _candidates(ranked: Ranked, outlines: str) -> list[Candidate]:
    found = ranked.values("id", "path", "collection", "qualified", "role")
    return [
        Candidate(name, path or name, collection == outlines, str(qualified or ""), str(role or ""))
        for name, path, collection, qualified, role in found
    ]


def _defines(qualified: str, symbols: dict[str, tuple[str, ...]]) -> bool:
    """Whether a name is that of a symbol; for `Outer.inner` the outer has to be the same too."""
    names = qualified.split(".")
    parts = symbols.get(names[-1])
    # A question may name a module before the name, such as flask.Flask, which a qualified name does not have.
    return parts is not None and all(
        one == other for one, other in zip(reversed(names), reversed(parts), strict=False)
    )
