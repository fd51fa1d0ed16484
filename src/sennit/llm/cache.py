"""What was asked lately, and what the answer was."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

MOST: Final = 1024
"""Questions; about 200 KB."""


class Recent:
    """A bounded memory of texts by key; the one that was not used for longest goes first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str]) -> str | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: tuple[str, str], value: str) -> None:
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)
