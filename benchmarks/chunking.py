"""How much of the answer the five best chunks contain, and how many tokens they cost.

    python -m benchmarks.chunking [--data ../shared/data]

The questions of chroma_chunking have exact spans of text as answers. The same search (recipe `default`, static model)
runs over the chunks of the page chunker and over chunks of 400 and 800 characters. The chunk sizes were chosen on the
even questions; the odd ones were held out. Each chunker also runs with small variations (other offsets, sizes that
differ by a few percent), because the position of the boundaries alone changes the recall by up to two points. The
table shows the range.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, TypedDict

import sennit
from sennit.embedding.wordpiece import WordPieceTokenizer
from sennit.ingest.pages import PageOptions, parse_page

TOP_K = 5
SHIFTS = (0, 1, 2, 3)
FACTORS = (1.0, 0.94, 0.98, 1.02, 1.06)


class Reference(TypedDict):
    start_index: int
    end_index: int


class Question(TypedDict):
    text: str
    corpus_id: str
    references: list[Reference]


class Span(NamedTuple):
    """A range of characters in a corpus, and the headings above it."""

    first: int
    last: int
    title: str = ""


class Score(NamedTuple):
    recall: float
    tokens: float
    chunks: int


Chunker = Callable[[str], list[Span]]


def fixed_size_chunker(size: int, shift: int) -> Chunker:
    """Chunks of equal length. The first is shorter, depending on `shift`."""

    def chunk(text: str) -> list[Span]:
        starts = [0, *range(size * shift // len(SHIFTS) or size, len(text), size)]
        return [Span(first, last) for first, last in zip(starts, [*starts[1:], len(text)], strict=True)]

    return chunk


def page_chunker(target: int, factor: float) -> Chunker:
    """The chunks of the page chunker."""
    size = round(target * factor)
    options = PageOptions(max_chars=2 * size, target_chars=size, min_chars=size // 2)

    def chunk(text: str) -> list[Span]:
        spans: list[Span] = []
        for part in parse_page(text, path="page.md", options=options).chunks:
            # Without the lines that the chunker repeats from the previous chunk.
            own_text = "\n".join(part.text.split("\n")[part.repeated_lines :])
            first = text.index(own_text, spans[-1].last if spans else 0)
            spans.append(Span(first, first + len(own_text), " > ".join(part.heading_path)))
        return spans

    return chunk


def measure(
    chunk: Chunker, corpora: Mapping[str, str], questions: Sequence[Question], count: Callable[[str], int]
) -> Score:
    """The mean fraction of a reference that the best chunks cover, and the mean number of their tokens."""
    spans: dict[str, tuple[str, Span]] = {}
    records = []
    for name, text in corpora.items():
        for number, span in enumerate(chunk(text)):
            key = f"{name}/{number}"
            if text[span.first : span.last].strip():
                spans[key] = (name, span)
                records.append(sennit.Record(id=key, text=text[span.first : span.last], title=span.title))
    recalls: list[float] = []
    tokens: list[int] = []
    with sennit.open(":memory:") as db:
        db.add(records)
        for question in questions:
            found = [spans[hit.id] for hit in db.search(question["text"], limit=TOP_K)]
            tokens.append(sum(count(corpora[name][span.first : span.last]) for name, span in found))
            in_corpus = [span for name, span in found if name == question["corpus_id"]]
            recalls += (covered_fraction(in_corpus, reference) for reference in question["references"])
    return Score(fmean(recalls), fmean(tokens), len(records))


def covered_fraction(spans: Sequence[Span], reference: Reference) -> float:
    first, last = reference["start_index"], reference["end_index"]
    inside = sum(max(0, min(span.last, last) - max(span.first, first)) for span in spans)
    return inside / (last - first)


def build_chunkers() -> Iterator[tuple[str, list[Chunker]]]:
    """Each chunker with its variations. The first one is the chunker itself."""
    default = PageOptions().target_chars
    for size in (400, 800):
        yield f"fixed size, {size} characters", [fixed_size_chunker(size, shift) for shift in SHIFTS]
    for target in (default // 2, default):
        name = "page chunker" if target == default else "page chunker, half the size"
        yield f"{name} (about {target} characters)", [page_chunker(target, factor) for factor in FACTORS]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    folder: Path = parser.parse_args().data / "chroma_chunking"
    corpora = {
        path.stem: path.read_text(encoding="utf-8") for path in sorted((folder / "corpora").glob("*.md"))
    }
    with (folder / "questions.jsonl").open(encoding="utf-8") as lines:
        questions: list[Question] = [json.loads(line) for line in lines]
    vocabulary = resources.files("sennit.embedding") / "data" / "sennit-static-256" / "vocabulary.txt"
    tokenizer = WordPieceTokenizer(vocabulary.read_text(encoding="utf-8").removesuffix("\n").split("\n"))

    def count(text: str) -> int:
        return len(tokenizer.encode(text, len(text)))

    subsets = {"even (tuned on)": questions[::2], "odd (held out)": questions[1::2], "all": questions}
    for name, subset in subsets.items():
        print(f"\n{name}: {len(subset)} questions")
        print(f"{'':48} {'chunks':>6} {'recall':>6} {'tokens':>6}   {'varied: recall':>16} {'tokens':>6}")
        for label, chunkers in build_chunkers():
            scores = [measure(chunk, corpora, subset, count) for chunk in chunkers]
            first = scores[0]
            mean = Score(fmean(s.recall for s in scores), fmean(s.tokens for s in scores), 0)
            low, high = min(s.recall for s in scores), max(s.recall for s in scores)
            print(
                f"{label:48} {first.chunks:6} {first.recall:6.3f} {first.tokens:6.0f}"
                f"   {mean.recall:.3f} ({low:.3f}-{high:.3f}) {mean.tokens:6.0f}"
            )


if __name__ == "__main__":
    main()
