"""The log of a service: one JSON object per line on standard error, and in it never a query, a text or a token."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

log: Final = logging.getLogger("sennit.http")

_OURS: Final = "sennit"


class JsonLines(logging.Formatter):
    """A record as one line of JSON; what a record carries as `sennit` are further fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
        }
        fields = getattr(record, _OURS, None)
        line |= fields if isinstance(fields, dict) else {"message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


def configure(*, quiet: bool, verbose: int) -> None:
    """Write the log of this process to standard error, as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.ERROR if quiet else logging.WARNING)
    # The command line's own handler writes for people.
    logging.getLogger(_OURS).handlers.clear()
    log.setLevel(logging.ERROR if quiet else logging.INFO)
    # The server's "started" and "finished" are ours to say.
    logging.getLogger("uvicorn").setLevel(logging.INFO if verbose else logging.WARNING)


def event(name: str, /, **fields: object) -> None:
    """Write an event."""
    log.info(name, extra={_OURS: {"event": name, **fields}})
