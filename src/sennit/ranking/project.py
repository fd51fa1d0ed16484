"""Ranking in a mixed project: documentation before source, source before tests, and no file fills the answer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

import numpy as np

from sennit.places import FOLDER_FIELD, record_place
from sennit.ranking.code import first_of_each_file, is_definition
from sennit.ranking.code_names import find_symbols
from sennit.ranking.stages import Keys, Ranking, StageContext, StageOutput, stage
from sennit.records import OUTLINE_COLLECTION
from sennit.results import Dropped

ROLE_WEIGHTS: Final[Mapping[str, float]] = {
    "source": 0.9,
    "reexport": 0.8,
    "stub": 0.8,
    "example": 0.85,
    "test": 0.75,
    "data": 0.8,
    "generated": 0.7,
    "changelog": 0.75,
    "licence": 0.7,
}
"""For a question in plain words. Documentation, and every role that is not listed, has weight 1."""

CODE_ROLE_WEIGHTS: Final[Mapping[str, float]] = {
    **ROLE_WEIGHTS,
    "docs": 0.9,
    "source": 1.0,
    "data": 0.9,
}
"""For a question about code."""

_CODE_TOKEN: Final = re.compile(
    r"""`[^`\s]+`
    | \b[A-Za-z]\w*_\w+ | \b_\w+
    | \b[a-z]+[A-Z]\w* | \b[A-Z][a-z0-9]+[A-Z]\w*
    | \w(?:::|->)\w | \b[A-Za-z_]\w*\(
    | \b[\w-]+\.(?:py|pyi|go|js|jsx|ts|tsx|rs|java|c|h|cc|cpp|hpp)\b
    | \b[A-Za-z_]\w{2,}\.[a-z_]\w{2,}\w*\b(?!\.\w)""",
    re.X,
)
"""A name in code or of a file of code, as a question writes it."""

_NO_CODE: Final = re.compile(r"\b[\w-]+\.(?:md|mdx|rst|txt|toml|json|ya?ml|ini|cfg|com|org|net|io)\b", re.I)
"""Names of other files and of hosts, which look like a qualified name."""

_CODE_WORDS: Final = re.compile(
    r"\b(?:implement(?:s|ed|ation|ations)?|defined|definitions?|functions?|methods?|class(?:es)?|source\s+code|subclass(?:es)?"
    r"|called\s+(?:by|from)|callers?|traceback|stack\s+trace)\b",
    re.I,
)


def is_about_code(query: str) -> bool:
    """Return whether a question names code: a symbol, a file of code, or words such as "implemented"."""
    return bool(_CODE_WORDS.search(query) or _CODE_TOKEN.search(_NO_CODE.sub(" ", query)))


@stage
@dataclass(frozen=True, slots=True)
class ProjectRanking:
    """Weighs the files of a project by their role. It runs only in a database with indexed files.

    The outline of a file is left out where another record of the file was found, which takes its score if that is
    higher. Of two records of different collections where one has all lines of the other, such as an example and its
    section, only the better is kept. The best records of each file come first, and the others after them.
    """

    name: ClassVar[str] = "project"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"
    only_with_files: ClassVar[bool] = True

    weights: Mapping[str, float] = field(default_factory=lambda: dict(ROLE_WEIGHTS))
    code_weights: Mapping[str, float] = field(default_factory=lambda: dict(CODE_ROLE_WEIGHTS))
    definition_weight: float = 1.5
    """For the definition of a symbol that a question about code names."""
    outlines: str = OUTLINE_COLLECTION
    """The collection with the outlines of files."""
    records_per_file: int = 2
    """How many records of one file may rank first."""

    def __post_init__(self) -> None:
        for name in ("weights", "code_weights"):
            for role, weight in getattr(self, name).items():
                if not (isinstance(weight, (int, float)) and math.isfinite(weight) and weight >= 0):
                    raise ValueError(f"{name}: the weight of {role!r} must be at least 0, not {weight!r}")
        if not (isinstance(self.definition_weight, (int, float)) and self.definition_weight >= 0):
            raise ValueError(f"definition_weight must be at least 0, not {self.definition_weight!r}")
        if type(self.records_per_file) is not int or self.records_per_file < 1:
            raise ValueError(
                f"records_per_file must be a whole number of at least 1, not {self.records_per_file!r}"
            )

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        rows = context.values(ranking.keys, "id", "role", "collection", "path", "qualified", FOLDER_FIELD)
        if not any(folder is not None for *_, folder in rows):
            return StageOutput(ranking.keys, ranking.scores)
        about_code = is_about_code(context.query)
        weights = self.code_weights if about_code else self.weights
        symbols = find_symbols(context.query) if about_code else {}
        defining = {
            at for at, row in enumerate(rows) if symbols and row[4] and is_definition(row[4], symbols)
        }
        factors = [
            (weights.get(role, 1.0) if isinstance(role, str) and folder else 1.0)
            * (self.definition_weight if at in defining else 1.0)
            for at, (_, role, *_, folder) in enumerate(rows)
        ]
        # A negative score would grow with a smaller factor.
        scores = [
            score * factor if score > 0 else score
            for score, factor in zip(ranking.scores.tolist(), factors, strict=True)
        ]
        files = [record_place(folder, path) or name for name, _, _, path, _, folder in rows]
        replaced_by = self._replace_outlines(rows, files, scores)
        ordered = sorted(
            (at for at in range(len(rows)) if at not in replaced_by),
            key=lambda at: (-scores[at], rows[at][0]),
        )
        repeated_by = self._find_repeated(ordered, rows, files, ranking.keys, context)
        ordered = [at for at in ordered if at not in repeated_by]
        first, later = first_of_each_file([files[at] for at in ordered], self.records_per_file)
        kept = [ordered[at] for at in (*first, *later)]
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
        dropped |= {
            keys[at]: Dropped(
                self.name,
                f"a better record has the same lines: {rows[best][0]}",
                scores[at],
                scores[best],
                keys[best],
            )
            for at, best in repeated_by.items()
        }
        moved_back = {ordered[at] for at in later if at < max(first, default=-1)}
        reasons = {
            keys[at]: ", ".join(
                part
                for part in (
                    f"×{factor:.2f} for a file of role {rows[at][1]}" if factor != 1.0 else "",
                    f"it defines {rows[at][4]}" if at in defining else "",
                    "after the best of other files" if at in moved_back else "",
                )
                if part
            )
            for at, factor in enumerate(factors)
            if keys[at] not in dropped and (factor != 1.0 or at in moved_back)
        }
        return StageOutput(output.keys, output.scores, dropped, reasons)

    def _replace_outlines(
        self, rows: Sequence[tuple[Any, ...]], files: Sequence[str], scores: list[float]
    ) -> dict[int, int]:
        """Return which outlines are left out, and for which record; that record gets the better score of both."""
        best: dict[str, int] = {}
        for at, row in enumerate(rows):
            if row[2] != self.outlines:
                other = best.get(files[at])
                if other is None or (-scores[at], row[0]) < (-scores[other], rows[other][0]):
                    best[files[at]] = at
        replaced_by = {
            at: best[files[at]]
            for at, row in enumerate(rows)
            if row[2] == self.outlines and files[at] in best
        }
        for at, winner in replaced_by.items():
            scores[winner] = max(scores[winner], scores[at])
        return replaced_by

    def _find_repeated(
        self,
        ordered: Sequence[int],
        rows: Sequence[tuple[Any, ...]],
        files: Sequence[str],
        keys: Keys,
        context: StageContext,
    ) -> dict[int, int]:
        """Return which records repeat the lines of a better record of another collection, and of which.

        Within a collection nothing repeats: a class and its method are two records, and chunks may overlap.
        """
        collections: dict[str, set[Any]] = {}
        for at in ordered:
            collections.setdefault(files[at], set()).add(rows[at][2])
        shared = [at for at in ordered if len(collections[files[at]]) > 1]
        if not shared:
            return {}
        records = context.records([int(keys[at]) for at in shared])
        repeated_by: dict[int, int] = {}
        kept: dict[str, list[tuple[int, tuple[int, int]]]] = {}
        for at in shared:
            record = records.get(int(keys[at]))
            if record is None or record.lines is None:
                continue
            others = kept.setdefault(files[at], [])
            for best, lines in others:
                if rows[best][2] != rows[at][2] and _one_has_all(lines, record.lines):
                    repeated_by[at] = best
                    break
            else:
                others.append((at, record.lines))
        return repeated_by


def _one_has_all(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether one of two ranges of lines has all lines of the other."""
    return (one[0] <= other[0] and other[1] <= one[1]) or (other[0] <= one[0] and one[1] <= other[1])
