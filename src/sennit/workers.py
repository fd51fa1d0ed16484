"""Worker processes: other Python interpreters that run a module of sennit.

They do work that would block this interpreter or could crash it. They are plain processes and not the standard
library's process pool, because the pool would import the user's script again. A message is one line of JSON, with a
header and the lengths of the blocks of bytes that follow the line.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple


class Message(NamedTuple):
    """A header of JSON values, and blocks of bytes."""

    header: Any
    blocks: Sequence[bytes] = ()


def write_message(stream: IO[bytes], message: Message) -> None:
    """Write a message and flush the stream."""
    sizes = [len(block) for block in message.blocks]
    line = json.dumps([message.header, sizes], separators=(",", ":")).encode()
    stream.writelines((line, b"\n", *message.blocks))
    stream.flush()


def read_message(stream: IO[bytes]) -> Message | None:
    """Read the next message. Returns None at the end of the stream, or if the message is incomplete or malformed."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    try:
        header, sizes = json.loads(line)
    except (TypeError, ValueError):
        # Something printed before the worker redirected its standard output, such as a start-up file of the user.
        return None
    blocks = [stream.read(size) for size in sizes]
    return Message(header, blocks) if [len(block) for block in blocks] == sizes else None


class WorkerProcess:
    """A process that runs a module of sennit. One thread at a time exchanges messages; any thread may kill it."""

    def __init__(self, module: str) -> None:
        """Start the process; raises OSError if it cannot be started."""
        if not sys.executable:
            raise OSError("sys.executable is empty, so the path of the Python interpreter is unknown")
        # -P: import nothing from the working directory, which may belong to somebody else.
        command = [sys.executable, "-P", "-m", module]
        with _block_interrupts():
            # The caller only needs to know that the worker failed, so its error output is discarded.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        self._output_ended = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has exited or sends no more messages."""
        return self._output_ended or self._process.poll() is not None

    def send(self, message: Message) -> None:
        """Send a message to the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # the process has ended: receive() returns None
            write_message(self._process.stdin, message)

    def receive(self) -> Message | None:
        """Wait for the next message of the process; None if the process has ended."""
        assert self._process.stdout is not None
        message = read_message(self._process.stdout)
        self._output_ended = message is None
        return message

    def kill(self) -> None:
        """Kill the process, even while a thread waits in receive()."""
        self._process.kill()

    def close(self) -> None:
        """Kill the process and release its pipes."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()


@contextlib.contextmanager
def worker_streams() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Inside a worker process: the stream of requests and the stream for answers, while the parent listens."""
    # Ctrl-C is for the parent, which then ends this process. This is a handler and not SIG_IGN, because child
    # processes would inherit SIG_IGN.
    signal.signal(signal.SIGINT, lambda *_: None)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as answers:
        # What a library prints goes to standard error, so that it does not corrupt the answers.
        os.dup2(2, 1)
        yield sys.stdin.buffer, answers


@contextlib.contextmanager
def _block_interrupts() -> Iterator[None]:
    """Start child processes with SIGINT blocked, so that Ctrl-C cannot end them before they set their own handler."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
