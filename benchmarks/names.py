"""Code search for names in plain words: does "resolve dependencies" find the function of that name?

    python -m benchmarks.names --projects projects [--data DIR ...]

The questions are made from the projects: names of two to four words that one entity of the project has, twelve of each
project by a fixed seed, as their words, every other one with "the" after the first word. Each row is the recipe with
and without `name_boost`.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import sennit
from benchmarks.code import unpack_projects
from benchmarks.plans import DEFAULT_DATA
from sennit.ranking.code import CodeRanking
from sennit.ranking.code_names import split_name
from sennit.recipes import Recipe
from sennit.recipes.builtin import CODE_SEARCH
from sennit.records import Record

SEED: Final = 7
NAMES_PER_PROJECT: Final = 12
KINDS: Final = frozenset({"function", "method", "class", "struct", "interface", "trait", "type"})
MIN_LETTERS: Final = 3


class Scores(NamedTuple):
    """Shares of the questions."""

    entity_first: float
    file_first: float
    file_in_three: float


def make_questions(records: Iterator[Record]) -> list[tuple[str, Record]]:
    """Questions that spell a name, each with the entity that has it."""
    named: dict[str, list[Record]] = {}
    for record in records:
        name, part = record.metadata.get("name"), record.metadata.get("part", 1)
        if (
            isinstance(name, str)
            and record.kind in KINDS
            and part == 1
            and record.metadata["role"] == "source"
        ):
            named.setdefault(name, []).append(record)
    single = sorted(
        name
        for name, found in named.items()
        if len(found) == 1
        and 2 <= len(split_name(name)) <= 4
        and all(word.isalpha() and len(word) >= MIN_LETTERS for word in split_name(name))
    )
    chosen = random.Random(SEED).sample(single, min(NAMES_PER_PROJECT, len(single)))
    out = []
    for number, name in enumerate(chosen):
        first, *rest = split_name(name)
        out.append((" ".join([first, *(["the"] if number % 2 else []), *rest]), named[name][0]))
    return out


def score(db: sennit.Database, questions: Sequence[tuple[str, Record]], recipe: Recipe) -> list[Scores]:
    out = []
    for question, target in questions:
        hits = db.search(question, recipe=recipe, limit=10)
        paths = [hit.record.path for hit in hits[:3]]
        out.append(
            Scores(bool(hits) and hits[0].id == target.id, paths[:1] == [target.path], target.path in paths)
        )
    return out


def without_name_boost(recipe: Recipe) -> Recipe:
    stages = tuple(
        replace(stage, name_boost=0.0) if isinstance(stage, CodeRanking) else stage for stage in recipe.stages
    )
    return replace(recipe, stages=stages)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="+", default=list(DEFAULT_DATA))
    parser.add_argument(
        "--projects", type=Path, required=True, help="folder of the projects' source archives"
    )
    options = parser.parse_args(arguments)
    recipes = {"with": CODE_SEARCH, "without": without_name_boost(CODE_SEARCH)}
    print(
        "| | name_boost | questions | entity first | file first | file in three |\n|---|---|---:|---:|---:|---:|"
    )
    for data in options.data:
        found: dict[str, list[Scores]] = {name: [] for name in recipes}
        with tempfile.TemporaryDirectory(prefix="sennit-names-") as target:
            for folder, root in unpack_projects(data, options.projects, Path(target)).values():
                with sennit.open(":memory:") as db:
                    db.index(folder / root, recipe="code")
                    questions = make_questions(iter(db))
                    for name, recipe in recipes.items():
                        found[name] += score(db, questions, recipe)
        for name, scores in found.items():
            shares = (sum(values) / len(scores) for values in zip(*scores, strict=True))
            cells = [data.name, name, f"{len(scores)}", *(f"{share:.3f}" for share in shares)]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
