# ruff: noqa: A005 - it is benchmarks.code, beside the other benchmarks
"""Code search beside semble, on the same projects and questions.

    python -m benchmarks.code --projects projects [--data ../shared/data/code_semble] [--rounds 5]
    python -m benchmarks.code --projects projects --folds

Each question goes to both before the next one, in an order that changes, so that whatever else the machine does hits
both alike; and as a text that neither has seen (spaces are added), because sennit remembers the vectors of questions.
Both index the same folders. semble's own model comes from a hub; here it has sennit's table, so its nDCG is not the one
it publishes. Its time is that of `SembleIndex.search`, which also writes a line of statistics.

`--folds` asks whether sennit's constants are fitted to these projects: they are chosen anew on two thirds of the projects,
one constant after the other, and measured on the rest.
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
from benchmarks.code_folds import print_folds
from sennit.evaluation.code import project_files, read_code, read_manifest, root_of, targets_met
from sennit.evaluation.datasets import Collection
from sennit.evaluation.metrics import figures_of, mean

LIMIT: Final = 10
SEED: Final = 20_260
CATEGORIES: Final = ("architecture", "semantic", "symbol")

Search = Callable[[str], list[str]]
"""From a question to the paths of the results, best first."""


@dataclass
class System:
    """One of those that are measured."""

    name: str
    searches: dict[str, Search] = field(default_factory=dict)
    """By project."""
    index_seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """Milliseconds of all cores, which other work on the machine disturbs less."""
    found: dict[str, list[str]] = field(default_factory=dict)


def unpacked(data: Path, projects: Path, target: Path) -> dict[str, tuple[Path, str]]:
    """The folder of each project, and the part of it that is indexed."""
    out = {}
    for name, about in read_manifest(data).items():
        for path, content in project_files(name, about, projects):
            file = target / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        out[name] = (target / name, root_of(about))
    return out


def sennit_search(db: sennit.Database) -> Search:
    return lambda question: [hit.record.path or "" for hit in db.search(question, recipe="code", limit=LIMIT)]


def with_sennit(folders: dict[str, tuple[Path, str]], target: Path, held: ExitStack) -> System:
    """Indexed as `sennit index --recipe code` does, vectors and folded indexes included."""
    system = System("sennit")
    for name, (folder, root) in folders.items():
        began = time.perf_counter()
        db = held.enter_context(sennit.open(target / name))
        db.index(folder / root, recipe="code")
        db.optimise()
        system.index_seconds += time.perf_counter() - began
        system.searches[name] = sennit_search(db)
    return system


def with_semble(folders: dict[str, tuple[Path, str]], model: Path) -> System:
    """Indexed in memory."""
    from semble import SembleIndex

    system = System("semble")
    for name, (folder, root) in folders.items():
        began = time.perf_counter()
        index = SembleIndex.from_path(folder / root, model_path=str(model))
        system.index_seconds += time.perf_counter() - began
        system.searches[name] = semble_search(index, root)
    return system


def semble_search(index: Any, root: str) -> Search:
    prefix = f"{root}/" if root else ""
    return lambda question: [
        f"{prefix}{result.chunk.file_path}" for result in index.search(question, top_k=LIMIT)
    ]


def write_model(folder: Path) -> None:
    """sennit's static model in the form that semble reads."""
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


def ask(systems: Sequence[System], collections: Sequence[Collection], rounds: int) -> None:
    """Every question to every system in turn; the first round is not timed."""
    chance = random.Random(SEED)
    asked = [(one, query) for one in collections for query in one.queries]
    for turn in range(rounds + 1):
        for collection, query in asked:
            for system in chance.sample(systems, len(systems)):
                question = query.text + " " * turn
                began, used = time.perf_counter(), time.process_time()
                paths = system.searches[collection.name](question)
                used, ended = time.process_time() - used, time.perf_counter()
                if turn:
                    system.milliseconds.append((ended - began) * 1000)
                    system.processor.append(used * 1000)
                else:
                    system.found[query.id] = targets_met(collection.judgements[query.id], paths)


def row(system: System, collections: Sequence[Collection]) -> str:
    """Of the table."""
    judged = {query: targets for one in collections for query, targets in one.judgements.items()}
    kinds = {query.id: query.metadata["category"] for one in collections for query in one.queries}
    figures = figures_of(judged, system.found)

    def quality(kind: str | None) -> str:
        of_kind = [own for query, own in figures.items() if kind in (None, kinds[query])]
        return f"{mean(of_kind)['nDCG@10']:.4f}"

    cells = [
        system.name,
        *(f"{value:.2f}" for value in np.percentile(system.milliseconds, (50, 99))),
        f"{np.median(system.processor):.2f}",
        f"{system.index_seconds:.1f}",
        *map(quality, (None, *CATEGORIES)),
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
    parser.add_argument("--rounds", type=int, default=5, help="how often each question is asked and timed")
    parser.add_argument(
        "--folds", action="store_true", help="choose the constants on some, measure on others"
    )
    options = parser.parse_args(arguments)
    collections = read_code(options.data, options.projects)
    if options.folds:
        print_folds(collections)
        return
    with tempfile.TemporaryDirectory(prefix="sennit-code-") as name, ExitStack() as held:
        target = Path(name)
        # Nothing is read from, or left in, the user's own cache.
        os.environ["SEMBLE_CACHE_LOCATION"] = str(target / "cache")
        folders = unpacked(options.data, options.projects, target / "projects")
        systems = [with_sennit(folders, target / "sennit", held)]
        if util.find_spec("semble") is None:
            print("semble is not installed (pip install semble): sennit alone.", file=sys.stderr)
        else:
            write_model(target / "model")
            systems.append(with_semble(folders, target / "model"))
        ask(systems, collections, options.rounds)
        heads = ["", "p50, ms", "p99, ms", "CPU p50, ms", "index, s", "nDCG@10", *CATEGORIES]
        print(f"| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
        for system in systems:
            print(row(system, collections))


if __name__ == "__main__":
    main()
