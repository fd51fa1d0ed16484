"""How fast `sennit.analysis` counts terms: passages a CPU-second, warm, and a megabyte of hostile text.

    python benchmarks/analysis_speed.py [--data ../shared/data]

Passages are 100 words cut from a collection's texts (or made up when the collection is not there). The plain
counter beside it, which lowers, splits at non-letters and counts, says what the machine was worth at the time.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from sennit import analysis

WORDS_PER_PASSAGE = 100
ROUNDS = 5
MEGABYTE = 1_000_000

CODE = "def getUserName(self, user_id: int) -> str: return self.repo.find_by_id(user_id).displayName or HTTPError"

HOSTILE = {
    "no spaces": "a" * MEGABYTE,
    "camel blob": "aB" * (MEGABYTE // 2),
    "dots": "a." * (MEGABYTE // 2),
    "thousands": "1,000" + ",000" * (MEGABYTE // 4),
    "marks": "e" + "\u0301\u0323" * (MEGABYTE // 2),
    "han": "漢字" * (MEGABYTE // 2),
    "ligatures": "\ufdfa" * (MEGABYTE // 10),
    "emoji": "👍🏽" * (MEGABYTE // 2),
}


def plain(text: str) -> object:
    """The least that counting words can cost in Python."""
    return Counter(re.findall(r"\w+", text.lower()))


def passages(texts: Sequence[str]) -> list[str]:
    """All the texts as one stream of words, cut into passages of equal length."""
    stream = " ".join(texts).split()
    cuts = range(0, len(stream) - WORDS_PER_PASSAGE, WORDS_PER_PASSAGE)
    return [" ".join(stream[at : at + WORDS_PER_PASSAGE]) for at in cuts]


def collection(path: Path) -> list[str]:
    """The texts of a BEIR-style collection."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def invented() -> list[str]:
    """English-like text with a long tail of rare words, for machines without the collections."""
    chance = random.Random(7)
    letters = "etaoinshrdlu"
    vocabulary = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(30_000)]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    return [" ".join(chance.choices(vocabulary, weights, k=500_000))]


def unspaced() -> list[str]:
    """Passages of 500 ideographs in clauses of twelve, of which none comes twice."""
    chance = random.Random(7)
    clauses = ["".join(chr(0x4E00 + chance.randrange(3000)) for _ in range(12)) for _ in range(8400)]
    return ["，".join(clauses[at : at + 42]) for at in range(0, len(clauses), 42)]


def rate(work: Callable[[str], object], texts: Sequence[str]) -> float:
    """Texts a CPU-second: the median of several rounds after one that warms the memo."""
    seconds = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        for text in texts:
            work(text)
        seconds.append(time.process_time() - start)
    return len(texts) / statistics.median(seconds[1:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    data: Path = parser.parse_args().data

    samples = {"invented": passages(invented())}
    for name in ("scifact_train", "2wiki_dev"):
        corpus = data / name / "corpus.jsonl"
        if corpus.exists():
            samples[name] = passages(collection(corpus))[:5000]
    samples["2wiki_dev ascii"] = [text for text in samples.get("2wiki_dev", []) if text.isascii()]
    samples["500 ideographs"] = unspaced()
    samples["code"] = passages([CODE] * 2000)

    ways = {"count_terms": analysis.count_terms, "words": analysis.words, "plain counter": plain}
    print(f"{'passages':28} {'number':>7}", *(f"{way + '/s':>16}" for way in ways))
    for name, texts in samples.items():
        if texts:
            print(f"{name:28} {len(texts):7}", *(f"{rate(work, texts):16,.0f}" for work in ways.values()))

    print(f"\n{'hostile text':28} {'seconds':>7}")
    for name, text in HOSTILE.items():
        start = time.process_time()
        analysis.count_terms(text)
        print(f"{name:28} {time.process_time() - start:7.2f}")


if __name__ == "__main__":
    main()
