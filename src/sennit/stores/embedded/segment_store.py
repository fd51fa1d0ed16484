"""Storage for the segments of a derived index: an atomically published manifest and checksummed segment files.

Each segment holds the records of a range of change numbers. The ranges in the manifest tell which changes an index
has applied. The index reads every change that no valid segment covers from the primary store again, so a lost file
costs time but no data.
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
from typing import TYPE_CHECKING, Final, Literal, Protocol

import xxhash

from sennit.stores.embedded.arrays import Arrays, CorruptFile, read_arrays, write_arrays

if TYPE_CHECKING:
    from filelock import FileLock

ORPHAN_AGE_SECONDS: Final = 20.0
"""An unlisted file is deleted only when it is older than this: another process may be about to publish it."""


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """The manifest entry of one segment, which covers the changes low < n <= high."""

    file: str
    checksum: str
    low: int
    high: int
    deletes_applied: int
    """The segment holds no record that was deleted by a change up to this one."""
    count: int
    field: str = ""
    """The record field whose values it holds; only in the field index."""


Task = Literal["flush", "merge"]
"""A flush takes milliseconds and a merge may take minutes, so each has its own lock."""


class SegmentStore(Protocol):
    """Stores the segments of one index."""

    def generation(self) -> tuple[int, int]:
        """A value that changes whenever a manifest is published."""
        ...

    def infos(self) -> tuple[SegmentInfo, ...]:
        """The published manifest; raises CorruptFile when it cannot be trusted."""
        ...

    def read(self, info: SegmentInfo) -> Arrays:
        """The arrays of one segment; raises CorruptFile unless they are exactly what was written."""
        ...

    def write(
        self, arrays: Arrays, *, low: int, high: int, deletes_applied: int, count: int, field: str = ""
    ) -> SegmentInfo:
        """Store a new segment without listing it in the manifest."""
        ...

    def publish(self, infos: Sequence[SegmentInfo]) -> None:
        """Replace the manifest."""
        ...

    def exclusive(self, task: Task, *, wait: bool = False) -> AbstractContextManager[bool]:
        """Lock a task; without `wait`, yields False at once when another thread or process holds the lock."""
        ...


class MemorySegmentStore:
    """Keeps the segments of an in-memory database."""

    def __init__(self) -> None:
        self._infos: tuple[SegmentInfo, ...] = ()
        self._arrays: dict[str, Arrays] = {}
        self._generation = 0
        self._locks = {"flush": Lock(), "merge": Lock()}

    def generation(self) -> tuple[int, int]:
        return (self._generation, 0)

    def infos(self) -> tuple[SegmentInfo, ...]:
        return self._infos

    def read(self, info: SegmentInfo) -> Arrays:
        return self._arrays[info.file]

    def write(
        self, arrays: Arrays, *, low: int, high: int, deletes_applied: int, count: int, field: str = ""
    ) -> SegmentInfo:
        name = f"{low:x}-{high:x}-{time.time_ns():x}"
        self._arrays[name] = arrays
        return SegmentInfo(name, "", low, high, deletes_applied, count, field)

    def publish(self, infos: Sequence[SegmentInfo]) -> None:
        # Delete only segments of the old manifest: another thread may have written one that it publishes next.
        replaced = {info.file for info in self._infos} - {info.file for info in infos}
        self._infos = tuple(infos)
        self._generation += 1
        for name in replaced:
            del self._arrays[name]

    @contextlib.contextmanager
    def exclusive(self, task: Task, *, wait: bool = False) -> Iterator[bool]:
        acquired = self._locks[task].acquire(blocking=wait)
        try:
            yield acquired
        finally:
            if acquired:
                self._locks[task].release()


class DiskSegmentStore:
    """Keeps the segments of one index in a folder. The identity names the format and settings that built them."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = folder
        self._identity = identity
        self._manifest = folder / "manifest.json"
        self._locks: dict[Task, FileLock] = {}
        self._locks_lock = Lock()

    def generation(self) -> tuple[int, int]:
        try:
            status = self._manifest.stat()
        except OSError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_ino)

    def infos(self) -> tuple[SegmentInfo, ...]:
        try:
            document = json.loads(self._manifest.read_bytes())
            body = document["body"]
            if xxhash.xxh3_128_hexdigest(json.dumps(body, sort_keys=True).encode()) != document["checksum"]:
                raise CorruptFile("manifest.json: its contents do not match its checksum")
            if body["identity"] != self._identity:
                raise CorruptFile("it was built by another version or with other text analysis")
            return tuple(SegmentInfo(**info) for info in body["segments"])
        except FileNotFoundError as error:
            if not any(self._folder.glob("*.seg")):
                return ()
            if self._manifest.exists():
                return self.infos()  # the first manifest was published between the two checks
            raise CorruptFile("manifest.json is missing") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptFile(f"manifest.json: {error}") from error

    def _ensure_folder(self) -> None:
        """Create the folder, replacing anything in its place: everything here is derived and can be rebuilt."""
        for path in (self._folder.parent, self._folder):
            if path.exists() and not path.is_dir():
                path.unlink()
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._manifest.is_dir():
            shutil.rmtree(self._manifest)

    def _listed_files(self) -> set[str]:
        try:
            return {Path(info.file).name for info in self.infos()}
        except CorruptFile:
            return set()

    def read(self, info: SegmentInfo) -> Arrays:
        if Path(info.file).name != info.file:
            raise CorruptFile(f"manifest.json names a file outside its folder: {info.file!r}")
        return read_arrays(self._folder / info.file, info.checksum)

    def write(
        self, arrays: Arrays, *, low: int, high: int, deletes_applied: int, count: int, field: str = ""
    ) -> SegmentInfo:
        self._ensure_folder()
        if not self._manifest.exists():
            # Then segments without a manifest are always a sign of damage, never of a first flush in progress.
            self.publish(())
        name = f"{low:x}-{high:x}-{os.getpid():x}-{time.time_ns():x}.seg"
        checksum = write_arrays(self._folder / name, arrays)
        return SegmentInfo(name, checksum, low, high, deletes_applied, count, field)

    def publish(self, infos: Sequence[SegmentInfo]) -> None:
        body = {"identity": self._identity, "segments": [asdict(info) for info in infos]}
        checksum = xxhash.xxh3_128_hexdigest(json.dumps(body, sort_keys=True).encode())
        self._ensure_folder()
        before = self._listed_files()
        temporary = self._manifest.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps({"body": body, "checksum": checksum}))
        # The system's own time of a change is a few milliseconds coarse, and the number of a deleted file is used again:
        # two manifests could have the same generation.
        now = time.time_ns()
        os.utime(temporary, ns=(now, now))
        temporary.replace(self._manifest)
        listed = {info.file for info in infos}
        # A reader that has mapped a replaced file keeps it. A reader that has only read the old manifest finds the
        # file gone and reads the new manifest.
        for file in before - listed:
            with contextlib.suppress(OSError):
                (self._folder / file).unlink()
        with self.exclusive("merge") as acquired:
            if acquired:
                self._delete_orphans(listed)

    def _delete_orphans(self, listed: set[str]) -> None:
        """Delete the files of processes that died; the caller holds the merge lock."""
        horizon = time.time() - ORPHAN_AGE_SECONDS
        for path in [*self._folder.glob("*.seg"), *self._folder.glob("*.tmp")]:
            with contextlib.suppress(OSError):
                if path.name not in listed and path.stat().st_mtime < horizon:
                    path.unlink()

    @contextlib.contextmanager
    def exclusive(self, task: Task, *, wait: bool = False) -> Iterator[bool]:
        # A process that only searches takes no lock.
        from filelock import FileLock, Timeout

        self._ensure_folder()
        with self._locks_lock:
            if task not in self._locks:
                self._locks[task] = FileLock(self._folder.with_suffix(f".{task}.lock"))
            lock = self._locks[task]
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
