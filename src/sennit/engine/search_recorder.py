"""Remembers recent searches, and writes down those that are to be recorded, outside of the search itself."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from sennit.engine.search_request import SearchRequest
from sennit.errors import SennitError
from sennit.privacy import Caller
from sennit.results import Hit, SearchResult, Trace
from sennit.search_parameters import MAX_LOGGED_CHARACTERS, MAX_SHOWN
from sennit.settings import FeedbackSettings
from sennit.stores.contract import RecordsRole

if TYPE_CHECKING:
    # Imported at the first use: a search is remembered without them.
    from sennit.feedback import LoggedQuery
    from sennit.repositories.feedback import FeedbackStore

log: Final = logging.getLogger(__name__)

RECENT_SEARCHES: Final = 4096
"""Searches that a process remembers, so that feedback about them is understood: about 5 MB with ten hits each."""

MAX_PENDING: Final = 10_000
"""Searches that wait to be written. If the database cannot be written for so long, further ones are dropped."""

FLUSH_SECONDS: Final = 0.5
"""How long searches are collected, because one transaction for many costs little more than one for each."""

PRUNE_SECONDS: Final = 3600.0
"""How often what has expired is removed."""

SECONDS_PER_DAY: Final = 86400.0


class SearchNote(NamedTuple):
    """What is remembered of a search: values that exist anyway, because every search makes one."""

    caller: Caller
    query_id: str
    query: str
    recipe: str
    session_id: str
    client_id: str
    seconds: float
    hits: Sequence[tuple[str, float, float]]
    """The id, score and relevance of each hit that was shown."""
    teams: Sequence[str] = ()
    experiment: str = ""
    features: Sequence[tuple[float, ...]] = ()

    def to_logged_query(self) -> LoggedQuery:
        """Return the search as it is recorded."""
        from sennit.feedback import LoggedQuery, ShownHit
        from sennit.ranking.features import FEATURES_VERSION

        teams = self.teams or [""] * len(self.hits)
        features = self.features or [()] * len(self.hits)
        return LoggedQuery(
            query_id=self.query_id,
            query=self.query,
            recipe=self.recipe,
            shown=tuple(
                ShownHit(*hit, team, values)
                for hit, team, values in zip(self.hits, teams, features, strict=True)
            ),
            timestamp=datetime.fromtimestamp(self.seconds, UTC),
            session_id=self.session_id,
            client_id=self.client_id,
            user_id=self.caller.name,
            tenant=self.caller.tenant,
            experiment=self.experiment,
            features_version=FEATURES_VERSION if self.features else 0,
        )


def without_trace(result: SearchResult) -> SearchResult:
    """Return a result as a search without `explain` returns it."""
    return replace(result, hits=tuple([replace(hit, trace=None) for hit in result.hits]), trace=None)


class SearchRecorder:
    """The memory of one process, and the thread that writes. `is_on` is False where nothing is recorded."""

    def __init__(self, records: RecordsRole, settings: FeedbackSettings, *, background: bool) -> None:
        self.is_on = settings.record != "off"
        self._records_all = settings.record == "all"
        self.keeps_features = self.is_on and settings.features
        """Whether searches must be computed with a trace, because features are recorded."""
        self._records = records
        self._days = settings.days
        self._recent: deque[SearchNote] = deque(maxlen=RECENT_SEARCHES)
        self._pending: deque[SearchNote] = deque()
        self._dropped = 0
        self._background = background
        self._lock = threading.Lock()
        """Held while a batch is written, so that a reader who flushes sees all that was noted before."""
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._opened = time.monotonic()
        self._last_prune: float | None = None

    @cached_property
    def _store(self) -> FeedbackStore:
        from sennit.repositories.feedback import FeedbackStore

        return FeedbackStore(self._records)

    def note(
        self,
        request: SearchRequest,
        caller: Caller,
        result: SearchResult,
        *,
        teams: Sequence[str] = (),
        experiment: str = "",
    ) -> SearchResult:
        """Remember a search, and record it if all are recorded or it is part of an experiment.

        Returns the result, without a trace that only the features needed.
        """
        shown = result.hits if len(result.hits) <= MAX_SHOWN else result.hits[:MAX_SHOWN]
        noted = SearchNote(
            caller,
            result.query_id,
            result.query[:MAX_LOGGED_CHARACTERS],
            result.recipe,
            request.session_id,
            request.client_id,
            time.time(),
            [(hit.record.id, hit.score, hit.relevance) for hit in shown],
            teams[:MAX_SHOWN],
            experiment,
            self._features(result.trace, shown),
        )
        self._recent.append(noted)
        if self._records_all or experiment:
            self._enqueue(noted)
        elif self._is_prune_due:
            self._start()
        return result if request.explain or result.trace is None else without_trace(result)

    def find(self, caller: Caller, query_id: str) -> LoggedQuery | None:
        """Return a recent search of a caller; None for any other."""
        for noted in reversed(list(self._recent)):
            if noted.query_id == query_id and noted.caller == caller:
                return noted.to_logged_query()
        return None

    def find_last(self, caller: Caller, object_id: str) -> str | None:
        """Return the query_id of the last search of a caller that showed a record."""
        for noted in reversed(list(self._recent)):
            if noted.caller == caller and any(object_id == shown for shown, _, _ in noted.hits):
                return noted.query_id
        return None

    def forget(self, is_meant: Callable[[SearchNote], bool]) -> None:
        """Forget recent searches."""
        kept = [noted for noted in list(self._recent) if not is_meant(noted)]
        self._recent.clear()
        self._recent.extend(kept)

    def _features(self, trace: Trace | None, shown: Sequence[Hit]) -> Sequence[tuple[float, ...]]:
        if not self.keeps_features or trace is None:
            return ()
        from sennit.ranking.features import trace_features

        if all(hit.trace is trace for hit in shown):
            return trace_features(trace, shown)
        # An experiment has hits of two searches.
        return [trace_features(hit.trace or trace, [hit])[0] for hit in shown]

    @property
    def expired_before(self) -> float:
        """What was recorded before this time has expired, in seconds since 1970."""
        return time.time() - self._days * SECONDS_PER_DAY

    def flush(self) -> None:
        """Write what is pending now."""
        from sennit.repositories.feedback import FeedbackOwner, NewFeedback

        with self._lock:
            batch = [self._pending.popleft() for _ in range(len(self._pending))]
            if batch:
                try:
                    self._store.add(
                        NewFeedback(FeedbackOwner.of(noted.caller), noted.to_logged_query())
                        for noted in batch
                    )
                except BaseException:
                    self._pending.extendleft(reversed(batch))
                    raise
            if self._dropped:
                log.warning("%d searches were not recorded: the database could not be written", self._dropped)
                self._dropped = 0

    def prune(self) -> None:
        """Remove what has expired, if that was not done within the last hour."""
        now = time.monotonic()
        if self._last_prune is None or now - self._last_prune >= PRUNE_SECONDS:
            self._last_prune = now
            self._store.prune(self.expired_before)

    @property
    def _is_prune_due(self) -> bool:
        """Whether searches alone are a reason to remove what has expired: a process that ends soon leaves it."""
        since = self._opened if self._last_prune is None else self._last_prune
        return self.is_on and time.monotonic() - since >= PRUNE_SECONDS

    def close(self) -> None:
        """Write what is pending, and end the thread."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        if self._pending or self._is_prune_due:
            self._write()

    def _enqueue(self, noted: SearchNote) -> None:
        if len(self._pending) >= MAX_PENDING:
            self._dropped += 1
            return
        self._pending.append(noted)
        self._start()

    def _start(self) -> None:
        """Wake the thread that writes."""
        if not self._background or self._wake.is_set():
            return
        self._wake.set()
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="sennit-recorder", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(FLUSH_SECONDS)
            self._wake.clear()
            self._write()

    def _write(self) -> None:
        """Write what is pending, and remove what has expired. A failure is logged, and tried again later."""
        try:
            if self._pending:
                self.flush()
            self.prune()
        except SennitError as error:
            log.warning("Searches could not be recorded yet: %s", error)
