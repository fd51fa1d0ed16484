"""Many files at once: programs of their own that parse, cut and embed, one for each processor.

A parser reads what strangers wrote. Should one crash or never end, its program does, and only that file is lost.
They are plain programs and not the standard library's pool, which would import the user's script again.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from sennit.ingest import pdf
from sennit.ingest.languages import kind_of
from sennit.ingest.making import Content, Here, Made, Maker, Task
from sennit.ingest.reading import Unreadable
from sennit.ingest.wire import as_outcome, of_contents, of_task
from sennit.programs import Message, Program

MANY: Final = 64
MUCH: Final = 1_000_000
"""Files and bytes from which on programs are worth their start, a third of a second of processor time for each."""

SECONDS: Final = 60.0
"""For one file; the longest that is parsed at all takes about three."""

SECONDS_FOR_PDF: Final = pdf.SECONDS * pdf.PATIENCE + SECONDS
"""Longer than its own reader is waited for."""

LOOK: Final = 0.5
"""Seconds between two looks at whether a program is late."""

MOST: Final = 8
"""Programs; one process writes what they make, and has enough to do with fewer."""


def maker_for(task: Task, sizes: Sequence[int]) -> Maker:
    """Programs where there is much to do, and else this process."""
    return Workers(task) if len(sizes) >= MANY and sum(sizes) >= MUCH else Here(task)


class Workers:
    """Programs that make records of files; a `Maker`."""

    at_once: Final = 16
    """A program waits for its next request while the thread that asks waits for the interpreter."""

    def __init__(self, task: Task, count: int | None = None) -> None:
        self._task = of_task(task)
        self._count: Final = count or min(os.cpu_count() or 1, MOST)
        self.readers: Final = self._count + 2
        """So that files are read and answers taken over while all programs are at work."""
        self._free: queue.LifoQueue[_Program | None] = queue.LifoQueue()
        for _ in range(self._count):
            # Started when first needed.
            self._free.put(None)
        self._lock = threading.Lock()
        self._running: set[_Program] = set()
        self._closed = threading.Event()
        self._watch = threading.Thread(target=self._end_the_late, name="sennit-programs", daemon=True)

    def make(self, contents: Sequence[Content]) -> list[Made | Unreadable]:
        """What becomes of each of these files."""
        answers: list[Message | Unreadable] = []
        while len(answers) < len(contents):
            # Again with what is left after the file on which the last program ended.
            with self._borrowed() as program:
                answers += self._answers(program, contents[len(answers) :])
        return [as_outcome(answer) if isinstance(answer, Message) else answer for answer in answers]

    def _answers(
        self, program: _Program | Unreadable, contents: Sequence[Content]
    ) -> Iterator[Message | Unreadable]:
        if isinstance(program, Unreadable):
            yield from (program for _ in contents)
            return
        program.ask(of_contents(contents))
        for content in contents:
            answer = program.answer(SECONDS_FOR_PDF if kind_of(content.path)[0] == "pdf" else SECONDS)
            if answer is not None:
                yield answer
                continue
            yield (
                Unreadable("interrupted", lasting=False)
                if self._closed.is_set()
                else Unreadable("a file on which its parser fails (it crashes, or does not end)")
            )
            return

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[_Program | Unreadable]:
        """A program that is ready, or why there is none."""
        program = self._free.get()
        try:
            if program is None or program.ended:
                self._forget(program)
                program = None
                program = self._started()
            yield program or Unreadable("the program that reads files does not start", lasting=False)
        except BaseException:
            # Whatever went wrong, it may be in the middle of an answer.
            self._forget(program)
            program = None
            raise
        finally:
            self._free.put(program)

    def _started(self) -> _Program | None:
        with self._lock:
            if self._closed.is_set():
                return None
            try:
                program = _Program()
            except OSError:
                return None
            self._running.add(program)
        program.ask(self._task)
        if program.answer(SECONDS) is not None:
            return program
        self._forget(program)
        return None

    def _forget(self, program: _Program | None) -> None:
        if program is not None:
            program.end()
            with self._lock:
                self._running.discard(program)

    def _end_the_late(self) -> None:
        while not self._closed.wait(LOOK):
            with self._lock:
                late = [program for program in self._running if program.until < time.monotonic()]
            for program in late:
                program.kill()

    def __enter__(self) -> Workers:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the programs, whatever they are at."""
        with self._lock:
            self._closed.set()
            for program in self._running:
                program.kill()
        for ended in [self._free.get() for _program in range(self._count)]:
            self._forget(ended)
            # Who still waits for one is told that there is none.
            self._free.put(None)
        self._watch.join()


class _Program(Program):
    """One program, used by one thread at a time."""

    def __init__(self) -> None:
        super().__init__("sennit.ingest.program")
        self.until = math.inf
        """When its answer is late."""

    def ask(self, message: Message) -> None:
        self.until = time.monotonic() + SECONDS
        super().ask(message)

    def answer(self, seconds: float = SECONDS) -> Message | None:
        """Its next message; None when it has ended instead, by itself or because it was late."""
        self.until = time.monotonic() + seconds
        try:
            return super().answer()
        finally:
            self.until = math.inf
