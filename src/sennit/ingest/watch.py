"""Watching folders: files that are saved, moved or deleted are indexed again, and nothing else.

The operating system reports which paths changed, through `watchfiles`. Each round visits only these paths, with the
same ignore rules as a full run, so a change to an ignored file costs almost nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sennit.errors import MissingExtra, NotFound, SennitError, SourceError
from sennit.ingest.git_files import GitFolder
from sennit.ingest.report import IndexReport
from sennit.ingest.walk import IGNORE_FILES, SETTINGS_FILE

DEBOUNCE_MS: Final = 200
"""The longest time that changes are collected before a round."""

QUIET_MS: Final = 50
"""A round starts when no change has come for this long."""

POLL_MS: Final = 200
"""How often the watched roots are checked. A root that was replaced must be watched again."""

RETRY_SECONDS: Final = 5.0
"""The delay after a failed round until everything is indexed again."""

MAX_CHANGED_PATHS: Final = 1000
"""With more changes at once, the system may have lost some, so everything is indexed again."""

IndexRound = Callable[[Sequence[str], frozenset[str] | None], IndexReport]
"""Indexes some roots: everything below them, or only the given paths and what is below those."""


@dataclass(frozen=True, slots=True)
class WatchedPaths:
    """The watched roots, and which changes below them matter."""

    roots: tuple[str, ...]
    """Real, absolute paths of files and folders."""
    hidden: bool = False
    skip_folders: tuple[str, ...] = ()
    """Real paths of folders to which sennit itself writes, such as the database."""

    @classmethod
    def resolve(
        cls,
        paths: Iterable[str | os.PathLike[str]],
        *,
        hidden: bool = False,
        skip_folders: Iterable[str | os.PathLike[str]] = (),
    ) -> WatchedPaths:
        """Resolve paths as a user gives them to real paths."""
        roots = dict.fromkeys(os.path.realpath(path) for path in paths)
        return cls(tuple(roots), hidden, tuple(os.path.realpath(path) for path in skip_folders))

    def is_relevant(self, path: str) -> bool:
        """Whether a change at this path can change what is indexed."""
        if any(_is_at_or_below(path, folder) for folder in self.skip_folders):
            return False
        root = next((root for root in self.roots if _is_at_or_below(path, root)), None)
        if root is None:
            return False
        *folders, name = ("", *Path(path).relative_to(root).parts)
        if name in IGNORE_FILES:
            name = ""
        names = [*folders, name]
        return ".git" not in names and (self.hidden or not any(name.startswith(".") for name in names))

    def rescan_path(self, path: str) -> str:
        """The path to index after a change: the whole folder for an ignore file or a settings file."""
        if Path(path).name in (*IGNORE_FILES, SETTINGS_FILE):
            return str(Path(path).parent)
        return path

    def heads(self) -> dict[str, tuple[str, str]]:
        """Commit and branch of the roots that are under git. Git changes them after the files."""
        found = ((root, GitFolder.around(root)) for root in self.roots)
        return {root: repository.head() for root, repository in found if repository is not None}

    def existing_roots(self) -> dict[str, tuple[int, int]]:
        """The roots that exist, with device and inode, which change when a root is replaced."""
        out = {}
        for root in self.roots:
            with contextlib.suppress(OSError):
                status = Path(root).lstat()
                out[root] = (status.st_dev, status.st_ino)
        return out


def watch(
    index_round: IndexRound,
    watched: WatchedPaths,
    stop: threading.Event,
    *,
    on_error: Callable[[Exception], None] = lambda _: None,
) -> Iterator[IndexReport]:
    """Index everything, then every change. Yields the report of the first round and of each that changed something.

    An error in the first round is raised. An error in a later round is passed to `on_error`, and everything is indexed
    again later. The iterator ends when `stop` is set, or with a KeyboardInterrupt.
    """
    rounds = _Rounds(index_round, watched, on_error)
    while not stop.is_set():
        existing = watched.existing_roots()
        for changed in _changes(existing, stop):
            # The system already reports changes when this is first reached, so none is lost before the first round.
            if rounds.is_full_round_due or len(changed) > MAX_CHANGED_PATHS or rounds.has_new_head():
                yield from rounds.run_full(existing)
            else:
                yield from rounds.run_changes(existing, changed)
            if watched.existing_roots() != existing:
                break
        rounds.request_full_round()


def _changes(roots: Iterable[str], stop: threading.Event) -> Iterator[set[str]]:
    """Yield the changed paths, and an empty set at every poll. Ends when watching must start again."""
    try:
        import watchfiles
    except ImportError:
        raise MissingExtra("Watching files", "watch") from None
    if not roots:
        while not stop.wait(POLL_MS / 1000):
            yield set()
        return
    has_started = False
    try:
        for changes in watchfiles.watch(
            *roots,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=QUIET_MS,
            rust_timeout=POLL_MS,
            yield_on_timeout=True,
            stop_event=stop,
            ignore_permission_denied=True,
        ):
            has_started = True
            yield {path for _, path in changes}
    except FileNotFoundError:
        return
    except (OSError, RuntimeError) as error:
        # After the start, the only cause is a changed file whose name is not valid UTF-8.
        if not has_started:
            raise SourceError(
                f"These folders cannot be watched: {error}. Watch fewer folders, or raise the system's limit of watches."
            ) from error


class _Rounds:
    """The rounds of one watch."""

    def __init__(
        self, index_round: IndexRound, watched: WatchedPaths, on_error: Callable[[Exception], None]
    ) -> None:
        self._index_round = index_round
        self._watched = watched
        self._on_error = on_error
        self._is_first = True
        self._indexed_roots: set[str] = set(watched.roots)
        """Roots that existed in the last full round. If one is gone now, its records must be deleted."""
        self._full_round_at = 0.0
        self._heads = watched.heads()
        """Commit and branch of each root under git at the last look."""

    def has_new_head(self) -> bool:
        """Whether another commit or branch is checked out than at the last call: the files and the revision change."""
        before, self._heads = self._heads, self._watched.heads()
        return self._heads != before

    @property
    def is_full_round_due(self) -> bool:
        return time.monotonic() >= self._full_round_at

    def request_full_round(self) -> None:
        self._full_round_at = 0.0

    def run_full(self, existing_roots: Iterable[str]) -> Iterator[IndexReport]:
        """Index all existing roots, and delete the records of roots that are gone."""
        existing = list(existing_roots)
        if self._is_first:
            report = self._index_round(self._watched.roots, None)
            self._is_first, self._full_round_at, self._indexed_roots = False, float("inf"), set(existing)
            yield report
            return
        gone = self._indexed_roots.difference(existing)
        self._indexed_roots, self._full_round_at = set(existing), float("inf")
        for root in gone:
            yield from self._run([root], None)
        if existing:
            yield from self._run(existing, None)

    def run_changes(self, existing_roots: Iterable[str], changed: Iterable[str]) -> Iterator[IndexReport]:
        """Index only the changed paths."""
        watched = self._watched
        paths = frozenset(watched.rescan_path(path) for path in changed if watched.is_relevant(path))
        return self._run(list(existing_roots), paths) if paths else iter(())

    def _run(self, roots: Sequence[str], paths: frozenset[str] | None) -> Iterator[IndexReport]:
        try:
            report = self._index_round(roots, paths)
        except NotFound:
            # The root is gone, and nothing of it was indexed.
            return
        except (SennitError, OSError) as error:
            self._on_error(error)
            self._indexed_roots.update(roots)
            self._full_round_at = time.monotonic() + RETRY_SECONDS
            return
        if _has_changes(report):
            yield report


def _has_changes(report: IndexReport) -> bool:
    files = report.added + report.updated + report.renamed + report.removed
    return bool(files or report.records or report.records_removed or report.skipped)


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
