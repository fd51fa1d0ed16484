"""Programs of sennit's own beside this one: other interpreters, for work that would hold this one up or bring it down.

They are plain programs and not the standard library's pool, which would import the user's script again. A message between
the two is a line of JSON, a head and the lengths of the blocks of bytes that follow it.
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
    """A head, and blocks of bytes."""

    head: Any
    blocks: Sequence[bytes] = ()


def send(stream: IO[bytes], message: Message) -> None:
    """Write a message, at once."""
    sizes = [len(block) for block in message.blocks]
    line = json.dumps([message.head, sizes], separators=(",", ":")).encode()
    stream.writelines((line, b"\n", *message.blocks))
    stream.flush()


def receive(stream: IO[bytes]) -> Message | None:
    """The next message; None when there is none, or not all of it, or what comes is no message."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    try:
        head, sizes = json.loads(line)
    except (TypeError, ValueError):
        # Printed before the program could see to it that nothing is: by a start-up file of the user's, say.
        return None
    blocks = [stream.read(size) for size in sizes]
    return Message(head, blocks) if [len(block) for block in blocks] == sizes else None


class Program:
    """A module of sennit that runs as a program. Asked by one thread at a time; any may kill it."""

    def __init__(self, module: str) -> None:
        """Start it; raises OSError where that cannot be."""
        if not sys.executable:
            raise OSError("this interpreter does not know where its own program is")
        # -P: nothing is imported from the working folder, which may be anybody's.
        command = [sys.executable, "-P", "-m", module]
        with _without_interrupts():
            # What it says when it fails is of no use to who waits for an answer; that there is none is.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        self._silent = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has nothing more to say."""
        return self._silent or self._process.poll() is not None

    def ask(self, message: Message) -> None:
        """Send it a message."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, as the answer will show
            send(self._process.stdin, message)

    def answer(self) -> Message | None:
        """Its next message; None when it has ended instead."""
        assert self._process.stdout is not None
        message = receive(self._process.stdout)
        self._silent = message is None
        return message

    def kill(self) -> None:
        """End it, whoever waits for its answer."""
        self._process.kill()

    def end(self) -> None:
        """End it and let go of it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()


@contextlib.contextmanager
def serving() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The other side, in the program: where requests come from and answers go to, until nobody listens."""
    # Ctrl-C is for the program that asks, which ends this one. A handler and not SIG_IGN: that would be handed on to
    # programs that this one starts.
    signal.signal(signal.SIGINT, lambda *_: None)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as answers:
        # Whatever a library prints does not get among the answers.
        os.dup2(2, 1)
        yield sys.stdin.buffer, answers


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started in the block is not stopped by Ctrl-C before it can say what that shall do."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
