"""Whether a database has experiments: nearly none has, and then a search needs nothing else of them."""

from __future__ import annotations

import time
from typing import Final

from sennit.repositories.keys import EXPERIMENT, key_range
from sennit.stores.contract import RecordsRole

REFRESH_SECONDS: Final = 5.0
"""How soon a process notices that another one started or stopped an experiment."""


class ExperimentWatch:
    """Looks for experiments every few seconds, when a search asks."""

    def __init__(self, records: RecordsRole) -> None:
        self._records = records
        self._has_any = False
        self._next_refresh = 0.0
        self.version = 0
        """Changes whenever the experiments are looked at again."""

    def has_any(self) -> bool:
        """Whether the database has an experiment, active or not."""
        now = time.monotonic()
        if now >= self._next_refresh:
            self._next_refresh = now + REFRESH_SECONDS
            with self._records.state() as state:
                self._has_any = bool(state.scan(*key_range(EXPERIMENT), limit=1))
            self.version += 1
        return self._has_any

    def refresh(self) -> None:
        """Look again at the next search, because this process has changed an experiment."""
        self._next_refresh = 0.0
