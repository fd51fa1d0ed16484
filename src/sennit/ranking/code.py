"""Stages for code search: boosts from outlines, definitions, file names and further hits, and one result per file.

Boosts are in the units of a list whose best score is 1; the fusion adds several such lists. docs/design/code-ranking.md
shows what each boost is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import neg
from typing import Any, ClassVar, Final, Literal

import numpy as np

from sennit.places import FOLDER_FIELD, record_place
from sennit.ranking.code_names import (
    QueryWords,
    file_stem,
    find_older_versions,
    find_symbols,
    split_name,
)
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage
from sennit.records import OUTLINE_COLLECTION
from sennit.results import Dropped

SECONDARY_ROLES: Final = ("test", "stub", "reexport", "example", "generated")
"""Roles of files that rank below the code they serve."""

NAME_MATCH_POWER: Final = 3
"""A query that spells nearly a whole name means it; one that shares a word or two with it says little."""

FOLDER_SHARE: Final = 0.5
"""What the name of a file's folder counts for, beside 1 for the name of the file: a folder has several files."""

CONTEXT_RECORDS: Final = 3
"""How many records of a file, after its best, count towards its context boost."""


class _File:
    """The boosts of one file, which all its candidates get."""

    __slots__ = ("best", "context_boost", "found", "is_older", "name_boost", "outline_boost")

    def __init__(self, name_boost: float) -> None:
        self.name_boost = name_boost
        self.outline_boost = 0.0
        self.context_boost = 0.0
        self.is_older = False
        """Whether it is in a folder of an older version."""
        self.found = 0
        """The number of candidates, outlines excluded."""
        self.best = -1
        """The index of the best of them."""


@stage
@dataclass(frozen=True, slots=True)
class CodeRanking:
    """Adds to each record what its file and its name contribute. A better record of the file replaces its outline."""

    name: ClassVar[str] = "code"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    outlines: str = OUTLINE_COLLECTION
    """The collection with the outlines of files; the `path` of an outline names its file."""
    outline_weight: float = 1.0
    """The part of the outline's score that each record of the file gets."""
    definition_boost: float = 1.0
    """For the definition of a symbol that the query names."""
    name_boost: float = 1.0
    """For a record whose name the query spells in words; proportionally less for a part of the name or the query."""
    file_name_boost: float = 0.5
    """For a file whose whole name is in the query; proportionally less for a part of it, and half for its folder's."""
    context_boost: float = 0.15
    """The part of the scores of its next three records that a file gets: the right file often has several hits."""
    secondary_penalty: float = 1.0
    """Subtracted in files with a secondary role: as much as one list can give."""
    secondary_roles: Sequence[str] = SECONDARY_ROLES
    older_version_penalty: float = 0.5
    """Subtracted in files of an older version that is kept beside a newer one, unless the query names the version."""

    def __post_init__(self) -> None:
        for name in (
            "outline_weight",
            "definition_boost",
            "name_boost",
            "file_name_boost",
            "context_boost",
            "secondary_penalty",
            "older_version_penalty",
        ):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, not {value!r}")
        object.__setattr__(self, "secondary_roles", tuple(self.secondary_roles))

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        # The parent of an entity is its file; paths of two folders may be the same.
        rows = [
            (name, parent or path, collection, qualified, role)
            for name, parent, path, collection, qualified, role in context.values(
                ranking.keys, "id", "parent", "path", "collection", "qualified", "role"
            )
        ]
        # Python floats: reading numpy scalars one at a time costs several times as much.
        scores: list[float] = ranking.scores.tolist()
        query_words = QueryWords(context.query)
        files = self._boost_files(query_words, rows, scores)
        symbols = find_symbols(context.query)
        # A query that names a symbol means this symbol, and none with a similar name.
        spelled = self.name_boost and not symbols
        name_matches = match_names(query_words, [row[3] for row in rows]) if spelled else {}
        definitions: set[int] = set()
        outlines: list[int] = []
        for at, (file, (name, _, collection, qualified, role)) in enumerate(zip(files, rows, strict=True)):
            # A secondary file is often named after what it serves, so its own name says nothing.
            boost = (
                file.outline_boost
                + file.context_boost
                + (-self.secondary_penalty if role in self.secondary_roles else file.name_boost)
                - (self.older_version_penalty if file.is_older else 0.0)
            )
            if collection == self.outlines:
                # The outline's own score is already in the boost.
                scores[at] = boost
                outlines.append(at)
                continue
            if symbols and self.definition_boost and qualified and is_definition(qualified, symbols):
                boost += self.definition_boost
                definitions.add(at)
            elif at in name_matches:
                boost += self.name_boost * name_matches[at]
            score = scores[at] = scores[at] + boost
            best = file.best
            if best < 0 or score > scores[best] or (score == scores[best] and name < rows[best][0]):
                file.best = at
        replaced_by = {at: files[at].best for at in outlines if files[at].best >= 0}
        for at, best in replaced_by.items():
            # If the outline scores higher, its file's best record takes that score.
            scores[best] = max(scores[best], scores[at])
        ordered = sorted(zip(map(neg, scores), [row[0] for row in rows], range(len(rows)), strict=True))
        kept = [at for _, _, at in ordered if at not in replaced_by]
        output = StageOutput(ranking.keys[kept], np.array([scores[at] for at in kept], np.float64))
        if not context.explain:
            return output
        keys = ranking.keys.tolist()
        dropped = {
            keys[at]: Dropped(
                self.name,
                f"a record of the same file was kept: {rows[best][0]}",
                scores[at],
                scores[best],
                keys[best],
            )
            for at, best in replaced_by.items()
        }
        reasons = {}
        for at, (file, (_, _, _, qualified, role)) in enumerate(zip(files, rows, strict=True)):
            parts = self._explain_file(role, file)
            if at in definitions:
                parts.append(f"{self.definition_boost:+.2f} defines {qualified}")
            elif at in name_matches:
                parts.append(f"{self.name_boost * name_matches[at]:+.2f} by its name {qualified}")
            if parts:
                reasons[keys[at]] = ", ".join(parts)
        return replace(output, dropped=dropped, reasons=reasons)

    def _boost_files(
        self, query_words: QueryWords, rows: Sequence[tuple[Any, ...]], scores: Sequence[float]
    ) -> list[_File]:
        """Return the file of each record with its boosts; records of one file share one object."""
        known: dict[str, _File] = {}
        out = []
        for (name, parent, collection, _, _), score in zip(rows, scores, strict=True):
            path = parent or name
            file = known.get(path)
            if file is None:
                coverage = query_words.file_coverage(path) + FOLDER_SHARE * query_words.folder_coverage(path)
                file = known[path] = _File(self.file_name_boost * coverage)
            out.append(file)
            if collection == self.outlines:
                file.outline_boost = self.outline_weight * score
            else:
                # Records come best first, so those after the first are the context.
                if 0 < file.found <= CONTEXT_RECORDS:
                    file.context_boost += self.context_boost * score
                file.found += 1
        _credit_implementations(rows, out)
        if self.older_version_penalty:
            for path in find_older_versions(known, query_words):
                known[path].is_older = True
        return out

    def _explain_file(self, role: object, file: _File) -> list[str]:
        """Return the boosts of a file in words."""
        boosts = (
            (file.outline_boost, "by the outline of its file"),
            (-self.secondary_penalty, f"in a file of role {role}")
            if role in self.secondary_roles
            else (file.name_boost, "by the name of its file"),
            (file.context_boost, "by further hits in its file"),
            (-self.older_version_penalty if file.is_older else 0.0, "in an older version"),
        )
        return [f"{amount:+.2f} {reason}" for amount, reason in boosts if amount]


@stage
@dataclass(frozen=True, slots=True)
class PerFile:
    """Ranks the best records of each file first, and the other records of these files after them."""

    name: ClassVar[str] = "per_file"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    records_per_file: int = 1
    """How many records of one file may rank first."""

    def __post_init__(self) -> None:
        if type(self.records_per_file) is not int or self.records_per_file < 1:
            raise ValueError(
                f"records_per_file must be a whole number of at least 1, not {self.records_per_file!r}"
            )

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        rows = context.values(ranking.keys, "id", "path", FOLDER_FIELD)
        files = [record_place(folder, path) or name for name, path, folder in rows]
        first, later = first_of_each_file(files, self.records_per_file)
        order = [*first, *later]
        last = max(first, default=-1)
        moved_back = ranking.keys[[at for at in later if at < last]].tolist() if context.explain else ()
        reasons = dict.fromkeys(moved_back, "after the best of other files")
        return StageOutput(ranking.keys[order], ranking.scores[order], {}, reasons)


def _credit_implementations(rows: Sequence[tuple[Any, ...]], files: Sequence[_File]) -> None:
    """Give a source file the outline boost of the stub of the same name, if that is greater.

    A header of C, or a type stub, has the comments on what a source file implements.
    """
    stubs: dict[str, float] = {}
    for (name, parent, _, _, role), file in zip(rows, files, strict=True):
        if role == "stub":
            stem = file_stem(parent or name)
            stubs[stem] = max(stubs.get(stem, 0.0), file.outline_boost)
    if not stubs:
        return
    for (name, parent, _, _, role), file in zip(rows, files, strict=True):
        if role == "source":
            file.outline_boost = max(file.outline_boost, stubs.get(file_stem(parent or name), 0.0))


def first_of_each_file(files: Sequence[str], most: int) -> tuple[list[int], list[int]]:
    """Return the positions that rank first, and the rest: at most so many of each file rank first.

    The order does not depend on the limit of the search, so a rank after the limit is the rank that a greater limit shows.
    """
    first: list[int] = []
    later: list[int] = []
    count: dict[str, int] = {}
    for at, file in enumerate(files):
        count[file] = count.get(file, 0) + 1
        (first if count[file] <= most else later).append(at)
    return first, later


def match_names(query_words: QueryWords, names: Sequence[str | None]) -> dict[int, float]:
    """Return how well the query spells each name, from 0 to 1: the share of its information times that of the name.

    A word that many of these names have carries little information.
    """
    matches = {}
    frequency: dict[str, int] = {}
    for at, qualified in enumerate(names):
        if qualified:
            words = split_name(qualified.rpartition(".")[2])
            found, matching = query_words.matches(words)
            if found:
                matches[at] = (found, matching / len(words))
                for word in found:
                    frequency[word] = frequency.get(word, 0) + 1
    weights = {word: math.log1p(len(names) / (1 + frequency.get(word, 0))) for word in query_words.content}
    total = sum(weights.values())
    return {
        at: (share * sum(weights[word] for word in found) / total) ** NAME_MATCH_POWER
        for at, (found, share) in matches.items()
    }


def is_definition(qualified: str, symbols: dict[str, tuple[str, ...]]) -> bool:
    """Return whether a qualified name is one of the symbols; for `Outer.inner` the outer name must match too."""
    outer, _, name = qualified.rpartition(".")
    parts = symbols.get(name)
    if parts is None or not outer or len(parts) == 1:
        return parts is not None
    # A query may put a module before the name, such as flask.Flask, which a qualified name does not have.
    pairs = zip(reversed(outer.split(".")), reversed(parts[:-1]), strict=False)
    return all(one == other for one, other in pairs)
