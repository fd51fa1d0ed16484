"""Answers without a language model: how many of our questions get a right answer, and how many get none.

    python -m benchmarks.answers_offline [--starlette FOLDER] [--show]

Half of the point is to say nothing: a question that the documents do not answer is right if the answer says so. The
length is that of the answer's text; whole pages would contain every answer.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import sennit
from sennit.context.extractive_answer import NOTHING_FITS

QUESTIONS: Final = Path(__file__).parent / "answers"
SAMPLES: Final = Path(sennit.__file__).parent / "samples" / "docs"


def is_right(text: str, answer: str | None) -> bool:
    if answer is None:
        return text.startswith(NOTHING_FITS)
    return re.search(answer, text) is not None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--starlette", type=Path, help="the folder docs of starlette's source archive")
    parser.add_argument("--show", action="store_true", help="print every answer")
    options = parser.parse_args(arguments)
    print("| | right | right to say nothing | median characters |\n|---|---:|---:|---:|")
    for name, folder in (("ferry", SAMPLES), ("starlette", options.starlette)):
        if folder is None:
            continue
        questions = json.loads((QUESTIONS / f"{name}.json").read_text(encoding="utf-8"))
        right: dict[bool, list[bool]] = {True: [], False: []}
        lengths = []
        with sennit.open(":memory:") as db:
            db.index(folder, recipe="docs")
            for question in questions:
                text = db.ask(question["question"]).text
                has_answer = question["answer"] is not None
                right[has_answer].append(is_right(text, question["answer"]))
                if has_answer:
                    lengths.append(len(text))
                if options.show:
                    print(
                        f"{'right' if right[has_answer][-1] else 'WRONG'}: {question['question']}\n{text}\n"
                    )
        cells = [name, *(f"{sum(right[kind])} of {len(right[kind])}" for kind in (True, False))]
        print(f"| {' | '.join(cells)} | {sorted(lengths)[len(lengths) // 2]} |")


if __name__ == "__main__":
    main()
