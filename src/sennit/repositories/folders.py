"""The indexed folders."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any, Final

from sennit.places import FOLDER_FIELD, Folder, Locate, Places, decode_root, encode_root
from sennit.records import Record
from sennit.repositories.keys import encode_key, key_range, last_text
from sennit.stores.contract import RecordsRole, State, Transaction

_FOLDER: Final = "folder"
NO_PLACES: Final = Places()


class IndexedFolders:
    """The folders whose files are records. `base` is the real path of the folder that holds the database."""

    def __init__(self, records: RecordsRole, base: str | None) -> None:
        self._records = records
        self._base = base

    def places(self) -> Places:
        """All indexed folders, as they are now."""
        with self._records.state() as state:
            return self.read_in(state)

    def read_in(self, state: State) -> Places:
        """All indexed folders, by a state of one moment."""
        return Places(self._decode(key, values) for key, values in self._scan(state))

    def indexed_at(self) -> dict[str, int | None]:
        """When the last index run over each folder ended, in seconds since 1970, by key."""
        with self._records.state() as state:
            return {key: values.get("indexed_at") for key, values in self._scan(state)}

    def locator(self) -> Locate:
        """A function that shows where records are; it reads the folders when a record first needs them."""
        known: list[Places] = []

        def show(record: Record) -> str | None:
            if FOLDER_FIELD not in record.metadata:
                return NO_PLACES.show(record)
            if not known:
                known.append(self.places())
            return known[0].show(record)

        return show

    def put(self, transaction: Transaction, folder: Folder) -> None:
        """Add or replace a folder; when it was indexed stays known."""
        key = encode_key(_FOLDER, folder.key)
        stored = transaction.state.get(key)
        before: dict[str, Any] = {} if stored is None else json.loads(stored)
        values = {
            "root": encode_root(folder.root, self._base),
            "whole": folder.whole,
            "tenant": folder.tenant,
            "collection": folder.collection,
            "metadata": dict(folder.metadata),
            "row_template": folder.row_template,
            "indexed_at": before.get("indexed_at"),
        }
        transaction.state.put([(key, json.dumps(values).encode())])

    def mark_indexed(self, keys: Iterable[str]) -> None:
        """Store that an index run over these folders has ended now."""
        with self._records.transaction() as transaction:
            known = dict(self._scan(transaction.state))
            now = int(time.time())
            transaction.state.put(
                (encode_key(_FOLDER, key), json.dumps({**known[key], "indexed_at": now}).encode())
                for key in keys
                if key in known
            )

    def delete(self, transaction: Transaction, key: str) -> None:
        """Delete a folder; its files are deleted separately."""
        transaction.state.delete([encode_key(_FOLDER, key)])

    def _scan(self, state: State) -> list[tuple[str, dict[str, Any]]]:
        return [
            (last_text(key, _FOLDER), json.loads(value)) for key, value in state.scan(*key_range(_FOLDER))
        ]

    def _decode(self, key: str, values: dict[str, Any]) -> Folder:
        root = decode_root(values["root"], self._base)
        named = {name: values[name] for name in ("whole", "tenant", "collection", "metadata")}
        return Folder(key, root, **named, row_template=values.get("row_template", ""))
