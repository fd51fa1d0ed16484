"""Lossless export and import of records as JSON lines.

The first line of an export is a header, `{"sennit": {"format": 1, "records": n}}`. Every other line is the
`Record.to_dict` of one record, ordered by id. An import also accepts a file without a header.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol

from sennit.errors import InvalidInput
from sennit.records import MAX_METADATA_BYTES, MAX_TEXT_BYTES, Record

FORMAT_VERSION: Final = 1

BATCH_RECORDS: Final = 1000
"""Records per transaction: few enough for a short wait, enough to spread the cost of a commit."""

MAX_LINE_BYTES: Final = 6 * (4 * MAX_TEXT_BYTES + MAX_METADATA_BYTES)
"""The largest possible record with every character escaped; a longer line cannot be a record."""


class BadLine(InvalidInput):
    """A line that is not a record; `line` counts from 1. Records imported before it stay."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        self.problem = problem
        super().__init__(f"Line {line}: {problem}")


class WriteCounts(Protocol):
    """What an add did."""

    @property
    def added(self) -> int: ...
    @property
    def updated(self) -> int: ...
    @property
    def unchanged(self) -> int: ...


@dataclass(slots=True)
class ImportReport:
    """What an import did."""

    read: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    bad: list[BadLine] = field(default_factory=list)


def export_lines(records: Iterable[Record], count: int | None = None) -> Iterator[bytes]:
    """Yield the lines of an export. With `count`, an import can detect a truncated file."""
    header = {"format": FORMAT_VERSION} | ({} if count is None else {"records": count})
    yield json.dumps({"sennit": header}).encode() + b"\n"
    for record in records:
        yield record.to_json().encode() + b"\n"


def write_atomically(path: Path, content: Iterable[bytes]) -> None:
    """Write a file atomically: the old file stays until the new one is complete. A device or a pipe is written to."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as out:
                out.writelines(content)
            return
        _replace(path.resolve(), content)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):  # not a wrong path
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error


def _replace(path: Path, content: Iterable[bytes]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as out:
            out.writelines(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def read_records(
    stream: IO[bytes], bad: Callable[[BadLine], None] | None = None, read: Callable[[int], None] | None = None
) -> Iterator[Record]:
    """Yield the records of a stream. Raise BadLine for an invalid line, or pass it to `bad` and skip the line.

    `read` gets the number of bytes of every line.
    """
    expected: int | None = None
    found = number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if read is not None:
            read(len(line))
        try:
            value = _parse_line(line, number)
            if number == 1 and isinstance(value, dict) and "sennit" in value:
                expected = _read_header(value["sennit"])
            elif value is not None:
                found += 1
                yield _read_record(value, number)
        except BadLine as error:
            if bad is None:
                raise
            bad(error)
            if len(line) > MAX_LINE_BYTES:
                _skip_line(stream)
    if expected is not None and found != expected:
        truncated = BadLine(number, f"the file ends after {found:,} of {expected:,} records; it is truncated")
        if bad is None:
            raise truncated
        bad(truncated)


def import_records(
    stream: IO[bytes],
    add: Callable[[list[Record]], WriteCounts] | None,
    *,
    skip_bad: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Add the records of a stream in atomic batches. With `add` None, only check them.

    The import adds the records before the first bad line and stops there; `bad` in the report has that line. With
    `skip_bad` it goes on and lists every bad line. `progress` gets the records and the bytes so far.
    """
    report = ImportReport()
    size = 0

    def count_bytes(count: int) -> None:
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
        for record in read_records(stream, report.bad.append if skip_bad else None, count_bytes):
            report.read += 1
            batch.append(record)
            if len(batch) == BATCH_RECORDS:
                flush(batch)
                batch = []
    except BadLine as error:
        report.bad.append(error)
    flush(batch)
    return report


def _parse_line(line: bytes, number: int) -> Any:
    """Return the JSON value of a line; None for a blank line."""
    if len(line) > MAX_LINE_BYTES:
        raise BadLine(number, f"it is longer than {MAX_LINE_BYTES:,} bytes, the maximum for a record")
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        return json.loads(text, parse_constant=_reject_constant) if text.strip() else None
    except UnicodeDecodeError as error:
        raise BadLine(number, f"it is not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise BadLine(number, f"it is not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise BadLine(number, f"it is not usable JSON: {error}") from error


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _read_header(header: object) -> int | None:
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise BadLine(1, "the header has no format number")
    if header["format"] > FORMAT_VERSION:
        raise BadLine(
            1,
            f"format {header['format']} was written by a newer sennit; this version reads up to {FORMAT_VERSION}",
        )
    count = header.get("records")
    return count if type(count) is int else None


def _read_record(value: object, number: int) -> Record:
    if not isinstance(value, dict):
        raise BadLine(number, f"a record must be an object with fields, not {type(value).__name__}")
    try:
        return Record.from_dict(value)
    except (InvalidInput, TypeError, RecursionError) as error:
        raise BadLine(number, str(error)) from error


def _skip_line(stream: IO[bytes]) -> None:
    """Read to the end of an over-long line."""
    while (chunk := stream.readline(MAX_LINE_BYTES)) and not chunk.endswith(b"\n"):
        pass
