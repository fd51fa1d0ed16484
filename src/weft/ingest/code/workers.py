"""Many files at once: programs of their own that parse, one for each processor.

A grammar is a parser in C that reads what strangers wrote. Should one crash or never end, its program does, and
only that file is lost. They are plain programs and not the standard library's pool, which would import the user's
script again.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any, Final

from weft.ingest.code.parsing import parse
from weft.ingest.code.passages import DEFAULTS, CodeOptions, code_records
from weft.ingest.reading import Unreadable
from weft.records import Record

SECONDS: Final = 60.0
"""For one file; the longest that is parsed at all takes about three."""


class Workers:
    """Programs that make records of files. Called from as many threads as there are programs, each has one."""

    def __init__(self, count: int | None = None) -> None:
        self.count: Final = count or os.cpu_count() or 1
        self._free: queue.LifoQueue[subprocess.Popen[bytes] | None] = queue.LifoQueue()
        for _ in range(self.count):
            # Started when first needed.
            self._free.put(None)

    def records(
        self, path: str, data: bytes, collection: str = "code", options: CodeOptions = DEFAULTS
    ) -> list[Record]:
        """The records of a file; raises Unreadable where there are none."""
        with self._borrowed() as program:
            answer = _ask(program, _request(path, data, collection, options), data)
        if "problem" in answer:
            raise Unreadable(answer["problem"])
        return [Record.from_dict(values) for values in answer["records"]]

    def close(self) -> None:
        """End the programs."""
        for _ in range(self.count):
            program = self._free.get()
            if program is not None:
                _end(program)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[subprocess.Popen[bytes]]:
        program = self._free.get()
        try:
            if program is None or program.poll() is not None:
                # -P: nothing is imported from the working folder, which may be the one that is indexed.
                program = subprocess.Popen(
                    [sys.executable, "-P", "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            yield program
        except BaseException:
            # Whatever went wrong, it may be in the middle of an answer.
            if program is not None:
                _end(program)
            program = None
            raise
        finally:
            self._free.put(program)


def _request(path: str, data: bytes, collection: str, options: CodeOptions) -> dict[str, Any]:
    if options.count is not None:
        raise ValueError("tokens are counted where the records are wanted, not by a worker")
    return {
        "path": path,
        "size": len(data),
        "collection": collection,
        "whole": options.whole,
        "outlines": options.outlines,
        "timestamp": options.timestamp.isoformat() if options.timestamp else None,
    }


def _ask(program: subprocess.Popen[bytes], request: dict[str, Any], data: bytes) -> dict[str, Any]:
    assert program.stdin is not None
    assert program.stdout is not None
    late = threading.Timer(SECONDS, program.kill)
    late.daemon = True
    late.start()
    try:
        program.stdin.write(json.dumps(request).encode() + b"\n" + data)
        program.stdin.flush()
        line = program.stdout.readline()
    except OSError:
        line = b""
    finally:
        late.cancel()
    if not line.endswith(b"\n"):
        raise Unreadable("a file on which its parser fails (it crashes, or does not end)")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _end(program: subprocess.Popen[bytes]) -> None:
    for stream in (program.stdin, program.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    program.kill()
    program.wait()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer each request with a line, until there are no more."""
    while line := requests.readline():
        request = json.loads(line)
        answers.write(json.dumps(_answered(request, requests.read(request["size"]))).encode() + b"\n")
        answers.flush()


def _answered(request: dict[str, Any], data: bytes) -> dict[str, Any]:
    timestamp = request["timestamp"]
    options = CodeOptions(
        whole=request["whole"],
        outlines=request["outlines"],
        timestamp=datetime.fromisoformat(timestamp) if timestamp else None,
    )
    try:
        made = code_records(parse(request["path"], data), collection=request["collection"], options=options)
    except Unreadable as problem:
        return {"problem": str(problem)}
    return {"records": [record.to_dict() for record in made]}


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
