"""Following changes: what is saved, moved or removed in the watched folders is indexed again, and nothing else.

The system tells which paths changed (`watchfiles`). Each round looks at these alone, under the rules that a run
over the whole would follow, so an ignored file costs a look and no more.
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
from sennit.ingest.report import IndexReport
from sennit.ingest.walk import CONFIGURATION, IGNORE_FILES

DEBOUNCE_MS: Final = 200
"""The longest that changes are gathered before a round."""

QUIET_MS: Final = 50
"""Changes that come closer together than this share a round."""

LOOK_MS: Final = 200
"""How often the watched paths themselves are looked at: one that is replaced must be watched anew."""

RETRY_SECONDS: Final = 5.0
"""After a round that failed, the whole is tried again."""

MOST_PLACES: Final = 1000
"""More changes than this at once, and some may have been lost on the way: then everything is looked at."""

Round = Callable[[Sequence[str], frozenset[str] | None], IndexReport]
"""Indexes some paths: everything below them, or only what is at and below some places."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched, and which changes in it matter."""

    roots: tuple[str, ...]
    """Real, absolute paths of files and folders."""
    hidden: bool = False
    leave_out: tuple[str, ...] = ()
    """Real paths of folders whose changes are our own."""

    @classmethod
    def at(
        cls,
        paths: Iterable[str | os.PathLike[str]],
        *,
        hidden: bool = False,
        leave_out: Iterable[str | os.PathLike[str]] = (),
    ) -> Watched:
        """The same, from paths as a user gives them."""
        roots = dict.fromkeys(os.path.realpath(path) for path in paths)
        return cls(tuple(roots), hidden, tuple(os.path.realpath(path) for path in leave_out))

    def wants(self, path: str) -> bool:
        """Whether a change at a path could be one of what is indexed."""
        if any(_at_or_below(path, folder) for folder in self.leave_out):
            return False
        root = next((root for root in self.roots if _at_or_below(path, root)), None)
        if root is None:
            return False
        *folders, name = ("", *Path(path).relative_to(root).parts)
        if name in IGNORE_FILES:
            name = ""
        names = [*folders, name]
        return ".git" not in names and (self.hidden or not any(name.startswith(".") for name in names))

    def place_of(self, path: str) -> str:
        """What has to be looked at again after a change at a path."""
        if Path(path).name in (*IGNORE_FILES, CONFIGURATION):
            return str(Path(path).parent)
        return path

    def present(self) -> dict[str, tuple[int, int]]:
        """The roots that exist, each with what tells it from another of the same name."""
        out = {}
        for root in self.roots:
            with contextlib.suppress(OSError):
                status = Path(root).lstat()
                out[root] = (status.st_dev, status.st_ino)
        return out


def watch(
    index_round: Round,
    watched: Watched,
    stop: threading.Event,
    *,
    failed: Callable[[Exception], None] = lambda _: None,
) -> Iterator[IndexReport]:
    """Index everything, then what changes; gives a report of the first round and of each that changed something.

    An error in the first round is raised; one in a later round goes to `failed`, and the round is made up for. Ends
    when `stop` is set, or by a KeyboardInterrupt.
    """
    following = _Following(index_round, watched, failed)
    while not stop.is_set():
        present = watched.present()
        for changed in _changes(present, stop):
            # The first time we get here the watching has begun, so nothing falls between it and this round.
            if following.due or len(changed) > MOST_PLACES:
                yield from following.whole(present)
            else:
                yield from following.part(present, changed)
            if watched.present() != present:
                break
        following.again()


def _changes(roots: Iterable[str], stop: threading.Event) -> Iterator[set[str]]:
    """The paths that changed, as soon as some did; none every now and then. Ends when it has to begin anew."""
    try:
        import watchfiles
    except ImportError:
        raise MissingExtra("Watching files", "watch") from None
    if not roots:
        while not stop.wait(LOOK_MS / 1000):
            yield set()
        return
    begun = False
    try:
        for changes in watchfiles.watch(
            *roots,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=QUIET_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            stop_event=stop,
            ignore_permission_denied=True,
        ):
            begun = True
            yield {path for _, path in changes}
    except FileNotFoundError:
        return
    except (OSError, RuntimeError) as error:
        # Once it has begun, all that is wrong is a changed file whose name is no text.
        if not begun:
            raise SourceError(
                f"These folders cannot be watched: {error}. Name fewer, or allow more watches in the system."
            ) from error


class _Following:
    """The rounds of one watch."""

    def __init__(self, index_round: Round, watched: Watched, failed: Callable[[Exception], None]) -> None:
        self._index_round = index_round
        self._watched = watched
        self._failed = failed
        self._first = True
        self._seen: set[str] = set(watched.roots)
        """Roots that were there in the last whole round: one that is gone since has records to be taken away."""
        self._due_at = 0.0

    @property
    def due(self) -> bool:
        """Whether everything has to be looked at."""
        return time.monotonic() >= self._due_at

    def again(self) -> None:
        self._due_at = 0.0

    def whole(self, present: Iterable[str]) -> Iterator[IndexReport]:
        """Everything there is, and what is left of roots that are gone."""
        there = list(present)
        if self._first:
            report = self._index_round(self._watched.roots, None)
            self._first, self._due_at, self._seen = False, float("inf"), set(there)
            yield report
            return
        gone = self._seen.difference(there)
        self._seen, self._due_at = set(there), float("inf")
        for root in gone:
            yield from self._tried([root], None)
        if there:
            yield from self._tried(there, None)

    def part(self, present: Iterable[str], paths: Iterable[str]) -> Iterator[IndexReport]:
        """Only what changed."""
        places = frozenset(self._watched.place_of(path) for path in paths if self._watched.wants(path))
        return self._tried(list(present), places) if places else iter(())

    def _tried(self, roots: Sequence[str], places: frozenset[str] | None) -> Iterator[IndexReport]:
        try:
            report = self._index_round(roots, places)
        except NotFound:
            # A root that is gone, and of which nothing was indexed.
            return
        except (SennitError, OSError) as error:
            self._failed(error)
            self._seen.update(roots)
            self._due_at = time.monotonic() + RETRY_SECONDS
            return
        if _changed(report):
            yield report


def _changed(report: IndexReport) -> bool:
    files = report.added + report.updated + report.renamed + report.removed
    return bool(files or report.records or report.records_removed or report.skipped)


def _at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
