"""Opening a file inside allowed folders: no link, no `..` and no race condition leads outside.

The path is walked by folder descriptors, one name at a time, and links are resolved by this module and not by the
operating system. Nothing outside is ever accessed, so an error does not reveal whether something exists there.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from sennit.errors import SennitError

MAX_LINKS: Final = 40
"""Links in one path; the limit of Linux, too."""

MAX_DEPTH: Final = 256
"""Nested folders; each is an open descriptor during the walk."""

MAX_ATTEMPTS: Final = 16
"""Attempts to open a name that changes between a link and a file."""

SYSTEM_FOLDERS: Final = frozenset({("proc",), ("sys",), ("dev",)})
"""System folders that are not entered from a folder above them."""

SYSTEM_FILESYSTEMS: Final = frozenset(
    "autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl mqueue nsfs proc pstore "
    "securityfs selinuxfs sysfs tracefs".split()
)
"""File systems that expose the state of the machine and hold no user files."""

_MOUNTS: Final = "/proc/self/mountinfo"
_MISSING_ERRORS: Final = (errno.ENOENT, errno.ENOTDIR)
_BAD_NAME_ERRORS: Final = (errno.ENAMETOOLONG, errno.EILSEQ)
_LINK_ERRORS: Final = (errno.ELOOP, errno.EMLINK)
_FILE_FLAGS: Final = sum(
    getattr(os, name, 0) for name in ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY")
)
_FOLDER_FLAGS: Final = sum(
    getattr(os, name, 0) for name in ("O_PATH", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
)

Parts = tuple[str, ...]
IsHidden = Callable[[Path], bool]
"""Whether a real path is hidden from the caller."""


class ReadError(SennitError):
    """A file cannot be read. `code` is the reason, and the message begins with it: `[ERROR: NOT_FOUND] …`."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(f"[ERROR: {code}] {message}")


class Root(NamedTuple):
    """An allowed folder or file: its real path, and the path that the user gave."""

    real: Parts
    given: Parts


class OpenedFile(NamedTuple):
    """An open regular file and its real path."""

    descriptor: int
    status: os.stat_result
    path: Path


class ReadErrors:
    """Creates the errors of one request, with the path as requested."""

    def __init__(self, path: object, roots: Sequence[Path]) -> None:
        self.path = repr(path)
        self._roots = roots

    def outside(self) -> ReadError:
        return ReadError("ACCESS_DENIED", f"{self.path} may not be read. {self._allowed()}")

    def system_file(self) -> ReadError:
        return ReadError(
            "ACCESS_DENIED",
            f"{self.path} belongs to the operating system and is never read. {self._allowed()}",
        )

    def missing(self) -> ReadError:
        return ReadError("NOT_FOUND", f"There is no file {self.path} in the allowed folders.")

    def folder(self) -> ReadError:
        return ReadError("IS_DIRECTORY", f"{self.path} is a folder. Name a file in it.")

    def special(self) -> ReadError:
        return ReadError("NOT_A_FILE", f"{self.path} is a device, pipe or socket and is never opened.")

    def bad_path(self, why: str) -> ReadError:
        return ReadError("BAD_PATH", f"{self.path[:200]} is not a valid path: {why}.")

    def unreadable(self, why: str) -> ReadError:
        return ReadError("UNREADABLE", f"{self.path} cannot be read: {why}.")

    def system(self, error: OSError) -> ReadError:
        """Translate an error of the operating system."""
        if error.errno in _MISSING_ERRORS:
            return self.missing()
        return (self.bad_path if error.errno in _BAD_NAME_ERRORS else self.unreadable)(os_reason(error))

    def _allowed(self) -> str:
        return f"Allowed folders: {', '.join(repr(str(root)) for root in self._roots) or 'none'}."


def os_reason(error: OSError) -> str:
    """The reason of an operating system error, for use inside a sentence."""
    return (error.strerror or str(error)).lower()


def path_parts(path: str) -> Parts:
    """The names in a path; `..` is one of them."""
    return tuple(part for part in path.split("/") if part not in ("", "."))


def open_by_descriptors(
    roots: Sequence[Root], start: Parts | None, path: str, is_hidden: IsHidden | None, errors: ReadErrors
) -> OpenedFile:
    """Open a file for reading; a relative path begins at the real path `start`. Raises ReadError."""
    walk = _PathWalk(roots, is_hidden, errors)
    try:
        return walk.open(path, start)
    except OSError as error:
        raise errors.system(error) from error
    finally:
        walk.close()


class _PathWalk:
    """One walk through the allowed folders."""

    def __init__(self, roots: Sequence[Root], is_hidden: IsHidden | None, errors: ReadErrors) -> None:
        self._roots = roots
        self._is_hidden = is_hidden
        self._errors = errors
        self._position: list[str] = []
        """The names of the real path so far, from the root of the file system."""
        self._descriptors: list[int] = []
        """Open folders; the last one is the folder at the position."""
        self._remaining: deque[str] = deque()

    def open(self, path: str, start: Parts | None) -> OpenedFile:
        self._push(path, start)
        links = 0
        while self._remaining:
            name = self._remaining.popleft()
            if name == "..":
                self._up()
                continue
            target = self._down(name)
            if target is not None:
                links += 1
                if links > MAX_LINKS:
                    raise self._errors.unreadable(f"its path has more than {MAX_LINKS} links")
                self._push(target, None)
        return self._finish()

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _push(self, path: str, start: Parts | None) -> None:
        """Put a path, requested or read from a link, before the remaining names."""
        parts = path_parts(path)
        if path.startswith("/"):
            parts = self._replace_given_root(parts)
        elif start is not None:
            parts = start + parts
        else:
            self._remaining.extendleft(reversed(parts))
            return
        self.close()
        self._position.clear()
        self._remaining.extendleft(reversed(parts))

    def _replace_given_root(self, parts: Parts) -> Parts:
        """Replace the given path of a root by its real path."""
        if not self._is_inside(parts):
            for root in self._roots:
                if parts[: len(root.given)] == root.given:
                    return root.real + parts[len(root.given) :]
        return parts

    def _is_inside(self, parts: Parts) -> bool:
        return any(parts[: len(root.real)] == root.real for root in self._roots)

    def _up(self) -> None:
        # The position contains no links, so its parent is the position without the last name.
        if self._descriptors:
            os.close(self._descriptors.pop())
        if self._position:
            self._position.pop()

    def _down(self, name: str) -> str | None:
        """Enter a folder or open a file; for a link, return its target instead."""
        here = (*self._position, name)
        if not self._is_inside(here):
            if not any(root.real[: len(here)] == here for root in self._roots):
                raise self._errors.outside()
            # A folder above an allowed one exists, so it is not accessed.
            self._position.append(name)
            return None
        if here in SYSTEM_FOLDERS and not any(root.real[: len(here)] == here for root in self._roots):
            raise self._errors.system_file()
        if len(here) > MAX_DEPTH:
            raise self._errors.bad_path(f"it is deeper than {MAX_DEPTH} folders")
        if not self._descriptors:
            self._descriptors.append(self._folder_at_position())
        return self._enter(name)

    def _folder_at_position(self) -> int:
        """Open the folder above an allowed one without following links: its real path contains none."""
        descriptor = os.open("/", _FOLDER_FLAGS)
        for name in self._position:
            above = descriptor
            try:
                descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=above)
            except OSError as error:
                raise (self._errors.missing() if error.errno in _LINK_ERRORS else error) from error
            finally:
                os.close(above)
        return descriptor

    def _enter(self, name: str) -> str | None:
        folder = self._descriptors[-1]
        for _ in range(MAX_ATTEMPTS):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            name = _actual_name(folder, name, status)
            if self._is_hidden is not None and self._is_hidden(self._path(name)):
                raise self._errors.missing()
            try:
                if stat.S_ISLNK(status.st_mode):
                    return os.readlink(name, dir_fd=folder)
                # Opening a device can have side effects, so only regular files and folders are opened.
                if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                    raise self._errors.special()
                self._descriptors.append(os.open(name, _FILE_FLAGS, dir_fd=folder))
            except OSError as error:
                # Since the stat, a link was replaced by a file or the other way round: try again.
                if error.errno in _LINK_ERRORS or (
                    error.errno == errno.EINVAL and stat.S_ISLNK(status.st_mode)
                ):
                    continue
                raise
            self._position.append(name)
            return None
        raise self._errors.unreadable("it keeps changing")

    def _path(self, *more: str) -> Path:
        return Path("/", *self._position, *more)

    def _finish(self) -> OpenedFile:
        if not self._is_inside(tuple(self._position)):
            raise self._errors.outside()
        if not self._descriptors:
            raise self._errors.folder()
        status = check_regular(os.fstat(self._descriptors[-1]), self._errors)
        return OpenedFile(self._descriptors.pop(), status, self._path())


def check_regular(status: os.stat_result, errors: ReadErrors) -> os.stat_result:
    """Return the status of a regular file; raises ReadError for anything else and for files of the system."""
    if stat.S_ISDIR(status.st_mode):
        raise errors.folder()
    if not stat.S_ISREG(status.st_mode):
        raise errors.special()
    # Virtual file systems have major device number 0, so most files skip the slower check.
    if sys.platform == "linux" and os.major(status.st_dev) == 0 and status.st_dev in _system_devices():
        raise errors.system_file()
    return status


def _actual_name(folder: int, name: str, status: os.stat_result) -> str:
    """The name as stored in the folder: a case-insensitive file system finds `SECRET.md` for `secret.md`."""
    try:
        if name.isascii():
            other = name.swapcase()
            found = os.stat(other, dir_fd=folder, follow_symlinks=False)
            if other == name or not os.path.samestat(found, status):
                return name
        with os.scandir(folder) as entries:
            names = {entry.name: entry.inode() for entry in entries}
    except OSError:
        return name
    if name in names:
        return name
    return next((actual for actual, inode in names.items() if inode == status.st_ino), name)


def _system_devices() -> frozenset[int]:
    """The devices of mounted system file systems; empty if the platform has no list of mounts."""
    try:
        lines = Path(_MOUNTS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    out = set()
    for line in lines:
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] in SYSTEM_FILESYSTEMS:
            major, _, minor = before.split(" ")[2].partition(":")
            out.add(os.makedev(int(major), int(minor)))
    return frozenset(out)
