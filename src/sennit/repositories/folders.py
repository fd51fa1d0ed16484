"""The indexed folders."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from sennit.places import FOLDER_FIELD, Folder, Places, Revision, decode_root, encode_root
from sennit.records import Record
from sennit.repositories.keys import encode_key, key_range, last_text
from sennit.stores.contract import RecordsRole, State, Transaction

_FOLDER: Final = "folder"
NO_PLACES: Final = Places()


class Locator:
    """Shows where records are and which revision they are of. Made for one search."""

    def __init__(self, read_places: Callable[[], Places]) -> None:
        self._read_places = read_places
        self._places: Places | None = None

    def __call__(self, record: Record) -> str | None:
        """The path of a record as it is shown; None for a record that is not from a file."""
        if record.path is None and not record.metadata:
            return None  # as `show` says; most records of a database without files are like this
        return self._for(record).show(record)

    def revision(self, record: Record) -> str:
        """The revision of a record's folder; empty for a record without one."""
        if FOLDER_FIELD not in record.metadata:
            return ""
        folder = self._for(record).folder_of(record)
        return "" if folder is None or folder.revision is None else str(folder.revision)

    def _for(self, record: Record) -> Places:
        if FOLDER_FIELD not in record.metadata:
            return NO_PLACES
        if self._places is None:
            self._places = self._read_places()
        return self._places


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

    def locator(self) -> Locator:
        """Shows where records are; it reads the folders when a record first needs them."""
        return Locator(self.places)

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
            "revision": before.get("revision"),
        }
        transaction.state.put([(key, json.dumps(values).encode())])

    def mark_indexed(self, revisions: Mapping[str, Revision | None], *, complete: bool) -> None:
        """Store that an index run over these folders has ended now, and the revisions that it has read.

        A run that is not `complete` has visited some files only, so the time of the last whole run stays.
        """
        now = int(time.time())
        with self._records.state() as state:
            known = dict(self._scan(state))
        changes = {
            key: {"revision": None if revision is None else revision.to_dict()}
            | ({"indexed_at": now} if complete else {})
            for key, revision in revisions.items()
            if key in known
        }
        if all(known[key] == known[key] | values for key, values in changes.items()):
            return
        with self._records.transaction() as transaction:
            known = dict(self._scan(transaction.state))
            transaction.state.put(
                (encode_key(_FOLDER, key), json.dumps(known[key] | values).encode())
                for key, values in changes.items()
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
        revision = values.get("revision")
        return Folder(
            key,
            root,
            **named,
            row_template=values.get("row_template", ""),
            revision=None if revision is None else Revision(**revision),
        )
