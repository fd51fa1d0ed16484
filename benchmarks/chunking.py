"""How much of what a question asks for is in the five best chunks, and how many tokens these cost.

    python -m benchmarks.chunking [--data ../shared/data]

The questions of chroma_chunking have exact spans as answers. The same search (recipe `default`, static model) runs over
chunks of the page chunker and over plain pieces of 400 and 800 characters. Sizes were chosen on the even questions; the
odd ones were kept for the end. Each way of cutting is also moved a little (pieces begin elsewhere, sizes differ by a few
hundredths), because where cuts happen to fall moves the share by two points either way; the range says so.
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
from sennit.embedding.wordpiece import WordPieces
from sennit.ingest.pages import PageOptions, page_chunks

TOP = 5
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
    """Characters of a corpus, and the headings above them."""

    first: int
    last: int
    title: str = ""


class Score(NamedTuple):
    share: float
    tokens: float
    chunks: int


Cutter = Callable[[str], list[Span]]


def fixed(size: int, shift: int) -> Cutter:
    """Pieces of equal length; the first is shorter by a part of it."""

    def cut(text: str) -> list[Span]:
        starts = [0, *range(size * shift // len(SHIFTS) or size, len(text), size)]
        return [Span(first, last) for first, last in zip(starts, [*starts[1:], len(text)], strict=True)]

    return cut


def paged(target: int, factor: float) -> Cutter:
    """The page chunker's chunks."""
    size = round(target * factor)
    options = PageOptions(most=2 * size, target=size, least=size // 2)

    def cut(text: str) -> list[Span]:
        spans: list[Span] = []
        for chunk in page_chunks(text, path="page.md", options=options).chunks:
            own = "\n".join(chunk.text.split("\n")[chunk.carried :])
            first = text.index(own, spans[-1].last if spans else 0)
            spans.append(Span(first, first + len(own), " > ".join(chunk.heading_path)))
        return spans

    return cut


def measured(
    cut: Cutter, corpora: Mapping[str, str], questions: Sequence[Question], count: Callable[[str], int]
) -> Score:
    """The mean share of a reference that the best chunks cover, and the mean tokens of these."""
    spans: dict[str, tuple[str, Span]] = {}
    records = []
    for name, text in corpora.items():
        for number, span in enumerate(cut(text)):
            key = f"{name}/{number}"
            if text[span.first : span.last].strip():
                spans[key] = (name, span)
                records.append(sennit.Record(id=key, text=text[span.first : span.last], title=span.title))
    shares: list[float] = []
    tokens: list[int] = []
    with sennit.open(":memory:") as db:
        db.add(records)
        for question in questions:
            found = [spans[hit.id] for hit in db.search(question["text"], limit=TOP)]
            tokens.append(sum(count(corpora[name][span.first : span.last]) for name, span in found))
            own = [span for name, span in found if name == question["corpus_id"]]
            shares += (covered(own, reference) for reference in question["references"])
    return Score(fmean(shares), fmean(tokens), len(records))


def covered(spans: Sequence[Span], reference: Reference) -> float:
    first, last = reference["start_index"], reference["end_index"]
    inside = sum(max(0, min(span.last, last) - max(span.first, first)) for span in spans)
    return inside / (last - first)


def ways() -> Iterator[tuple[str, list[Cutter]]]:
    """Each way of cutting, with its neighbours; the first of them is the way itself."""
    default = PageOptions().target
    for size in (400, 800):
        yield f"plain, {size} characters", [fixed(size, shift) for shift in SHIFTS]
    for target in (default // 2, default):
        name = "page chunker" if target == default else "page chunker, half the size"
        yield f"{name} (about {target} characters)", [paged(target, factor) for factor in FACTORS]


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
    words = resources.files("sennit.embedding") / "data" / "sennit-static-256" / "vocabulary.txt"
    pieces = WordPieces(words.read_text(encoding="utf-8").removesuffix("\n").split("\n"))

    def count(text: str) -> int:
        return len(pieces.encode(text, len(text)))

    halves = {"even, chosen on": questions[::2], "odd, kept back": questions[1::2], "all": questions}
    for name, asked in halves.items():
        print(f"\n{name}: {len(asked)} questions")
        print(f"{'':48} {'chunks':>6} {'share':>6} {'tokens':>6}   {'moved: share':>16} {'tokens':>6}")
        for way, cutters in ways():
            scores = [measured(cut, corpora, asked, count) for cut in cutters]
            first = scores[0]
            mean = Score(fmean(s.share for s in scores), fmean(s.tokens for s in scores), 0)
            low, high = min(s.share for s in scores), max(s.share for s in scores)
            print(
                f"{way:48} {first.chunks:6} {first.share:6.3f} {first.tokens:6.0f}"
                f"   {mean.share:.3f} ({low:.3f}-{high:.3f}) {mean.tokens:6.0f}"
            )


if __name__ == "__main__":
    main()
