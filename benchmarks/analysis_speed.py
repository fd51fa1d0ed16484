"""Speed of text analysis: passages per CPU second with a warm cache, and seconds for a megabyte of adversarial text.

    python benchmarks/analysis_speed.py [--data ../shared/data]

A passage has 100 words of a collection's texts, or of generated text if the collection is missing. The plain counter,
which lowercases, splits at non-letters and counts, is a baseline for the speed of the machine.
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

ADVERSARIAL_TEXTS = {
    "no spaces": "a" * MEGABYTE,
    "camel blob": "aB" * (MEGABYTE // 2),
    "dots": "a." * (MEGABYTE // 2),
    "thousands": "1,000" + ",000" * (MEGABYTE // 4),
    "marks": "e" + "\u0301\u0323" * (MEGABYTE // 2),
    "han": "漢字" * (MEGABYTE // 2),
    "ligatures": "\ufdfa" * (MEGABYTE // 10),
    "emoji": "👍🏽" * (MEGABYTE // 2),
}


def count_words(text: str) -> object:
    """A lower bound for the cost of counting words in Python."""
    return Counter(re.findall(r"\w+", text.lower()))


def split_passages(texts: Sequence[str]) -> list[str]:
    """All texts as one stream of words, split into passages of equal length."""
    words = " ".join(texts).split()
    starts = range(0, len(words) - WORDS_PER_PASSAGE, WORDS_PER_PASSAGE)
    return [" ".join(words[start : start + WORDS_PER_PASSAGE]) for start in starts]


def read_texts(path: Path) -> list[str]:
    """The texts of a BEIR-style collection."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def generate_text() -> list[str]:
    """English-like text with a long tail of rare words, for machines without the collections."""
    rng = random.Random(7)
    letters = "etaoinshrdlu"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(30_000)]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    return [" ".join(rng.choices(vocabulary, weights, k=500_000))]


def generate_ideographs() -> list[str]:
    """Passages of 500 ideographs in clauses of twelve. No clause occurs twice."""
    rng = random.Random(7)
    clauses = ["".join(chr(0x4E00 + rng.randrange(3000)) for _ in range(12)) for _ in range(8400)]
    return ["，".join(clauses[at : at + 42]) for at in range(0, len(clauses), 42)]


def texts_per_second(work: Callable[[str], object], texts: Sequence[str]) -> float:
    """Texts per CPU second: the median of several rounds, after one round that warms the cache."""
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

    samples = {"generated": split_passages(generate_text())}
    for name in ("scifact_train", "2wiki_dev"):
        corpus = data / name / "corpus.jsonl"
        if corpus.exists():
            samples[name] = split_passages(read_texts(corpus))[:5000]
    samples["2wiki_dev ascii"] = [text for text in samples.get("2wiki_dev", []) if text.isascii()]
    samples["500 ideographs"] = generate_ideographs()
    samples["code"] = split_passages([CODE] * 2000)

    functions = {
        "count_terms": analysis.count_terms,
        "words": analysis.content_terms,
        "plain counter": count_words,
    }
    print(f"{'passages':28} {'number':>7}", *(f"{name + '/s':>16}" for name in functions))
    for name, texts in samples.items():
        if texts:
            print(
                f"{name:28} {len(texts):7}",
                *(f"{texts_per_second(work, texts):16,.0f}" for work in functions.values()),
            )

    print(f"\n{'adversarial text':28} {'seconds':>7}")
    for name, text in ADVERSARIAL_TEXTS.items():
        start = time.process_time()
        analysis.count_terms(text)
        print(f"{name:28} {time.process_time() - start:7.2f}")


if __name__ == "__main__":
    main()
