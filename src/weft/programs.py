"""Programs of weft's own beside this one: another interpreter, for work that would hold this one up.

A program is a module that answers each request, a line of JSON, with a line of JSON. They are plain programs and not
the standard library's pool, which would import the user's script again.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any


class Ended(Exception):
    """A program ended, or could not be started, before it had answered."""


class Program:
    """One program, started when it is first asked. Asked by one thread at a time; any may end it."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Its answer; raises Ended when there is none."""
        try:
            process = self._process
            if process is None:
                process = self._process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError) as error:
            line = b""
            reason = str(error)
        else:
            reason = "it ended"
        if not line.endswith(b"\n"):
            self.end()
            raise Ended(reason)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """End it; it starts again when it is asked again."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if not sys.executable:
            raise OSError("this interpreter does not know where its own program is")
        # -P: nothing is imported from the working folder, which may be anybody's.
        return subprocess.Popen(
            [sys.executable, "-P", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The other side: answer each request until there are no more. An interruption is for who asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := requests.readline():
        answers.write(json.dumps(answer(json.loads(line))).encode() + b"\n")
        answers.flush()
