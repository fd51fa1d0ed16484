"""Hydration plans beside plain search: how often the file that answers a question is in the prompt.

    python -m benchmarks.plans --projects projects [--data DIR ...] [--budgets 2000 4000] [--entities N] [--misses]

For every question and budget, a plan is made with the default settings. Beside it stands the plain way: the results of
`sennit search --recipe code` in their order until the next one does not fit. Both count tokens with the same tokenizer
and the same headings. A question counts if a file of its answer is among the entities. `--misses` prints each question
that one way answers and the other does not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import sennit
from benchmarks.code import unpack_projects
from sennit.evaluation.code import read_code_collections, same_file
from sennit.hydration.code_block import render_block
from sennit.hydration.planner import SEAM_TOKENS
from sennit.hydration.tokenizer import load_tokenizer
from sennit.records import Record

ROOT: Final = Path(__file__).parents[1]
DEFAULT_DATA: Final = (
    ROOT.parent / "shared" / "data" / "code_semble",
    ROOT / "benchmarks" / "languages",
    ROOT / "benchmarks" / "languages" / "held_out",
)
BUDGETS: Final = (2000, 4000)
MAX_RESULTS: Final = 50
"""Results of the plain way; as many candidates as each source of the recipe returns by default."""


def count_tokens(record: Record) -> int:
    """The tokens of a record in a prompt, as a plan counts them."""
    qualified, language = (str(record.metadata.get(name) or "") for name in ("qualified", "language"))
    block = render_block(record.path or "", record.lines, qualified, language, record.text)
    return load_tokenizer().count(block) + SEAM_TOKENS


def plain_paths(db: sennit.Database, query: str, max_tokens: int, max_entities: int | None) -> list[str]:
    """The files of the first results that fit together into the budget."""
    paths, used = [], 0
    for hit in db.search(query, recipe="code", limit=max_entities or MAX_RESULTS):
        used += count_tokens(hit.record)
        if used > max_tokens:
            break
        paths.append(hit.record.path or "")
    return paths


def plan_paths(db: sennit.Database, query: str, max_tokens: int, max_entities: int | None) -> list[str]:
    """The files of the entities of a plan."""
    plan = db.plan(query, max_tokens=max_tokens, max_entities=max_entities)
    return [entry.path for entry in plan.entries]


WAYS: Final = {"plan": plan_paths, "plain": plain_paths}


def has_target(paths: Iterable[str], targets: Iterable[str]) -> bool:
    wanted = list(targets)
    return any(same_file(path, target) for path in paths for target in wanted)


def measure(
    data: Path,
    projects: Path,
    budgets: Sequence[int],
    target: Path,
    *,
    max_entities: int | None,
    misses: bool,
) -> tuple[int, dict[str, float]]:
    """The number of questions, and the share of them that each way answers within each budget."""
    found: dict[str, int] = {f"{way}, {budget}": 0 for budget in budgets for way in WAYS}
    questions = 0
    folders = unpack_projects(data, projects, target / "projects")
    for collection in read_code_collections(data, projects):
        folder, root = folders[collection.name]
        with sennit.open(target / "databases" / collection.name) as db:
            db.index(folder / root, recipe="code")
            for query in collection.queries:
                questions += 1
                for budget in budgets:
                    hits = {
                        way: has_target(
                            paths(db, query.text, budget, max_entities), collection.judgements[query.id]
                        )
                        for way, paths in WAYS.items()
                    }
                    for way, hit in hits.items():
                        found[f"{way}, {budget}"] += hit
                    if misses and len(set(hits.values())) > 1:
                        better = next(way for way, hit in hits.items() if hit)
                        print(f"only {better}, {budget}: {collection.name}: {query.text}", file=sys.stderr)
    return questions, {name: count / questions for name, count in found.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="+", default=list(DEFAULT_DATA))
    parser.add_argument(
        "--projects", type=Path, required=True, help="folder of the projects' source archives"
    )
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS))
    parser.add_argument("--entities", type=int, help="the most candidates and results; default: 10 and 50")
    parser.add_argument("--cache", type=Path, help="folder that keeps the databases for the next run")
    parser.add_argument(
        "--misses", action="store_true", help="print the questions that one way answers alone"
    )
    options = parser.parse_args(arguments)
    headers = ["", "questions", *(f"{way}, {budget}" for budget in options.budgets for way in WAYS)]
    print(f"| {' | '.join(headers)} |\n|---|{'---:|' * (len(headers) - 1)}")
    for data in options.data:
        with tempfile.TemporaryDirectory(prefix="sennit-plans-") as name:
            target = Path(name) if options.cache is None else options.cache / data.name
            questions, shares = measure(
                data,
                options.projects,
                options.budgets,
                target,
                max_entities=options.entities,
                misses=options.misses,
            )
        cells = [data.name, f"{questions}", *(f"{share:.3f}" for share in shares.values())]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
