"""Keyword segments built in a program beside this one: a bulk load then has a second interpreter to analyse texts."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sennit.errors import SennitError
from sennit.programs import Message, Program, receive, send, serving
from sennit.stores.embedded.keyword import KeywordIndex, identity
from sennit.stores.embedded.ranges import moment
from sennit.stores.embedded.segments import Entry, SegmentFolder
from sennit.stores.embedded.sqlite import SqlitePool

log = logging.getLogger("sennit.store")


class Folder:
    """Builds segments of one database's keyword index elsewhere."""

    def __init__(self, database: Path, index: Path, identity: str) -> None:
        places = {"database": str(database.absolute()), "index": str(index.absolute())}
        self._request = {**places, "identity": identity}
        self._program: Program | None = None
        self._asking = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether the program has been started."""
        return self._program is not None

    def fold(self, low: int, high: int) -> Entry | None:
        """The segment of a range of changes, written but not published; None where no program can build it."""
        with self._asking:
            try:
                program = self._program = self._program or Program(__name__)
            except OSError as error:
                log.debug("no program folds beside this one: %s", error)
                return None
            program.ask(Message({**self._request, "low": low, "high": high}))
            answer = program.answer()
            if answer is None:
                program.end()
                self._program = None
        if answer is None or "problem" in answer.head:
            log.debug("a program did not fold: %s", answer.head["problem"] if answer else "it has ended")
            return None
        return Entry(**answer.head)

    def end(self) -> None:
        """End the program, whatever it is at; the next fold starts another."""
        program = self._program
        if program is not None:
            program.kill()
            with self._asking:
                program.end()
                self._program = None


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Fold one range, as of now."""
    try:
        database = _opened(Path(request["database"]))
        with database.read() as connection:
            seq = moment(connection).seq
            (origin,) = connection.execute("SELECT value FROM state WHERE key = 'origin'").fetchone()
            if identity(origin) != request["identity"]:
                return {"problem": "the program is of another version"}
            segments = SegmentFolder(Path(request["index"]), request["identity"])
            index = KeywordIndex(segments, log.warning)
            segment = index.build(index.load(connection, request["low"], request["high"]))
            # Records that were removed meanwhile are not in it: it is clean up to this moment, not to who asks.
            entry = segments.write(
                segment.arrays(),
                low=request["low"],
                high=request["high"],
                clean=seq,
                count=len(segment.rows),
            )
    except (SennitError, OSError) as error:
        return {"problem": str(error)}
    return asdict(entry)


_databases: dict[Path, SqlitePool] = {}


def _opened(path: Path) -> SqlitePool:
    if path not in _databases:
        _databases[path] = SqlitePool(path)
    return _databases[path]


if __name__ == "__main__":
    with serving() as (requests, answers):
        while (request := receive(requests)) is not None:
            send(answers, Message(answer(request.head)))
