"""Places: where the files of records are.

A database stores paths relative to the folder that was indexed. A `Folder` has a key that never changes, and a root
that changes when the folder is moved. The key and the relative path together are a file's place: the ids of its records
begin with it, so two folders with a file of the same name stay apart.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from sennit.records import Json, Record

FOLDER_FIELD: Final = "folder"
"""The metadata field with the key of the folder of a record."""

MAX_KEY_CHARACTERS: Final = 40

ALL_PROJECTS: Final = "all"
"""Stands for every project, so no folder has this key."""

SHORT_COMMIT_CHARACTERS: Final = 8

Locate: TypeAlias = Callable[[Record], str | None]
"""Returns the path of a record as it is shown; None for a record that is not from a file."""

FindRevision: TypeAlias = Callable[[Record], str]
"""Returns the revision of a record's folder as text, such as `main@1a2b3c4d`; empty for a record without one."""

_FRAGMENT: Final = re.compile(r"(.+)#([a-z]{1,20})=([0-9]{1,15})(?:-([0-9]{1,15}))?", re.DOTALL)
_NOT_IN_KEYS: Final = re.compile(r"[^\w.-]+")
_ID_SEPARATOR: Final = re.compile(r"::|#|\Z")
_ENCODED_ROOT: Final = "hex:"


@dataclass(frozen=True, slots=True)
class FolderOptions:
    """What every record of a folder gets. None keeps what was given before."""

    tenant: str | None = None
    metadata: Mapping[str, Json] | None = None
    collection: str | None = None
    row_template: str | None = None

    @property
    def is_empty(self) -> bool:
        return all(one is None for one in (self.tenant, self.metadata, self.collection, self.row_template))


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision of a folder under git, at the time of an index run."""

    commit: str
    """The whole hash."""
    branch: str = ""
    """Empty for a detached HEAD."""
    dirty: bool | None = None
    """Whether tracked files differed from the commit; None if that is unknown."""

    def __str__(self) -> str:
        at = self.commit[:SHORT_COMMIT_CHARACTERS]
        return f"{f'{self.branch}@{at}' if self.branch else at}{'-dirty' if self.dirty else ''}"

    def to_dict(self) -> dict[str, Json]:
        return {"commit": self.commit, "branch": self.branch, "dirty": self.dirty}


@dataclass(frozen=True, slots=True)
class Folder:
    """An indexed folder. One that is indexed as a whole is a project, and its key is the project's name."""

    key: str
    root: str
    """Its real, absolute path now; it may hold bytes that are not UTF-8."""
    whole: bool = True
    """Whether everything in it is indexed; otherwise only single files of it are."""
    tenant: str = ""
    collection: str = ""
    """The collection of its records; empty to decide by the kind of each file."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    row_template: str = ""
    """The text of a row of a table, with names of columns in braces; empty for a line for each column."""
    revision: Revision | None = field(default=None, compare=False)
    """That of its records; None if it is not under git."""

    @property
    def has_options(self) -> bool:
        return bool(self.tenant or self.collection or self.metadata or self.row_template)

    @property
    def options_digest(self) -> str:
        """Changes when the options change; empty without any."""
        if not self.has_options:
            return ""
        options = [self.tenant, self.collection, dict(self.metadata), *filter(None, [self.row_template])]
        values = json.dumps(options, sort_keys=True)
        return hashlib.blake2b(values.encode(errors="backslashreplace"), digest_size=6).hexdigest()

    def place(self, path: str, target: str = "") -> str:
        """The place of a file, or of its additional reading for a collection."""
        return f"{self.key}@{target}/{path}" if target else f"{self.key}/{path}"

    def absolute(self, path: str) -> str:
        """The path of a file now, as text."""
        return f"{path_to_text(self.root).rstrip('/')}/{path}"

    def relative(self, path: str) -> str | None:
        """The relative path of what is at or below the root ('' for the root itself); None for any other path."""
        root = path_to_text(self.root).rstrip("/")
        if path == root or (not root and path == "/"):
            return ""
        return path[len(root) + 1 :] if path.startswith(f"{root}/") else None


class Places:
    """The indexed folders, to find files by their paths and to show where records are."""

    def __init__(self, folders: Iterable[Folder] = ()) -> None:
        self.folders = tuple(sorted(folders, key=lambda folder: (-len(folder.root), folder.key)))
        """The deepest folder first."""
        self._by_key = {folder.key: folder for folder in self.folders}

    def get(self, key: str) -> Folder | None:
        """The folder with this key."""
        return self._by_key.get(key)

    def owners(self, path: str) -> list[tuple[Folder, str]]:
        """The folders that contain a real path, the deepest first, each with the relative path."""
        found = ((folder, folder.relative(path)) for folder in self.folders)
        return [(folder, relative) for folder, relative in found if relative is not None]

    def folder_of(self, record: Record) -> Folder | None:
        """The folder of a record; None for a record that is not from an indexed file."""
        key = record.metadata.get(FOLDER_FIELD)
        return self._by_key.get(key) if isinstance(key, str) else None

    def absolute(self, record: Record) -> str | None:
        """The absolute path of a record's file; for a record without a folder, its path as it is."""
        folder = self.folder_of(record)
        return record.path if folder is None or record.path is None else folder.absolute(record.path)

    def show(self, record: Record) -> str | None:
        """The path of a record's file, relative to the current folder where that is shorter."""
        if record.path is None:
            other = record.metadata.get("file_path")
            return other if isinstance(other, str) and other else None
        absolute = self.absolute(record)
        return None if absolute is None else shown_path(absolute)

    def show_id(self, record_id: str) -> str:
        """An id with the path of its file relative to the current folder, such as `src/app.py::main`.

        The id of a file that is not below the current folder stays as it is, which is shorter than a whole path.
        """
        end = _ID_SEPARATOR.search(record_id)
        at = end.start() if end else len(record_id)
        key, slash, path = record_id[:at].partition("/")
        folder = self._by_key.get(key) if slash else None
        shown = None if folder is None else shown_path(folder.absolute(path))
        if shown is None or shown.startswith(("/", "../")) or Path(shown).is_absolute():
            return record_id
        return shown + record_id[at:]

    def find_files(self, path: str) -> list[tuple[Folder, str]]:
        """The files of indexed folders that a path can mean: from the current folder, then from each indexed one."""
        if not path or "\0" in path:
            return []
        bases = ["", *(folder.root for folder in self.folders)]
        reals = dict.fromkeys(
            path_to_text(os.path.realpath(os.path.join(base, path)))  # noqa: PTH118 - keeps `..` in the path
            for base in bases
        )
        return [owner for real in reals for owner in self.owners(real) if owner[1]]

    def find_ids(self, shown: str) -> list[str]:
        """The ids that an id can mean whose path is written as it is shown, such as `src/app.py::main`."""
        end = _ID_SEPARATOR.search(shown)
        path, rest = (shown[: end.start()], shown[end.start() :]) if end else (shown, "")
        if not path or "\0" in path:
            return []
        real = path_to_text(os.path.realpath(path))
        return [folder.place(relative) + rest for folder, relative in self.owners(real) if relative]


def record_place(folder: object, path: str | None) -> str | None:
    """What tells the files of two folders apart, from the fields `folder` and `path` of a record."""
    return f"{folder}/{path}" if path is not None and isinstance(folder, str) else path


def shown_path(path: str) -> str:
    """An absolute path relative to the current folder where that is shorter; any other path as it is."""
    if not Path(path).is_absolute():
        return path
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        # The current folder was deleted, or the path is on another drive.
        return path
    relative = relative if os.sep == "/" else relative.replace(os.sep, "/")
    return relative if len(relative) < len(path) else path


def absolute_path(shown: str) -> str:
    """A relative path as it is shown, as an absolute one; the opposite of `shown_path`.

    A leading `..` is taken off here, which is exact, because the path of the current folder has no links. A reader of
    allowed folders could not: it never looks at the folders outside of them.
    """
    folder = Path.cwd()
    parts = shown.split("/")
    while len(parts) > 1 and parts[0] in ("", ".", ".."):
        folder = folder.parent if parts.pop(0) == ".." else folder
    return os.path.join(folder, "/".join(parts))  # noqa: PTH118 - keeps `..` after a name, which may be a link


def path_to_text(path: str) -> str:
    """A path as valid text with forward slashes; bytes that are not UTF-8 become \\xNN."""
    try:
        path.encode()
    except UnicodeEncodeError:
        path = os.fsencode(path).decode("utf-8", "backslashreplace")
    return path if os.sep == "/" else path.replace(os.sep, "/")


def make_key(root: str, taken: Collection[str]) -> str:
    """A new key for a folder, from its name."""
    name = _NOT_IN_KEYS.sub("-", path_to_text(root).rstrip("/").rpartition("/")[2])
    name = name.strip("-.")[:MAX_KEY_CHARACTERS] or "folder"
    key, number = name, 1
    while key in taken or key == ALL_PROJECTS:
        number += 1
        key = f"{name}-{number}"
    return key


def encode_root(root: str, base: str | None) -> str:
    """A root as it is stored: relative to the folder that holds the database if it is inside, else absolute."""
    if base is not None and (root == base or root.startswith(base.rstrip(os.sep) + os.sep)):
        inside = root[len(base.rstrip(os.sep)) :].lstrip(os.sep)
        root = f".{os.sep}{inside}" if inside else "."
    try:
        root.encode()
    except UnicodeEncodeError:
        return f"{_ENCODED_ROOT}{os.fsencode(root).hex()}"
    return root


def decode_root(stored: str, base: str | None) -> str:
    """The real, absolute path of a stored root."""
    if stored.startswith(_ENCODED_ROOT):
        stored = os.fsdecode(bytes.fromhex(stored.removeprefix(_ENCODED_ROOT)))
    if base is not None and (stored == "." or stored.startswith(f".{os.sep}")):
        return os.path.normpath(os.path.join(base, stored))  # noqa: PTH118 - keeps bytes that are not UTF-8
    return stored


class Fragment(NamedTuple):
    """What a citation such as `tides.ipynb#cell=3-5` names in a file."""

    unit: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.unit}={self.first}" + (f"-{self.last}" if self.last != self.first else "")


def parse_fragment(text: str) -> tuple[str, Fragment] | None:
    """Return path and fragment of a citation such as `a.ipynb#cell=3`; None for any other text."""
    found = _FRAGMENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    path, unit, first, last = found.groups()
    fragment = Fragment(unit, int(first), int(last or first))
    return (path, fragment) if 1 <= fragment.first <= fragment.last else None
