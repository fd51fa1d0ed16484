"""How well the recipe `default` answers questions about mixed repositories: documentation, sources and tests together.

Each file of `benchmarks/mixed` has questions that were written down before the recipe was tuned, with the files that
answer them. Half of them are for tuning, half are held out. Run it with the folders of the projects:

    python -m benchmarks.mixed_repository sennit=. click=PATH flask=PATH
    python -m benchmarks.mixed_repository own_repository=. npm_docs=PATH three_packages=PATH,PATH,PATH

Unpack the source distributions of the other projects first: `pip download --no-deps --no-binary :all: click flask`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import sennit
from sennit.ingest import Scope

QUESTIONS: Final = Path(__file__).with_name("mixed")
SHOWN: Final = 3
"""A question is answered if one of so many first results is from a right file."""

EXCLUDED: Final = ("/benchmarks/mixed/", "/benchmarks/mixed_repository.py")
"""The questions themselves, which would be the best result for each."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("projects", nargs="+", metavar="NAME=FOLDER[,FOLDER…]")
    parser.add_argument("--recipe", default=[], action="append", help="repeatable; default: `default`")
    parser.add_argument("--split", choices=["tune", "held_out"], help="only this half")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the wrong answers")
    options = parser.parse_args(arguments)
    print("| project | recipe | split | right in the first 3 | right first |\n|---|---|---|---|---|")
    for project in options.projects:
        name, _, folders = project.partition("=")
        questions = json.loads((QUESTIONS / f"{name}.json").read_text(encoding="utf-8"))["questions"]
        with tempfile.TemporaryDirectory() as scratch, sennit.open(Path(scratch) / "db") as db:
            for folder in folders.split(","):
                db.index(folder, scope=Scope(exclude=EXCLUDED))
            for recipe in options.recipe or ["default"]:
                for split in ("tune", "held_out"):
                    if options.split in (None, split):
                        chosen = [one for one in questions if one["split"] == split]
                        _report(db, name, recipe, split, chosen, verbose=options.verbose)


def _report(
    db: sennit.Database, name: str, recipe: str, split: str, questions: list[dict[str, Any]], *, verbose: bool
) -> None:
    ranks = []
    for one in questions:
        found = [_names(hit) for hit in db.search(one["question"], recipe=recipe, limit=10)]
        answers = tuple(one["answers"])
        right = [at for at, names in enumerate(found) if any(name.startswith(answers) for name in names)]
        ranks.append(right[0] if right else 10)
        if verbose and ranks[-1] >= SHOWN:
            print(f"  {one['question']!r}: wanted {one['answers'][0]}, found {found[:SHOWN]}")
    answered, first = sum(rank < SHOWN for rank in ranks), sum(rank == 0 for rank in ranks)
    print(f"| {name} | {recipe} | {split} | {answered} of {len(ranks)} | {first} of {len(ranks)} |")


def _names(hit: sennit.Hit) -> tuple[str, str]:
    """Return the path of a hit without and with the name of the indexed folder."""
    return hit.path or "", f"{hit.metadata.get('folder')}/{hit.path}"


if __name__ == "__main__":
    main()
