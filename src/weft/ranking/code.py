"""What is known to help in code: outlines, definitions, names of files, and what stands beside the thing itself.

Numbers are in the units of a list whose best score is 1, of which the fusion adds up several; docs/code.md has what
each is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from weft.ranking.naming import covered, file_words, parts_of, symbols_in
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
        scores = ranked.scores.copy()
        files = self._files(ranked, listed)
        symbols = symbols_in(ranked.query) if self.definition else {}
        reasons: dict[int, str] = {}
        best: dict[str, int] = {}
        for at, (key, one) in enumerate(zip(ranked.keys.tolist(), listed, strict=True)):
            added, why = files[one.path]
            if one.outline:
                # Its own score is in what the file adds.
                scores[at] = added
            else:
                scores[at] += added
                if symbols and _defines(one.qualified, symbols):
                    scores[at] += self.definition
                    why = f"{why}, {self.definition:+.2f} defines {one.qualified}".removeprefix(", ")
                held = best.get(one.path)
                if held is None or (-scores[at], one.id) < (-scores[held], listed[held].id):
                    best[one.path] = at
            if why:
                reasons[key] = why
        dropped: dict[int, Dropped] = {}
        for at, one in enumerate(listed):
            part = best.get(one.path) if one.outline else None
            if part is not None:
                # The file stands where its best record does, also when that is the outline.
                scores[part] = max(scores[part], scores[at])
                key = int(ranked.keys[at])
                better = f"a part of the file is in the answer: {listed[part].id}"
                dropped[key] = Dropped(
                    self.name, better, float(scores[at]), float(scores[part]), int(ranked.keys[part])
                )
        left = [at for at in range(len(listed)) if int(ranked.keys[at]) not in dropped]
        left.sort(key=lambda at: (-scores[at], listed[at].id))
        return Staged(ranked.keys[left], scores[left], dropped, reasons)

    def _files(self, ranked: Ranked, listed: Sequence[Candidate]) -> dict[str, tuple[float, str]]:
        """What each file adds to all of its records, and why."""
        outlined = {
            one.path: score for one, score in zip(listed, ranked.scores.tolist(), strict=True) if one.outline
        }
        said = frozenset(parts_of(ranked.query))
        out: dict[str, tuple[float, str]] = {}
        for one in listed:
            if one.path not in out:
                parts = [(self.outline * outlined.get(one.path, 0.0), "by the outline of its file")]
                if one.role in self.roles:
                    # It is often called like what it serves, so its name says nothing.
                    parts.append((-self.beside, f"in a file of role {one.role}"))
                elif self.file_name:
                    share = covered(file_words(one.path), said)
                    parts.append((self.file_name * share, "by the name of its file"))
                why = ", ".join(f"{amount:+.2f} {reason}" for amount, reason in parts if amount)
                out[one.path] = (sum(amount for amount, _ in parts), why)
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
