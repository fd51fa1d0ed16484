"""The git revision of a folder, read from the files of git.

Git itself is never run: the configuration of a repository can name commands that `git status` executes, and a folder
that somebody indexes may come from anywhere. What these files do not say is unknown, never guessed.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from sennit.places import Revision

MAX_SMALL_FILE_BYTES: Final = 64 * 1024
"""HEAD, references and pointers to other folders are one line each."""

MAX_LARGE_FILE_BYTES: Final = 256 * 1024 * 1024
"""The index and the packed references; a larger file leaves the question open."""

MAX_REFERENCES: Final = 10
"""How many symbolic references are followed."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCHES: Final = "refs/heads/"
_SHA1_BYTES: Final = 20
_ENTRY: Final = struct.Struct(">10I20sH")
"""Times of change and modification, device, inode, mode, user, group, size, object id, and flags."""

_SYMLINK, _SUBMODULE, _DIRECTORY = 0o120000, 0o160000, 0o040000
_ASSUME_UNCHANGED, _EXTENDED, _STAGE, _NAME_LENGTH = 0x8000, 0x4000, 0x3000, 0x0FFF
_SKIP_WORKTREE: Final = 0x4000
"""A flag of the second word: the file is meant to be absent."""

_UNREADABLE: Final = (OSError, ValueError, struct.error, IndexError)


@dataclass(frozen=True, slots=True)
class GitFolder:
    """A working tree and its git folders."""

    top: str
    """The root of the working tree."""
    own: str
    """The folder of this worktree, with HEAD and the index."""
    common: str
    """The folder that all worktrees share, with the branches."""

    @classmethod
    def around(cls, folder: str) -> GitFolder | None:
        """The repository that a real, absolute path belongs to; None if there is none."""
        for top in (folder, *map(str, Path(folder).parents)):
            own = os.path.join(top, ".git")  # noqa: PTH118 - keeps bytes that are not UTF-8
            if os.path.isfile(own):  # noqa: PTH113 - of a worktree or a submodule
                line = _read_line(own)
                if not line.startswith("gitdir: "):
                    return None
                own = os.path.normpath(os.path.join(top, line.removeprefix("gitdir: ")))  # noqa: PTH118
            if os.path.isfile(os.path.join(own, "HEAD")):  # noqa: PTH113, PTH118
                shared = _read_line(os.path.join(own, "commondir"))  # noqa: PTH118
                common = os.path.normpath(os.path.join(own, shared)) if shared else own  # noqa: PTH118
                return cls(top, own, common)
        return None

    def head(self) -> tuple[str, str]:
        """The commit and the branch; an empty text for what there is none of."""
        line = _read_line(os.path.join(self.own, "HEAD"))  # noqa: PTH118
        branch = ""
        for _ in range(MAX_REFERENCES):
            if not line.startswith("ref: "):
                break
            name = line.removeprefix("ref: ").strip()
            branch = branch or name.removeprefix(_BRANCHES)
            line = self._reference(name)
        return (line if _COMMIT.fullmatch(line) else ""), branch

    def _reference(self, name: str) -> str:
        if ".." in name.split("/") or name.startswith("/") or "\0" in name:
            return ""
        for folder in (self.own, self.common):
            line = _read_line(os.path.join(folder, name))  # noqa: PTH118
            if line:
                return line
        packed = _read(os.path.join(self.common, "packed-refs"), MAX_LARGE_FILE_BYTES)  # noqa: PTH118
        found = re.search(
            rb"^([0-9a-f]{40,64}) " + re.escape(os.fsencode(name)) + rb"$", packed, re.MULTILINE
        )
        return found[1].decode() if found else ""


class IndexEntry(NamedTuple):
    """A tracked file: what git knew about it when it last looked."""

    path: bytes
    mode: int
    mtime: tuple[int, int]
    size: int
    digest: bytes
    is_ignored: bool
    """Whether it is marked as unchanged or as absent."""
    stage: int


def read_revision(folder: str) -> Revision | None:
    """The revision of a folder, whose real path is given; None if it is in no repository, or has no commit yet."""
    try:
        found = GitFolder.around(folder)
        commit, branch = ("", "") if found is None else found.head()
        if found is None or not commit:
            return None
        return Revision(commit, branch, _is_dirty(found, folder))
    except _UNREADABLE:
        return None


def _is_dirty(repository: GitFolder, folder: str) -> bool | None:
    """Whether tracked files of the folder differ from the index, or something is staged; None if that is unknown."""
    try:
        path = os.path.join(repository.own, "index")  # noqa: PTH118
        data = _read(path, MAX_LARGE_FILE_BYTES)
        if not data:
            return None
        written = Path(path).stat().st_mtime_ns
        prefix = os.path.relpath(folder, repository.top)
        below = b"" if prefix == os.curdir else os.fsencode(prefix).replace(os.fsencode(os.sep), b"/") + b"/"
        entries, end = _read_index(data)
        if any(
            entry.stage or _differs(entry, repository.top, written)
            for entry in entries
            if entry.path.startswith(below)
        ):
            return True
        return _has_staged(data, end)
    except _UNREADABLE:
        return None


def _read_index(data: bytes) -> tuple[list[IndexEntry], int]:
    """The entries of an index of version 2 to 4 with SHA-1, and where its extensions begin; raises ValueError."""
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("another format")
    entries: list[IndexEntry] = []
    at, name = 12, b""
    for _ in range(count):
        values = _ENTRY.unpack_from(data, at)
        mtime, mode, size, digest, flags = values[2:4], values[6], values[9], values[10], values[11]
        start = at
        at += _ENTRY.size
        more = 0
        if flags & _EXTENDED:
            (more,) = struct.unpack_from(">H", data, at)
            at += 2
        if version == 4:
            kept, at = _read_offset(data, at)
            end = data.index(b"\0", at)
            name = name[: len(name) - kept] + data[at:end]
            at = end + 1
        else:
            end = data.index(b"\0", at)
            name = data[at:end]
            # Entries are padded with one to eight zero bytes to a multiple of eight.
            at = start + (end - start + 8) // 8 * 8
        ignored = bool(flags & _ASSUME_UNCHANGED or more & _SKIP_WORKTREE)
        entries.append(IndexEntry(name, mode, mtime, size, digest, ignored, flags & _STAGE))
    return entries, at


def _read_offset(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _differs(entry: IndexEntry, top: str, index_written: int) -> bool:
    """Whether a tracked file differs from its entry."""
    if entry.is_ignored or entry.mode & 0o170000 in (_SUBMODULE, _DIRECTORY):
        return False
    path = os.path.join(top, os.fsdecode(entry.path))  # noqa: PTH118
    try:
        status = os.lstat(path)
    except OSError:
        return True
    is_link = entry.mode & 0o170000 == _SYMLINK
    if stat.S_ISLNK(status.st_mode) != is_link or not (is_link or stat.S_ISREG(status.st_mode)):
        return True
    seconds, nanoseconds = divmod(status.st_mtime_ns, 1_000_000_000)
    same_time = entry.mtime[0] == seconds & 0xFFFFFFFF and entry.mtime[1] in (0, nanoseconds)
    if same_time and entry.size == status.st_size & 0xFFFFFFFF and status.st_mtime_ns < index_written:
        return False
    if status.st_size > MAX_LARGE_FILE_BYTES:
        return True
    content = os.fsencode(os.readlink(path)) if is_link else Path(path).read_bytes()  # noqa: PTH115
    object_id = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    object_id.update(content)
    return object_id.digest() != entry.digest


def _has_staged(data: bytes, at: int) -> bool | None:
    """Whether something is staged: git then marks the tree that it has cached in the index as invalid."""
    for name, start, size in _extensions(data, at):
        if name in (b"link", b"sdir"):
            # The index is split or sparse, so that its entries are not all there are.
            return None
        if name == b"TREE" and size:
            entries = data[start : start + size].split(b"\0", 1)[1].split(b" ", 1)[0]
            return entries.startswith(b"-")
    return None


def _extensions(data: bytes, at: int) -> Iterator[tuple[bytes, int, int]]:
    """Name, start and size of each extension."""
    while at + 8 <= len(data) - _SHA1_BYTES:
        name, size = struct.unpack_from(">4sI", data, at)
        yield name, at + 8, size
        at += 8 + size


def _read_line(path: str) -> str:
    """The first line of a small file; empty if there is none."""
    return os.fsdecode(_read(path, MAX_SMALL_FILE_BYTES).partition(b"\n")[0].strip())


def _read(path: str, max_bytes: int) -> bytes:
    """The content of a regular file; empty if there is none, or a larger one."""
    try:
        status = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
            return b""
        return Path(path).read_bytes()
    except (OSError, ValueError):
        return b""
