"""The log of the service: one JSON object per line on standard error, without queries, texts or tokens."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

log: Final = logging.getLogger("sennit.http")

_NAMESPACE: Final = "sennit"
"""The name of the package's root logger, and of the record attribute that carries an event's fields."""


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON. The fields of an event become fields of the line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
        }
        fields = getattr(record, _NAMESPACE, None)
        line |= fields if isinstance(fields, dict) else {"message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


def configure_logging(*, quiet: bool, verbose: int) -> None:
    """Send the log of this process to standard error, as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.ERROR if quiet else logging.WARNING)
    # The command line installs a handler that writes for people.
    logging.getLogger(_NAMESPACE).handlers.clear()
    log.setLevel(logging.ERROR if quiet else logging.INFO)
    # The service logs its own start and stop.
    logging.getLogger("uvicorn").setLevel(logging.INFO if verbose else logging.WARNING)


def log_event(name: str, /, **fields: object) -> None:
    """Log an event with its fields."""
    log.info(name, extra={_NAMESPACE: {"event": name, **fields}})
