"""Builds keyword segments in a worker process, so that a bulk load has a second interpreter for text analysis."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sennit.errors import SennitError
from sennit.stores.embedded.keyword_index import KeywordIndex, segment_identity
from sennit.stores.embedded.ranges import read_origin, read_version
from sennit.stores.embedded.segment_store import DiskSegmentStore, SegmentInfo
from sennit.stores.sql.connection import SqlPool
from sennit.stores.sql.pool import open_pool
from sennit.workers import Message, WorkerProcess, read_message, worker_streams, write_message

log = logging.getLogger("sennit.store")


class SegmentBuilder:
    """Has a worker process build segments of one database's keyword index."""

    def __init__(self, database: str, index: Path, identity: str) -> None:
        """`database` is what `open_pool` opens. It may hold a password, so it goes through the pipe."""
        self._request = {"database": database, "index": str(index.absolute()), "identity": identity}
        self._worker: WorkerProcess | None = None
        self._lock = threading.Lock()
        """Held while a request is under way."""

    @property
    def is_running(self) -> bool:
        """Whether the worker process has been started."""
        return self._worker is not None

    def build(self, low: int, high: int) -> SegmentInfo | None:
        """Build and write the segment of a range of changes without publishing it; None where that fails."""
        with self._lock:
            try:
                worker = self._worker = self._worker or WorkerProcess(__name__)
            except OSError as error:
                log.debug("no worker process could be started to build segments: %s", error)
                return None
            worker.send(Message({**self._request, "low": low, "high": high}))
            answer = worker.receive()
            if answer is None:
                worker.close()
                self._worker = None
        if answer is None or "problem" in answer.header:
            problem = answer.header["problem"] if answer else "it has ended"
            log.debug("a worker process did not build a segment: %s", problem)
            return None
        return SegmentInfo(**answer.header)

    def close(self) -> None:
        """Kill the worker process, even during a request; the next request starts another."""
        worker = self._worker
        if worker is not None:
            worker.kill()
            with self._lock:
                worker.close()
                self._worker = None


# Inside the worker process.


def handle_request(request: dict[str, Any]) -> dict[str, Any]:
    """Build one segment from the newest version of the database."""
    try:
        database = _open_database(request["database"])
        with database.read() as connection:
            seq = read_version(connection).seq
            if segment_identity(read_origin(connection)) != request["identity"]:
                return {"problem": "the worker process is of another version"}
            segments = DiskSegmentStore(Path(request["index"]), request["identity"])
            index = KeywordIndex(segments, log.warning)
            segment = index.build(index.load(connection, request["low"], request["high"]))
            # The segment lacks the records deleted since the request, so it has applied the deletes up to the
            # version read here, which may be newer than the version of the requesting process.
            info = segments.write(
                segment.to_arrays(),
                low=request["low"],
                high=request["high"],
                deletes_applied=seq,
                count=len(segment.rows),
            )
    except (SennitError, OSError) as error:
        return {"problem": str(error)}
    return asdict(info)


_databases: dict[str, SqlPool] = {}


def _open_database(target: str) -> SqlPool:
    if target not in _databases:
        _databases[target] = open_pool(target)
    return _databases[target]


if __name__ == "__main__":
    with worker_streams() as (requests, answers):
        while (request := read_message(requests)) is not None:
            write_message(answers, Message(handle_request(request.header)))
