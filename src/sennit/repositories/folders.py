"""The folders that were indexed as a whole."""

from __future__ import annotations

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

    def add(self, paths: Iterable[str]) -> None:
        """Record folders as indexed."""
        known = set(self.paths())
        new = [path for path in paths if path not in known]
        if new:
            with self._records.transaction() as transaction:
                transaction.state.put((encode_key(_FOLDER, path), b"") for path in new)
