"""A deadline that holds whatever the library underneath waits for."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

_END = object()


class DeadlineExceeded(Exception):
    """The time is over."""


def iterate_with_deadline(seconds: float, produce: Callable[[], Iterator[T]], name: str) -> Iterator[T]:
    """Yield the items of `produce()`, or raise DeadlineExceeded after so many seconds in all.

    The time-outs of an HTTP library apply to each phase and each chunk, and DNS resolution has none. So the items are
    produced in a thread of their own, which ends at its next item once nobody wants more.
    """
    end = time.monotonic() + seconds
    items: queue.Queue[object] = queue.Queue()
    cancelled = threading.Event()

    def work() -> None:
        try:
            for item in produce():
                items.put((item,))
                if cancelled.is_set():
                    break
        except BaseException as error:  # noqa: BLE001 - the consuming thread raises it
            items.put(error)
        else:
            items.put(_END)

    threading.Thread(target=work, name=f"sennit-{name}", daemon=True).start()
    try:
        while True:
            try:
                item = items.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise DeadlineExceeded from None
            if item is _END:
                return
            if isinstance(item, BaseException):
                raise item
            assert isinstance(item, tuple)
            yield item[0]
    finally:
        cancelled.set()
