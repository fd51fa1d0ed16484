"""The folders that were indexed as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from sennit.repositories.keys import encode_key, key_range, last_text
from sennit.stores.contract import RecordsRole

_FOLDER: Final = "folder"


class IndexedFolders:
    """The folders that were indexed as a whole; unless the settings name folders, grep and read may use these."""

    def __init__(self, records: RecordsRole) -> None:
        self._records = records

    def paths(self) -> list[str]:
        """The indexed folders, sorted."""
        with self._records.state() as state:
            return [last_text(key, _FOLDER) for key, _ in state.scan(*key_range(_FOLDER))]

    def indexed_at(self) -> dict[str, int | None]:
        """The indexed folders, sorted, and when the last index run over each ended, in seconds since 1970."""
        with self._records.state() as state:
            found = state.scan(*key_range(_FOLDER))
        return {last_text(key, _FOLDER): int(value) if value else None for key, value in found}

    def add(self, paths: Iterable[str]) -> None:
        """Record folders as indexed now."""
        indexed, now = list(paths), str(int(time.time())).encode()
        if indexed:
            with self._records.transaction() as transaction:
                transaction.state.put((encode_key(_FOLDER, path), now) for path in indexed)
