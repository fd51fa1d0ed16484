"""A time that really is the most: whatever a library waits for, the caller does not wait longer."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

_END = object()


class Late(Exception):
    """The time is over."""


def within(seconds: float, produce: Callable[[], Iterator[T]], name: str) -> Iterator[T]:
    """What is produced, or Late. It is produced in a thread of its own, which ends at its next part.

    Time-outs of an HTTP library are per phase and per part, and looking up a name has none.
    """
    end = time.monotonic() + seconds
    parts: queue.Queue[object] = queue.Queue()
    unwanted = threading.Event()

    def work() -> None:
        try:
            for part in produce():
                parts.put((part,))
                if unwanted.is_set():
                    break
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that asked
            parts.put(error)
        else:
            parts.put(_END)

    threading.Thread(target=work, name=f"sennit-{name}", daemon=True).start()
    try:
        while True:
            try:
                part = parts.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Late from None
            if part is _END:
                return
            if isinstance(part, BaseException):
                raise part
            assert isinstance(part, tuple)
            yield part[0]
    finally:
        unwanted.set()
