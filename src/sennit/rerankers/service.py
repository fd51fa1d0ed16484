"""The reranker of a database: made at its first use, and asked under a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from sennit.errors import SennitError, SourceError
from sennit.rerankers.base import Reranker, RerankSpec
from sennit.rerankers.providers import create_reranker

MAX_PENDING_CALLS: Final = 4
"""Calls that may be unanswered at once; further searches go without the reranker."""

CHECK_SECONDS: Final = 10.0


class RerankService:
    """Asks the configured reranker in a thread, so that a search waits no longer than its budget.

    Loading a model may take longer than that. It goes on in its thread, and later searches have it.
    """

    def __init__(
        self, spec: RerankSpec, create: Callable[[RerankSpec], Reranker | None] = create_reranker
    ) -> None:
        self._spec = spec
        self._create = create
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._reranker: Reranker | None = None
        self._pending = 0

    @property
    def is_configured(self) -> bool:
        """Whether the settings name a reranker."""
        return self._spec.provider != "none"

    def score(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Return a score for each text; raise SourceError if there is none in time."""
        if not self.is_configured:
            raise SourceError("no reranker is configured; set rerank.provider and rerank.model")
        with self._lock:
            if self._pending >= MAX_PENDING_CALLS:
                raise SourceError(f"it is busy: {MAX_PENDING_CALLS} earlier calls have not returned")
            self._pending += 1
        end = time.monotonic() + seconds
        done = threading.Event()
        answer: list[list[float]] = []
        failure: list[str] = []

        def work() -> None:
            try:
                reranker = self._get()
                answer.append(reranker.score(query, texts, seconds=max(0.001, end - time.monotonic())))
            except SennitError as error:
                failure.append(str(error))
            except Exception as error:  # noqa: BLE001 - a failure is reported, and the search goes on without
                failure.append(f"{type(error).__name__}: {error}")
            finally:
                with self._lock:
                    self._pending -= 1
                done.set()

        threading.Thread(target=work, name="sennit-rerank", daemon=True).start()
        if not done.wait(seconds):
            raise SourceError(f"no answer within {seconds * 1000:.0f} ms")
        if failure:
            raise SourceError(failure[0])
        return answer[0]

    def check(self) -> tuple[bool, str]:
        """Score one pair; return whether that worked, and what to say about it."""
        began = time.perf_counter()
        try:
            self.score("Does it work?", ["It works."], CHECK_SECONDS)
        except SourceError as error:
            return False, f"{self._spec.provider}: {error}"
        elapsed = (time.perf_counter() - began) * 1000
        return True, f"{self._get().name} answered in {elapsed:.0f} ms"

    def close(self) -> None:
        """Release the reranker."""
        if self._reranker is not None:
            self._reranker.close()

    def _get(self) -> Reranker:
        with self._loading:
            if self._reranker is None:
                self._reranker = self._create(self._spec)
            if self._reranker is None:
                raise SourceError("no reranker is configured; set rerank.provider")
            return self._reranker
