"""Feedback in the formats of other tools: UBI JSON, TREC run and qrels, BEIR folders, and SVMlight.

In formats whose fields are separated by blanks, a blank or a percent sign within an id is percent-encoded, so that every
id is read back as it was. A BEIR folder separates fields by tabs, so there only a tab, a line break, a blank at an end,
and what looks like a percent-encoding are.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from sennit.errors import InvalidInput
from sennit.evaluation.datasets import (
    CORPUS_FILE,
    JUDGEMENT_FILES,
    QUERIES_FILE,
    read_judgements,
    read_queries,
)
from sennit.feedback import MAX_GRADE, FeedbackEvent, LoggedQuery, ShownHit
from sennit.ranking.features import FEATURE_NAMES, FEATURES_VERSION
from sennit.records import Json, Record
from sennit.repositories.feedback import QueryFeedback
from sennit.search_parameters import MAX_SHOWN

QRELS_HEADER: Final = "query-id\tcorpus-id\tscore\n"

_UNSAFE: Final = re.compile(r"[\s%\x00-\x1f\x7f\ufeff]")
_UNSAFE_IN_CELL: Final = re.compile(r"[\t\r\n]|\A\s+|\s+\Z|%(?=[0-9A-Fa-f]{2})")
_HEADER: Final = re.compile(r"# sennit features (\d{1,9}): (.+)")
_FEATURE: Final = re.compile(r"(\d{1,9}):(\S+)")


class Judged(NamedTuple):
    """Queries with the events about them, as they were read from a file."""

    queries: list[LoggedQuery]
    events: list[FeedbackEvent]


class RankedRow(NamedTuple):
    """A line of SVMlight: a grade, the number of its query, and the features of one result."""

    grade: float
    query: str
    features: dict[int, float]
    """By number, from 1; what is missing has no entry."""
    comment: str = ""


def grades(found: QueryFeedback) -> dict[str, int]:
    """Return the grade of each result with feedback: the last one given, else 1 if it helped and 0 if it did not."""
    out: dict[str, int] = {}
    judged: set[str] = set()
    for event in found.events:
        name = event.object_id
        if event.grade is not None:
            out[name] = event.grade
            judged.add(name)
        elif name and name not in judged:
            if event.is_positive:
                out[name] = 1
            elif event.action_name == "reject":
                out.setdefault(name, 0)
    return out


# UBI JSON


def to_ubi(feedback: Iterable[QueryFeedback]) -> dict[str, Json]:
    """Return the queries and events as UBI has them."""
    found = list(feedback)
    return {
        "queries": [one.query.to_ubi() for one in found],
        "events": [event.to_ubi() for one in found for event in one.events],
    }


def from_ubi(text: str) -> Judged:
    """Read what `to_ubi` returned, or the queries and events of another program in the same form."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The file is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise InvalidInput("The file must be an object with queries and events")
    return Judged(
        [LoggedQuery.from_ubi(one, f"queries[{at}]") for at, one in _objects(values, "queries")],
        [FeedbackEvent.from_ubi(one, f"events[{at}]") for at, one in _objects(values, "events")],
    )


def _objects(values: Mapping[str, Any], name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    items = values.get(name, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidInput(f"{name} must be a list of objects")
    yield from enumerate(items)


# TREC


def to_run(feedback: Iterable[QueryFeedback]) -> Iterator[str]:
    """Yield the lines of a TREC run: what was shown. The scores fall with the rank, as trec_eval sorts by them."""
    for one in feedback:
        query = one.query
        tag = encode_token(query.recipe) or "sennit"
        for rank, hit in enumerate(query.shown, 1):
            score = len(query.shown) - rank + 1
            yield f"{encode_token(query.query_id)} Q0 {encode_token(hit.object_id)} {rank} {score} {tag}\n"


def from_run(lines: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids of each query of a TREC run, best first."""
    found: dict[str, list[tuple[float, str]]] = {}
    for number, cells in _cells(lines, 6):
        found.setdefault(cells[0], []).append((-_number(cells[4], number), cells[2]))
    return {
        query: [name for _, name in sorted(shown, key=lambda pair: pair[0])] for query, shown in found.items()
    }


def to_qrels(feedback: Iterable[QueryFeedback]) -> Iterator[str]:
    """Yield the lines of TREC qrels."""
    for one in feedback:
        for name, grade in grades(one).items():
            yield f"{encode_token(one.query.query_id)} 0 {encode_token(name)} {grade}\n"


def from_qrels(lines: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return the grade of each judged record of each query."""
    out: dict[str, dict[str, int]] = {}
    for number, cells in _cells(lines, 4):
        out.setdefault(cells[0], {})[cells[2]] = int(_number(cells[3], number))
    return out


def encode_token(text: str) -> str:
    """Return a text as one word: without blanks and control characters."""
    return _UNSAFE.sub(lambda found: quote(found.group(), safe=""), text)


def encode_cell(text: str) -> str:
    """Return an id as a cell of a table whose columns are separated by tabs; nearly always the id itself."""
    return _UNSAFE_IN_CELL.sub(lambda found: quote(found.group(), safe=""), text)


def decode_token(text: str) -> str:
    """Return the text that `encode_token` or `encode_cell` was given."""
    return unquote(text, errors="strict") if "%" in text else text


def _cells(lines: Iterable[str], count: int) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        cells = line.split()
        if not cells:
            continue
        if len(cells) != count:
            raise InvalidInput(f"Line {number}: needs {count} words, and has {len(cells)}")
        try:
            yield number, [decode_token(cell) for cell in cells]
        except UnicodeDecodeError as error:
            raise InvalidInput(f"Line {number}: {error.reason} in a percent-encoded id") from error


def _number(text: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"Line {line}: {text[:40]!r} is not a number")
    return value


# BEIR


def write_beir(folder: Path, feedback: Iterable[QueryFeedback], records: Iterable[Record]) -> int:
    """Write a folder that `sennit eval` reads: the queries with a relevant record, their grades, and the records.

    Returns the number of queries.
    """
    found = [(one.query, grades(one)) for one in feedback]
    kept = [(query, graded) for query, graded in found if any(grade > 0 for grade in graded.values())]
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(
        folder / QUERIES_FILE,
        ({"_id": encode_cell(query.query_id), "text": query.query} for query, _ in kept),
    )
    write_corpus(folder / CORPUS_FILE, records)
    write_judgements(folder / JUDGEMENT_FILES[0], {query.query_id: graded for query, graded in kept})
    return len(kept)


def write_corpus(file: Path, records: Iterable[Record]) -> None:
    """Write records as the corpus of BEIR."""
    _write_lines(
        file, ({"_id": encode_cell(one.id), "title": one.title, "text": one.text} for one in records)
    )


def write_judgements(file: Path, judgements: Mapping[str, Mapping[str, int]]) -> None:
    """Write grades as the qrels of BEIR. The file is replaced as a whole."""
    lines = [
        f"{encode_cell(query)}\t{encode_cell(name)}\t{grade}\n"
        for query, graded in judgements.items()
        for name, grade in graded.items()
    ]
    partial = file.with_name(f"{file.name}.partial")
    partial.write_text("".join([QRELS_HEADER, *lines]), encoding="utf-8")
    partial.replace(file)


def read_beir_feedback(folder: Path) -> Judged:
    """Read the queries and grades of a BEIR folder as feedback."""
    files = [folder / name for name in JUDGEMENT_FILES if (folder / name).is_file()]
    judgements = read_judgements(files[0]) if files else {}
    texts = {query.id: query.text for query in read_queries(folder / QUERIES_FILE).values()}
    decoded = {
        decode_token(query): {decode_token(name): grade for name, grade in graded.items()}
        for query, graded in judgements.items()
    }
    return judged_queries({decode_token(name): text for name, text in texts.items()}, {}, decoded)


def judged_queries(
    texts: Mapping[str, str],
    shown: Mapping[str, Iterable[str]],
    judgements: Mapping[str, Mapping[str, int]],
) -> Judged:
    """Return queries with what was shown and how it was graded. Grades beyond 0 to 3 become the nearest."""
    unknown = next((name for name in (*shown, *judgements) if name not in texts), None)
    if unknown is not None:
        raise InvalidInput(f"There is no query {unknown!r} in {QUERIES_FILE}")
    queries = [
        LoggedQuery(
            query_id=name,
            query=text,
            shown=tuple(map(ShownHit, dict.fromkeys(shown.get(name, ()))))[:MAX_SHOWN],
        )
        for name, text in texts.items()
    ]
    events = [
        FeedbackEvent(
            query_id=query.query_id,
            action_name="judge",
            object_id=object_id,
            position=query.position_of(object_id),
            grade=min(max(grade, 0), MAX_GRADE),
        )
        for query in queries
        for object_id, grade in judgements.get(query.query_id, {}).items()
    ]
    return Judged(queries, events)


def _write_lines(file: Path, values: Iterable[Mapping[str, Json]]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        for value in values:
            stream.write(json.dumps(value, ensure_ascii=False) + "\n")


# SVMlight


def to_svmlight(feedback: Iterable[QueryFeedback]) -> Iterator[str]:
    """Yield the lines of SVMlight: each shown result with its grade (0 without feedback) and its features.

    A query whose features were not recorded, or in another version, is left out.
    """
    yield f"# sennit features {FEATURES_VERSION}: {' '.join(FEATURE_NAMES)}\n"
    usable = (one for one in feedback if one.query.features_version == FEATURES_VERSION)
    for number, one in enumerate(usable, 1):
        graded = grades(one)
        for hit in one.query.shown:
            features = " ".join(
                f"{at}:{value!r}" for at, value in enumerate(hit.features, 1) if not math.isnan(value)
            )
            comment = f"{encode_token(one.query.query_id)} {encode_token(hit.object_id)}"
            yield f"{graded.get(hit.object_id, 0)} qid:{number} {features} # {comment}\n"


def from_svmlight(lines: Iterable[str]) -> Iterator[RankedRow]:
    """Yield the rows of SVMlight, as the public collections for learning to rank have it."""
    for number, line in enumerate(lines, 1):
        values, _, comment = line.partition("#")
        cells = values.split()
        if not cells:
            continue
        if len(cells) < 2 or not cells[1].startswith("qid:") or len(cells[1]) == 4:
            raise InvalidInput(f"Line {number}: needs a grade and qid:N before the features")
        features = {}
        for cell in cells[2:]:
            matched = _FEATURE.fullmatch(cell)
            if matched is None or int(matched[1]) < 1:
                raise InvalidInput(f"Line {number}: {cell[:40]!r} is no feature of the form 1:0.5")
            features[int(matched[1])] = _number(matched[2], number)
        yield RankedRow(_number(cells[0], number), cells[1][4:], features, comment.strip())


def judged_from_svmlight(lines: Sequence[str], texts: Mapping[str, str]) -> Judged:
    """Read what `to_svmlight` returned as feedback: what was shown, with its features, and each grade above 0.

    A grade of 0 stands for no feedback too, so it becomes none.
    """
    header = _HEADER.match(lines[0]) if lines else None
    if header is None:
        raise InvalidInput(
            "The first line must name the features and their version, as sennit exports them. A file of another "
            "program names no queries and records, so it is no feedback"
        )
    width = len(header[2].split())
    shown: dict[str, dict[str, tuple[float, ...]]] = {}
    judgements: dict[str, dict[str, int]] = {}
    for row in from_svmlight(lines[1:]):
        words = [decode_token(word) for word in row.comment.split()]
        if len(words) != 2 or max(row.features, default=0) > width:
            raise InvalidInput(
                f"A line of query {row.query} needs the ids of its query and record after '#', and at most {width} features"
            )
        query, name = words
        features = tuple(row.features.get(at, math.nan) for at in range(1, width + 1))
        shown.setdefault(query, {})[name] = features
        if row.grade > 0:
            judgements.setdefault(query, {})[name] = int(row.grade)
    read = judged_queries({name: text for name, text in texts.items() if name in shown}, shown, judgements)
    queries = [
        replace(
            query,
            features_version=int(header[1]),
            shown=tuple(replace(hit, features=shown[query.query_id][hit.object_id]) for hit in query.shown),
        )
        for query in read.queries
    ]
    return Judged(queries, read.events)
