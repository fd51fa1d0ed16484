# ruff: noqa: A005 - imported as benchmarks.code
"""Code search compared with semble, on the same projects and questions.

    python -m benchmarks.code --projects projects [--data ../shared/data/code_semble] [--rounds 5]
    python -m benchmarks.code --projects projects --folds

Both systems get each question before the next one, in random order, so that other load on the machine affects both
alike. Each repetition adds a space to the question, because sennit caches the vectors of queries. Both index the same
folders. semble's own model is downloaded from a hub; here it uses sennit's embedding table, so its nDCG differs from the
published one. Its time is that of `SembleIndex.search`, which also writes a line of statistics.

`--folds` checks whether sennit's constants are overfitted to these projects: it chooses them again on two thirds of the
projects, one constant after the other, and measures on the rest.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import resources, util
from pathlib import Path
from typing import Any, Final

import numpy as np

import sennit
from benchmarks.cross_validation import print_folds
from sennit.evaluation.code import (
    indexed_root,
    match_targets,
    project_files,
    read_code_collections,
    read_manifest,
)
from sennit.evaluation.datasets import Collection
from sennit.evaluation.metrics import compute_metrics, mean_metrics

LIMIT: Final = 10
SEED: Final = 20_260
CATEGORIES: Final = ("architecture", "semantic", "symbol")

Search = Callable[[str], list[str]]
"""Maps a query to the paths of the results, best first."""


@dataclass
class SystemRun:
    """One system, and what was measured of it."""

    name: str
    searches: dict[str, Search] = field(default_factory=dict)
    """By project."""
    index_seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    cpu_milliseconds: list[float] = field(default_factory=list)
    """CPU time of all cores, which other load on the machine affects less."""
    rankings: dict[str, list[str]] = field(default_factory=dict)


def unpack_projects(data: Path, projects: Path, target: Path) -> dict[str, tuple[Path, str]]:
    """Unpack the projects. Returns the folder of each project, and the part of it that is indexed."""
    out = {}
    for name, manifest in read_manifest(data).items():
        for path, content in project_files(name, manifest, projects):
            file = target / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        out[name] = (target / name, indexed_root(manifest))
    return out


def sennit_search(db: sennit.Database) -> Search:
    return lambda question: [hit.record.path or "" for hit in db.search(question, recipe="code", limit=LIMIT)]


def index_with_sennit(folders: dict[str, tuple[Path, str]], target: Path, stack: ExitStack) -> SystemRun:
    """Index as `sennit index --recipe code` does, including vectors and merged segments."""
    system = SystemRun("sennit")
    for name, (folder, root) in folders.items():
        started = time.perf_counter()
        db = stack.enter_context(sennit.open(target / name))
        db.index(folder / root, recipe="code")
        db.admin.optimise()
        system.index_seconds += time.perf_counter() - started
        system.searches[name] = sennit_search(db)
    return system


def index_with_semble(folders: dict[str, tuple[Path, str]], model: Path) -> SystemRun:
    """Index in memory."""
    from semble import SembleIndex

    system = SystemRun("semble")
    for name, (folder, root) in folders.items():
        started = time.perf_counter()
        index = SembleIndex.from_path(folder / root, model_path=str(model))
        system.index_seconds += time.perf_counter() - started
        system.searches[name] = semble_search(index, root)
    return system


def semble_search(index: Any, root: str) -> Search:
    prefix = f"{root}/" if root else ""
    return lambda question: [
        f"{prefix}{result.chunk.file_path}" for result in index.search(question, top_k=LIMIT)
    ]


def write_model(folder: Path) -> None:
    """Write sennit's static model in the format that semble reads."""
    from model2vec import StaticModel
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    source = resources.files("sennit.embedding") / "data" / "sennit-static-256"
    with resources.as_file(source) as files:
        table = np.load(files / "table.npy") * np.load(files / "scale.npy").astype(np.float32)[:, None]
        words = (files / "vocabulary.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    tokenizer = Tokenizer(models.WordPiece({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    StaticModel(table.astype(np.float32), tokenizer, normalize=True).save_pretrained(folder)


def run_queries(systems: Sequence[SystemRun], collections: Sequence[Collection], rounds: int) -> None:
    """Run every query on every system. The first round gives the rankings and is not timed."""
    rng = random.Random(SEED)
    queries = [(collection, query) for collection in collections for query in collection.queries]
    for turn in range(rounds + 1):
        for collection, query in queries:
            for system in rng.sample(systems, len(systems)):
                text = query.text + " " * turn
                started, cpu = time.perf_counter(), time.process_time()
                paths = system.searches[collection.name](text)
                cpu, ended = time.process_time() - cpu, time.perf_counter()
                if turn:
                    system.milliseconds.append((ended - started) * 1000)
                    system.cpu_milliseconds.append(cpu * 1000)
                else:
                    system.rankings[query.id] = match_targets(collection.judgements[query.id], paths)


def format_row(system: SystemRun, collections: Sequence[Collection]) -> str:
    """A row of the Markdown table."""
    judgements = {
        query: targets for collection in collections for query, targets in collection.judgements.items()
    }
    categories = {
        query.id: query.metadata["category"] for collection in collections for query in collection.queries
    }
    metrics = compute_metrics(judgements, system.rankings)

    def format_ndcg(category: str | None) -> str:
        selected = [values for query, values in metrics.items() if category in (None, categories[query])]
        return f"{mean_metrics(selected)['nDCG@10']:.4f}"

    cells = [
        system.name,
        *(f"{value:.2f}" for value in np.percentile(system.milliseconds, (50, 99))),
        f"{np.median(system.cpu_milliseconds):.2f}",
        f"{system.index_seconds:.1f}",
        *map(format_ndcg, (None, *CATEGORIES)),
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shared = Path(__file__).parents[2] / "shared" / "data" / "code_semble"
    parser.add_argument("--data", type=Path, default=shared)
    parser.add_argument(
        "--projects", type=Path, required=True, help="folder of the projects' source archives"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each query is timed")
    parser.add_argument("--folds", action="store_true", help="cross-validate the constants")
    options = parser.parse_args(arguments)
    collections = read_code_collections(options.data, options.projects)
    if options.folds:
        print_folds(collections)
        return
    with tempfile.TemporaryDirectory(prefix="sennit-code-") as name, ExitStack() as stack:
        target = Path(name)
        # Do not touch the user's own cache.
        os.environ["SEMBLE_CACHE_LOCATION"] = str(target / "cache")
        folders = unpack_projects(options.data, options.projects, target / "projects")
        systems = [index_with_sennit(folders, target / "sennit", stack)]
        if util.find_spec("semble") is None:
            print("semble is not installed (pip install semble); measuring sennit only.", file=sys.stderr)
        else:
            write_model(target / "model")
            systems.append(index_with_semble(folders, target / "model"))
        run_queries(systems, collections, options.rounds)
        headers = ["", "p50, ms", "p99, ms", "CPU p50, ms", "index, s", "nDCG@10", *CATEGORIES]
        print(f"| {' | '.join(headers)} |\n|---|{'---:|' * (len(headers) - 1)}")
        for system in systems:
            print(format_row(system, collections))


if __name__ == "__main__":
    main()
