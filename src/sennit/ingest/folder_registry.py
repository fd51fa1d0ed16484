"""Which folder each indexed path belongs to: known folders, new ones, moved ones, and those inside others."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from sennit.errors import InvalidInput, NotFound
from sennit.ingest.file_reader import UnreadableFile, read_regular_file
from sennit.places import Folder, FolderOptions, Places, make_key, path_to_text
from sennit.records import Record
from sennit.repositories.folders import IndexedFolders
from sennit.stores.contract import FileManifest, FileRow, Transaction

COMPARED_FILES: Final = 64
"""How many files are compared to recognise a folder that was moved."""

MIN_SAME_SHARE: Final = 0.5
"""The share of these files that must be the same."""

MAX_COMPARED_BYTES: Final = 4 * 1024 * 1024
"""A larger file is compared by its size and time only."""


@dataclass(slots=True)
class AssignedFolders:
    """The folders after the given paths are registered."""

    places: Places = field(default_factory=Places)
    single_files: dict[str, Folder] = field(default_factory=dict)
    """By absolute path, the folder of a file that was given by itself."""
    adopted: list[Folder] = field(default_factory=list)
    """Folders whose files belong to a folder around them now."""


def assign_folders(
    transaction: Transaction,
    table: IndexedFolders,
    manifest: FileManifest,
    given: Mapping[str, str],
    options: FolderOptions,
) -> AssignedFolders:
    """Register the folders of real paths, which map to the paths as they were given; raise NotFound for none."""
    _check_options(options)
    out = AssignedFolders(table.read_in(transaction.state))
    for real, name in given.items():
        if not os.path.lexists(real):
            _check_known(out.places, manifest, real, name)
        elif Path(real).is_dir():
            _assign_folder(transaction, table, manifest, out, real, options)
        else:
            _assign_file(transaction, table, manifest, out, real, options)
        out.places = Places(
            folder
            for folder in table.read_in(transaction.state).folders
            if folder.key not in _keys(out.adopted)
        )
    return out


def unused_folders(places: Places, manifest: FileManifest) -> list[Folder]:
    """The folders without files that do not exist, hold only single files, or are inside another."""
    return [
        folder
        for folder in places.folders
        if not (folder.whole and os.path.lexists(folder.root) and not _is_adopted(places, folder))
        and not has_files(manifest, folder)
    ]


def is_within(path: str, folders: Sequence[str]) -> bool:
    """Whether a path is at or below one of the folders."""
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def has_files(manifest: FileManifest, folder: Folder, path: str = "") -> bool:
    """Whether a file of a folder at or below a path is known."""
    return next(iter(manifest.under(folder.key, path)), None) is not None


def _keys(folders: Sequence[Folder]) -> set[str]:
    return {folder.key for folder in folders}


def _is_adopted(places: Places, folder: Folder) -> bool:
    """Whether a folder around it takes its files."""
    around = places.owners(path_to_text(folder.root))
    return not folder.has_options and any(one.whole and inside for one, inside in around)


def _check_options(options: FolderOptions) -> None:
    # The record checks each value as it would be stored.
    Record(
        id="options",
        text="",
        tenant=options.tenant or "",
        collection=options.collection or "files",
        metadata=options.metadata or {},
    )
    if options.row_template:
        from sennit.ingest.formats.tables import check_template

        check_template(options.row_template)


def _with_options(folder: Folder, options: FolderOptions) -> Folder:
    return replace(
        folder,
        tenant=folder.tenant if options.tenant is None else options.tenant,
        collection=folder.collection if options.collection is None else options.collection,
        metadata=folder.metadata if options.metadata is None else dict(options.metadata),
        row_template=folder.row_template if options.row_template is None else options.row_template,
    )


def _check_known(places: Places, manifest: FileManifest, real: str, name: str) -> None:
    """A path that does not exist is allowed if it was indexed before: its records are deleted."""
    for folder, relative in places.owners(path_to_text(real)):
        if has_files(manifest, folder, relative):
            return
    raise NotFound(f"There is no file or folder {name!r}, and none was indexed there before")


def _assign_folder(
    transaction: Transaction,
    table: IndexedFolders,
    manifest: FileManifest,
    out: AssignedFolders,
    real: str,
    options: FolderOptions,
) -> None:
    places = out.places
    owners = places.owners(path_to_text(real))
    own = next((folder for folder, inside in owners if not inside and folder.whole), None)
    if own is None:
        own = next((folder for folder, inside in owners if not inside and not folder.has_options), None)
    around = next((folder for folder, inside in owners if inside and folder.whole), None)
    if own is None and around is not None and options.is_empty:
        return
    if own is None:
        own = _find_moved(manifest, places, real)
        if own is not None:
            for nested in places.folders:
                if own.relative(path_to_text(nested.root)):
                    moved = os.path.join(real, os.path.relpath(nested.root, own.root))  # noqa: PTH118
                    table.put(transaction, replace(nested, root=moved))
            own = replace(own, root=real)
    if own is None:
        own = Folder(make_key(real, _keys(places.folders)), real)
    own = _with_options(replace(own, whole=True), options)
    if own != places.get(own.key):
        table.put(transaction, own)
    out.adopted += [
        nested
        for nested in places.folders
        if nested.key != own.key
        and not nested.has_options
        and own.relative(path_to_text(nested.root)) is not None
        and nested.key not in _keys(out.adopted)
    ]


def _assign_file(
    transaction: Transaction,
    table: IndexedFolders,
    manifest: FileManifest,
    out: AssignedFolders,
    real: str,
    options: FolderOptions,
) -> None:
    text = path_to_text(real)
    owners = out.places.owners(text)
    around = next((folder for folder, _ in owners if folder.whole), None)
    if around is not None:
        if _with_options(around, options) != around:
            raise InvalidInput(
                f"{real} is a file of the indexed folder {around.root}, which has other options. Give tenant, metadata "
                "and collection for a whole folder."
            )
        return
    parent = os.path.dirname(real)  # noqa: PTH120 - keeps bytes that are not UTF-8
    singles = [folder for folder, inside in owners if folder.root == parent]
    holds = [folder for folder in singles if has_files(manifest, folder, folder.relative(text) or "")]
    fresh = _with_options(Folder(make_key(parent, _keys(out.places.folders)), parent, whole=False), options)
    alike = [folder for folder in singles if replace(folder, key=fresh.key) == fresh]
    if holds:
        folder = _with_options(holds[0], options)
        if folder != holds[0] and any(
            row.path != folder.relative(text) for row, _ in manifest.under(folder.key)
        ):
            # The other files of the row keep their options, so this file moves to another row.
            folder = alike[0] if alike else fresh
    else:
        folder = alike[0] if alike else fresh
    if folder != out.places.get(folder.key):
        table.put(transaction, folder)
    out.single_files[text] = folder


def _find_moved(manifest: FileManifest, places: Places, real: str) -> Folder | None:
    """The folder that was moved to a path: it is gone from where it was, and most of its files are here."""
    best: tuple[float, Folder] | None = None
    for folder in places.folders:
        if not folder.whole or os.path.lexists(folder.root):
            continue
        rows = [row for row, _ in manifest.under(folder.key)]
        step = max(1, len(rows) // COMPARED_FILES)
        compared = rows[::step][:COMPARED_FILES]
        share = sum(_is_same_file(row, real) for row in compared) / len(compared) if compared else 0.0
        if share >= MIN_SAME_SHARE and (best is None or share > best[0]):
            best = share, folder
    return None if best is None else best[1]


def _is_same_file(row: FileRow, root: str) -> bool:
    path = os.path.join(root, *row.path.split("/"))  # noqa: PTH118 - keeps bytes that are not UTF-8
    try:
        status = Path(path).lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size != row.size:
            return False
        if status.st_ino == row.inode or status.st_mtime_ns == row.mtime_ns:
            return True
        data, _ = read_regular_file(path, MAX_COMPARED_BYTES)
    except (OSError, ValueError, UnreadableFile):
        return False
    return hashlib.blake2b(data, digest_size=16).digest() == row.hash
