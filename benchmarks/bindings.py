"""Answers on every binding beside those of the embedded indexes, for the same questions.

    python -m benchmarks.bindings ../shared/data/scifact_train [--questions 500] [--binding qdrant …] [--markdown]

For each binding of a server, the questions of a collection in BEIR's format are asked by keyword, by vector and fused: how
many of the embedded database's ten are found, how alike their order is (Kendall's tau), and for how many questions both
answers are the same. The last column says by which promise of the binding (docs/backends.md) they may differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import sennit
from benchmarks.server_frame import BINDINGS, Binding, compare, fill, open_database, serve

RECIPES: Final = ("keyword", "vector", "rrf")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the bindings and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path, help="a folder with corpus.jsonl and queries.jsonl")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--binding", action="append", choices=[*BINDINGS], help="default: all")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/backends.md")
    options = parser.parse_args(arguments)
    records, queries = read_collection(options.data)
    rows = measure(records, queries[: options.questions], options.binding or list(BINDINGS))
    print(as_table(rows) if options.markdown else json.dumps(rows, indent=2))
    return 0


def read_collection(folder: Path) -> tuple[list[sennit.Record], list[str]]:
    """The records and the questions of a collection."""
    records = [
        sennit.Record(id=one["_id"], title=one.get("title") or "", text=one["text"])
        for one in _lines(folder / "corpus.jsonl")
    ]
    return records, [one["text"] for one in _lines(folder / "queries.jsonl")]


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def measure(
    records: Sequence[sennit.Record], queries: Sequence[str], names: Sequence[str]
) -> list[dict[str, Any]]:
    """One row for each binding and way to search that its server has a part in."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, open_database(Path(folder) / "embedded") as embedded:
        fill(embedded, records)
        for name in names:
            binding = BINDINGS[name]
            with serve(binding) as served, open_database(Path(folder) / name, served.settings) as db:
                fill(db, records)
                for recipe in RECIPES:
                    if recipe in ("keyword", "vector") and recipe not in binding.roles:
                        continue
                    row = {"binding": name, "recipe": recipe, "questions": len(queries)}
                    row |= asdict(compare(db, embedded, queries, recipe))
                    rows.append({**row, "differs_by": difference(binding, recipe, db)})
                    print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def difference(binding: Binding, recipe: str, db: sennit.Database) -> str:
    """The promises of a binding by which its answers may differ from those of the embedded indexes."""
    reasons = []
    if recipe != "vector" and "keyword" in binding.roles:
        promise = db.backend.keyword.capabilities
        if promise.scores == "own":
            reasons.append(f"words: scores of its own, statistics {promise.statistics}")
    if recipe != "keyword" and "vector" in binding.roles:
        reasons.append("vectors: approximate neighbours, exact cosines")
    return "; ".join(reasons)


def as_table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a table of Markdown."""
    lines = [
        "| binding | search | the same ten | order | identical | differs by |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['binding']} | {row['recipe']} | {row['recall']:.3f} | {row['correlation']:.3f} | {row['same']:.3f} "
        f"| {row['differs_by']} |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
