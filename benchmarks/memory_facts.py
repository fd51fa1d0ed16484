"""A sample of the facts that offline extraction finds in a corpus, to be judged by hand: python -m benchmarks.memory_facts DIR

DIR is a folder in the BEIR format whose documents are turns with a `speaker`, such as `../shared/data/locomo_dev`.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Final

from sennit.evaluation.datasets import read_collection
from sennit.graph.extraction import extract_stated_facts

SEED: Final = 20_260


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=100)
    options = parser.parse_args()
    documents = read_collection(options.folder).documents
    found = [(fact, record) for record in documents for fact in extract_stated_facts(record)]
    print(f"{len(found)} facts in {len(documents)} documents")
    random.Random(SEED).shuffle(found)
    for fact, record in found[: options.sample]:
        print(f"{fact.line} [{fact.metadata['confidence']}] <- {record.text[:160]}")


if __name__ == "__main__":
    main()
