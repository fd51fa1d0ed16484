"""Opening a file below allowed folders: no link, no `..` and no race leads out of them.

The way is walked by descriptors, one name at a time, and a link is read and followed by hand. What is outside is
never looked at, so an answer does not say whether anything is there.
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
"""Links on one way; what Linux allows, too."""

MAX_DEPTH: Final = 256
"""Folders in folders, each an open descriptor for a moment."""

MAX_TRIES: Final = 16
"""Looks at a name that is a link one moment and none the next."""

SYSTEM: Final = frozenset({("proc",), ("sys",), ("dev",)})
"""Folders of the system that are not entered from above."""

SYSTEM_KINDS: Final = frozenset(
    "autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl mqueue nsfs proc pstore "
    "securityfs selinuxfs sysfs tracefs".split()
)
"""File systems that hold the state of the machine and no files of anybody."""

_MOUNTS: Final = "/proc/self/mountinfo"
_NOWHERE: Final = (errno.ENOENT, errno.ENOTDIR)
_NO_NAME: Final = (errno.ENAMETOOLONG, errno.EILSEQ)
_IS_LINK: Final = (errno.ELOOP, errno.EMLINK)
_FLAGS: Final = sum(
    getattr(os, name, 0) for name in ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY")
)
_PASSING: Final = sum(getattr(os, name, 0) for name in ("O_PATH", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"))

Parts = tuple[str, ...]
Hides = Callable[[Path], bool]
"""Whether a caller may not know of what is at a real path."""


class ReadError(SennitError):
    """A file cannot be read; `code` says why, and the text begins with it: `[ERROR: NOT_FOUND] …`."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(f"[ERROR: {code}] {message}")


class Root(NamedTuple):
    """An allowed folder or file: its real place, and the name it was given by."""

    real: Parts
    given: Parts


class Opened(NamedTuple):
    """A regular file, open, and where it really is."""

    descriptor: int
    status: os.stat_result
    path: Path


class Refusals:
    """The errors of one request, in its own words."""

    def __init__(self, asked: object, roots: Sequence[Path]) -> None:
        self.asked = repr(asked)
        self._roots = roots

    def outside(self) -> ReadError:
        return ReadError("ACCESS_DENIED", f"{self.asked} may not be read. {self._allowed()}")

    def of_the_system(self) -> ReadError:
        return ReadError(
            "ACCESS_DENIED",
            f"{self.asked} is kept by the system about itself and is never read. {self._allowed()}",
        )

    def missing(self) -> ReadError:
        return ReadError("NOT_FOUND", f"There is no file {self.asked} in the allowed folders.")

    def folder(self) -> ReadError:
        return ReadError("IS_DIRECTORY", f"{self.asked} is a folder. Name a file in it.")

    def special(self) -> ReadError:
        return ReadError("NOT_A_FILE", f"{self.asked} is a device, pipe or socket, which is never opened.")

    def bad_path(self, why: str) -> ReadError:
        return ReadError("BAD_PATH", f"{self.asked[:200]} is no path: {why}.")

    def unreadable(self, why: str) -> ReadError:
        return ReadError("UNREADABLE", f"{self.asked} cannot be read: {why}.")

    def system(self, error: OSError) -> ReadError:
        """What the operating system said, as one of the above."""
        if error.errno in _NOWHERE:
            return self.missing()
        return (self.bad_path if error.errno in _NO_NAME else self.unreadable)(said(error))

    def _allowed(self) -> str:
        return f"Allowed folders: {', '.join(repr(str(root)) for root in self._roots) or 'none'}."


def said(error: OSError) -> str:
    """What the operating system says, inside a sentence."""
    return (error.strerror or str(error)).lower()


def parts_of(path: str) -> Parts:
    """The names in a path; `..` is one of them."""
    return tuple(part for part in path.split("/") if part not in ("", "."))


def open_by_steps(
    roots: Sequence[Root], start: Parts | None, path: str, hides: Hides | None, refusals: Refusals
) -> Opened:
    """Open a file for reading; a relative path begins at the real place `start`. Raises ReadError."""
    walk = _Walk(roots, hides, refusals)
    try:
        return walk.go(path, start)
    except OSError as error:
        raise refusals.system(error) from error
    finally:
        walk.close()


class _Walk:
    """One way through the allowed folders."""

    def __init__(self, roots: Sequence[Root], hides: Hides | None, refusals: Refusals) -> None:
        self._roots = roots
        self._hides = hides
        self._refusals = refusals
        self._position: list[str] = []
        """Real names from the top of the file system."""
        self._descriptors: list[int] = []
        """Open folders; the last, if any, is the one at the position."""
        self._todo: deque[str] = deque()

    def go(self, path: str, start: Parts | None) -> Opened:
        self._turn(path, start)
        links = 0
        while self._todo:
            name = self._todo.popleft()
            if name == "..":
                self._up()
                continue
            target = self._down(name)
            if target is not None:
                links += 1
                if links > MAX_LINKS:
                    raise self._refusals.unreadable(f"more than {MAX_LINKS} links lead to each other")
                self._turn(target, None)
        return self._arrived()

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _turn(self, path: str, start: Parts | None) -> None:
        """Take a path, given or found in a link, as the next part of the way."""
        parts = parts_of(path)
        if path.startswith("/"):
            parts = self._real(parts)
        elif start is not None:
            parts = start + parts
        else:
            self._todo.extendleft(reversed(parts))
            return
        self.close()
        self._position.clear()
        self._todo.extendleft(reversed(parts))

    def _real(self, parts: Parts) -> Parts:
        """The path with the name that a root was given by replaced by its real place."""
        if not self._inside(parts):
            for root in self._roots:
                if parts[: len(root.given)] == root.given:
                    return root.real + parts[len(root.given) :]
        return parts

    def _inside(self, parts: Parts) -> bool:
        return any(parts[: len(root.real)] == root.real for root in self._roots)

    def _up(self) -> None:
        # The position has no links in it, so the folder above it is its path without the last name.
        if self._descriptors:
            os.close(self._descriptors.pop())
        if self._position:
            self._position.pop()

    def _down(self, name: str) -> str | None:
        """Enter a folder or open a file; of a link, give the target instead."""
        here = (*self._position, name)
        if not self._inside(here):
            if not any(root.real[: len(here)] == here for root in self._roots):
                raise self._refusals.outside()
            # On the way to an allowed folder: known to be there, and not looked at.
            self._position.append(name)
            return None
        if here in SYSTEM and not any(root.real[: len(here)] == here for root in self._roots):
            raise self._refusals.of_the_system()
        if len(here) > MAX_DEPTH:
            raise self._refusals.bad_path(f"it is deeper than {MAX_DEPTH} folders")
        if not self._descriptors:
            self._descriptors.append(self._folder_at_position())
        return self._look(name)

    def _folder_at_position(self) -> int:
        """The folder above an allowed one, reached without links: none was in its real path."""
        descriptor = os.open("/", _PASSING)
        for name in self._position:
            above = descriptor
            try:
                descriptor = os.open(name, _PASSING, dir_fd=above)
            except OSError as error:
                raise (self._refusals.missing() if error.errno in _IS_LINK else error) from error
            finally:
                os.close(above)
        return descriptor

    def _look(self, name: str) -> str | None:
        folder = self._descriptors[-1]
        for _ in range(MAX_TRIES):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            name = _spelled(folder, name, status)
            if self._hides is not None and self._hides(self._path(name)):
                raise self._refusals.missing()
            try:
                if stat.S_ISLNK(status.st_mode):
                    return os.readlink(name, dir_fd=folder)
                # To open a device may do something, so only what can be read is opened at all.
                if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                    raise self._refusals.special()
                self._descriptors.append(os.open(name, _FLAGS, dir_fd=folder))
            except OSError as error:
                # It is a link now, or no longer one: somebody changed it since we looked.
                if error.errno in _IS_LINK or (error.errno == errno.EINVAL and stat.S_ISLNK(status.st_mode)):
                    continue
                raise
            self._position.append(name)
            return None
        raise self._refusals.unreadable("it changes all the time")

    def _path(self, *more: str) -> Path:
        return Path("/", *self._position, *more)

    def _arrived(self) -> Opened:
        if not self._inside(tuple(self._position)):
            raise self._refusals.outside()
        if not self._descriptors:
            raise self._refusals.folder()
        status = checked(os.fstat(self._descriptors[-1]), self._refusals)
        return Opened(self._descriptors.pop(), status, self._path())


def checked(status: os.stat_result, refusals: Refusals) -> os.stat_result:
    """The same status, when it is that of a regular file and not of one that the system makes up."""
    if stat.S_ISDIR(status.st_mode):
        raise refusals.folder()
    if not stat.S_ISREG(status.st_mode):
        raise refusals.special()
    # Only a file system without a device of its own can be one of these, and most have one.
    if sys.platform == "linux" and os.major(status.st_dev) == 0 and status.st_dev in _system_devices():
        raise refusals.of_the_system()
    return status


def _spelled(folder: int, name: str, status: os.stat_result) -> str:
    """The name as its folder has it: some file systems find `SECRET.md` when asked for `secret.md`."""
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
    return next((own for own, inode in names.items() if inode == status.st_ino), name)


def _system_devices() -> frozenset[int]:
    """The devices of mounted file systems that are no place for files; none where there is no such list."""
    try:
        lines = Path(_MOUNTS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    out = set()
    for line in lines:
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] in SYSTEM_KINDS:
            major, _, minor = before.split(" ")[2].partition(":")
            out.add(os.makedev(int(major), int(minor)))
    return frozenset(out)
