"""The list of segments of a derived index: published atomically, checked when read, swept when replaced.

A segment holds the records of a range of change numbers. The ranges say what an index has applied: whatever
no sound segment covers is simply read again from the truth, so a lost file costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Final, Literal, Protocol

import xxhash
from filelock import FileLock, Timeout

from sennit.stores.embedded.arrays import Arrays, Damaged, read_arrays, write_arrays

SWEEP_AFTER_SECONDS: Final = 20.0
"""A file that is on no list is kept this long when nobody seems to be at work: it may be about to be published."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One segment in the list: the changes low < n <= high, with removals up to `clean` left out."""

    file: str
    checksum: str
    low: int
    high: int
    clean: int
    count: int
    of: str = ""
    """Of what, where an index has segments of several things."""


Work = Literal["fold", "merge"]
"""Folding and publishing take moments, merging takes as long as it takes: each has its own lock."""


class Segments(Protocol):
    """Where an index keeps its segments."""

    def stamp(self) -> tuple[int, int]:
        """Changes whenever a list is published."""
        ...

    def entries(self) -> tuple[Entry, ...]:
        """The published list; raises Damaged when it cannot be trusted."""
        ...

    def read(self, entry: Entry) -> Arrays:
        """The arrays of one segment; raises Damaged unless they are as they were written."""
        ...

    def write(self, arrays: Arrays, *, low: int, high: int, clean: int, count: int, of: str = "") -> Entry:
        """Keep a new segment, not yet on the list."""
        ...

    def publish(self, entries: Sequence[Entry]) -> None:
        """Replace the list."""
        ...

    def exclusive(self, work: Work, *, wait: bool = False) -> AbstractContextManager[bool]:
        """The right to do some work alone; unless told to wait, yields False at once when another has it."""
        ...


class MemorySegments:
    """Segments of a database in memory: the arrays themselves."""

    def __init__(self) -> None:
        self._entries: tuple[Entry, ...] = ()
        self._arrays: dict[str, Arrays] = {}
        self._published = 0
        self._locks = {"fold": Lock(), "merge": Lock()}

    def stamp(self) -> tuple[int, int]:
        return (self._published, 0)

    def entries(self) -> tuple[Entry, ...]:
        return self._entries

    def read(self, entry: Entry) -> Arrays:
        return self._arrays[entry.file]

    def write(self, arrays: Arrays, *, low: int, high: int, clean: int, count: int, of: str = "") -> Entry:
        name = f"{low:x}-{high:x}-{time.time_ns():x}"
        self._arrays[name] = arrays
        return Entry(name, "", low, high, clean, count, of)

    def publish(self, entries: Sequence[Entry]) -> None:
        # Only what was on the list goes: another thread may have written what it will publish next.
        gone = {entry.file for entry in self._entries} - {entry.file for entry in entries}
        self._entries = tuple(entries)
        self._published += 1
        for name in gone:
            del self._arrays[name]

    @contextlib.contextmanager
    def exclusive(self, work: Work, *, wait: bool = False) -> Iterator[bool]:
        mine = self._locks[work].acquire(blocking=wait)
        try:
            yield mine
        finally:
            if mine:
                self._locks[work].release()


class SegmentFolder:
    """The segments of one index on disk. The identity says what they were built with."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = folder
        self._identity = identity
        self._manifest = folder / "manifest.json"
        self._locks = {work: FileLock(folder.with_suffix(f".{work}.lock")) for work in ("fold", "merge")}

    def stamp(self) -> tuple[int, int]:
        try:
            status = self._manifest.stat()
        except OSError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_ino)

    def entries(self) -> tuple[Entry, ...]:
        try:
            document = json.loads(self._manifest.read_bytes())
            body = document["body"]
            if xxhash.xxh3_128_hexdigest(json.dumps(body, sort_keys=True).encode()) != document["checksum"]:
                raise Damaged("manifest.json: its contents do not match its checksum")
            if body["identity"] != self._identity:
                raise Damaged("it was built by another version or with other text analysis")
            return tuple(Entry(**entry) for entry in body["segments"])
        except FileNotFoundError as error:
            if not any(self._folder.glob("*.seg")):
                return ()
            if self._manifest.exists():
                return self.entries()  # the first list was published between the two looks
            raise Damaged("manifest.json is missing") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Damaged(f"manifest.json: {error}") from error

    def _make_room(self) -> None:
        """Have the folder, whatever is in its place: all here is sennit's own, and can be made again."""
        for path in (self._folder.parent, self._folder):
            if path.exists() and not path.is_dir():
                path.unlink()
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._manifest.is_dir():
            shutil.rmtree(self._manifest)

    def _listed(self) -> set[str]:
        try:
            return {Path(entry.file).name for entry in self.entries()}
        except Damaged:
            return set()

    def read(self, entry: Entry) -> Arrays:
        if Path(entry.file).name != entry.file:
            raise Damaged(f"manifest.json names a file outside its folder: {entry.file!r}")
        return read_arrays(self._folder / entry.file, entry.checksum)

    def write(self, arrays: Arrays, *, low: int, high: int, clean: int, count: int, of: str = "") -> Entry:
        self._make_room()
        if not self._manifest.exists():
            # So that segments without a list are a sign of damage, and not of a first fold under way.
            self.publish(())
        name = f"{low:x}-{high:x}-{os.getpid():x}-{time.time_ns():x}.seg"
        checksum = write_arrays(self._folder / name, arrays)
        return Entry(name, checksum, low, high, clean, count, of)

    def publish(self, entries: Sequence[Entry]) -> None:
        body = {"identity": self._identity, "segments": [asdict(entry) for entry in entries]}
        checksum = xxhash.xxh3_128_hexdigest(json.dumps(body, sort_keys=True).encode())
        self._make_room()
        listed = self._listed()
        temporary = self._manifest.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps({"body": body, "checksum": checksum}))
        temporary.replace(self._manifest)
        kept = {entry.file for entry in entries}
        # Who has a replaced file mapped keeps it; who has read the old list finds it gone, and reads the new one.
        for file in listed - kept:
            with contextlib.suppress(OSError):
                (self._folder / file).unlink()
        with self.exclusive("merge") as alone:
            if alone:
                self._sweep(kept)

    def _sweep(self, kept: set[str]) -> None:
        """Delete what a process that died has left behind, while nobody merges."""
        horizon = time.time() - SWEEP_AFTER_SECONDS
        for path in [*self._folder.glob("*.seg"), *self._folder.glob("*.tmp")]:
            with contextlib.suppress(OSError):
                if path.name not in kept and path.stat().st_mtime < horizon:
                    path.unlink()

    @contextlib.contextmanager
    def exclusive(self, work: Work, *, wait: bool = False) -> Iterator[bool]:
        self._make_room()
        lock = self._locks[work]
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
