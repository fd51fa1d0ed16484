"""Records as JSON lines, out and in again, without loss.

The first line of an export is a header, `{"sennit": {"format": 1, "records": n}}`; every other line is one record
as `Record.to_dict` has it, ordered by id. A file without a header is read too: any program can write one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol

from sennit.errors import InvalidInput
from sennit.records import MAX_METADATA_BYTES, MAX_TEXT_BYTES, Record

FORMAT: Final = 1

BATCH: Final = 1000
"""Records added in one transaction: few enough to wait for, many enough that the disk is not."""

MAX_LINE_BYTES: Final = 6 * (4 * MAX_TEXT_BYTES + MAX_METADATA_BYTES)
"""A record with every text at its largest and every character escaped; a longer line is something else."""


class BadLine(InvalidInput):
    """A line that is not a record; `line` counts from 1, and what was imported before it stays."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        self.problem = problem
        super().__init__(f"Line {line}: {problem}")


class Counts(Protocol):
    """What an add did."""

    @property
    def added(self) -> int: ...
    @property
    def updated(self) -> int: ...
    @property
    def unchanged(self) -> int: ...


@dataclass(slots=True)
class Imported:
    """What an import did."""

    read: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    bad: list[BadLine] = field(default_factory=list)


def lines(records: Iterable[Record], count: int | None = None) -> Iterator[bytes]:
    """An export line by line. `count`, when known, lets an import notice that a file was cut off."""
    header = {"format": FORMAT} | ({} if count is None else {"records": count})
    yield json.dumps({"sennit": header}).encode() + b"\n"
    for record in records:
        yield record.to_json().encode() + b"\n"


def write_file(path: Path, content: Iterable[bytes]) -> None:
    """Write a file whole or not at all; what was there before stays until the new one is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as out:
            out.writelines(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def read_records(
    stream: IO[bytes], bad: Callable[[BadLine], None] | None = None, read: Callable[[int], None] | None = None
) -> Iterator[Record]:
    """The records of a stream. A line that is none is raised, or given to `bad` and left out.

    `read` is told the number of bytes of every line.
    """
    declared: int | None = None
    found = number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if read is not None:
            read(len(line))
        try:
            value = _parsed(line, number)
            if number == 1 and isinstance(value, dict) and "sennit" in value:
                declared = _declared(value["sennit"])
            elif value is not None:
                found += 1
                yield _record(value, number)
        except BadLine as error:
            if bad is None:
                raise
            bad(error)
            if len(line) > MAX_LINE_BYTES:
                _skip(stream)
    if declared is not None and found != declared:
        short = BadLine(number, f"the file ends after {found:,} of {declared:,} records; it was cut off")
        if bad is None:
            raise short
        bad(short)


def import_records(
    stream: IO[bytes],
    add: Callable[[list[Record]], Counts] | None,
    *,
    skip_bad: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Add the records of a stream in batches, each all or none; `add` None only checks them.

    Stops at the first bad line, after the records before it are added; the report says so in `bad`. With
    `skip_bad` it goes on and lists every bad line. `progress` is told the records and the bytes so far.
    """
    report = Imported()
    size = 0

    def weigh(count: int) -> None:
        nonlocal size
        size += count

    def flush(batch: list[Record]) -> None:
        if add is not None and batch:
            written = add(batch)
            report.added += written.added
            report.updated += written.updated
            report.unchanged += written.unchanged
        if progress is not None:
            progress(report.read, size)

    batch: list[Record] = []
    try:
        for record in read_records(stream, report.bad.append if skip_bad else None, weigh):
            report.read += 1
            batch.append(record)
            if len(batch) == BATCH:
                flush(batch)
                batch = []
    except BadLine as error:
        report.bad.append(error)
    flush(batch)
    return report


def _parsed(line: bytes, number: int) -> Any:
    """The JSON value of a line; None when it is blank."""
    if len(line) > MAX_LINE_BYTES:
        raise BadLine(number, f"it is longer than {MAX_LINE_BYTES:,} bytes; no record is")
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        return json.loads(text, parse_constant=_no_constant) if text.strip() else None
    except UnicodeDecodeError as error:
        raise BadLine(number, f"it is not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise BadLine(number, f"it is not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise BadLine(number, f"it is not usable JSON: {error}") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON knows")


def _declared(header: object) -> int | None:
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise BadLine(1, "its header has no format number")
    if header["format"] > FORMAT:
        raise BadLine(1, f"format {header['format']} was written by a newer sennit; this one knows {FORMAT}")
    count = header.get("records")
    return count if type(count) is int else None


def _record(value: object, number: int) -> Record:
    if not isinstance(value, dict):
        raise BadLine(number, f"a record must be an object with fields, not {type(value).__name__}")
    try:
        return Record.from_dict(value)
    except (InvalidInput, TypeError, RecursionError) as error:
        raise BadLine(number, str(error)) from error


def _skip(stream: IO[bytes]) -> None:
    """Read on to the end of an over-long line."""
    while (part := stream.readline(MAX_LINE_BYTES)) and not part.endswith(b"\n"):
        pass
