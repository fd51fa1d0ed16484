"""The assistant's side: memory for a prompt from a running service, or none. It never keeps an assistant waiting."""

from __future__ import annotations

import json
import logging
import os
import threading
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http.client import HTTPMessage
from typing import IO, Any, Final

from sennit.context.briefing import Memory, briefing

log: Final = logging.getLogger("sennit.client")

QUERY: Final = "recent conversations and key facts"
LIMIT: Final = 10
SECONDS: Final = 3.0
MOST_BYTES: Final = 1 << 20
"""Of an answer; ten memories are a few thousand."""


def load_memory_context(
    base_url: str = "http://127.0.0.1:8765",
    *,
    token: str | None = None,
    query: str = QUERY,
    limit: int = LIMIT,
    timeout: float = SECONDS,
    provenance: bool = False,
) -> str:
    """A memory block for a system prompt, from `sennit serve` at `base_url`; empty when there is none in time.

    Takes `timeout` seconds in all, and never raises: on any failure the assistant starts without memory, and the
    log says why. The token is SENNIT_TOKEN when none is given.
    """
    box: list[str] = []

    def work() -> None:
        try:
            answer = _fetch(base_url, token or os.environ.get("SENNIT_TOKEN", ""), query, limit, timeout)
            box.append(briefing(_memories(answer), provenance=provenance))
        except Exception as error:  # noqa: BLE001 - an assistant without memory is better than none
            log.warning("no memory: %s: %s", type(error).__name__, error)

    try:
        worker = threading.Thread(target=work, name="sennit-memory", daemon=True)
        worker.start()
        worker.join(max(0.0, float(timeout)))
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        log.warning("no memory: %s", error)
        return ""
    if worker.is_alive():
        log.warning("no memory: no answer within %g s", timeout)
    return box[0] if box else ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token is for the service that was named, not for wherever that sends us."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        del req, fp, code, msg, headers, newurl


def _fetch(base_url: str, token: str, query: str, limit: int, timeout: float) -> Any:
    if urllib.parse.urlsplit(base_url).scheme not in ("http", "https"):
        raise ValueError(f"{base_url!r} is no http:// or https:// address")
    parameters = urllib.parse.urlencode({"query": query, "limit": limit})
    request = urllib.request.Request(f"{base_url.rstrip('/')}/v1/context?{parameters}")  # noqa: S310 - checked above
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(request, timeout=timeout) as response:
        return json.loads(response.read(MOST_BYTES))


def _memories(answer: Any) -> list[Memory]:
    """What the service answered; what is not as it should be is left out."""
    results = answer.get("results") if isinstance(answer, Mapping) else None
    return [
        Memory(
            result["text"],
            str(result.get("speaker") or ""),
            ", ".join(str(result[name]) for name in ("source_session", "timestamp") if result.get(name)),
        )
        for result in results or ()
        if isinstance(result, Mapping) and isinstance(result.get("text"), str)
    ]
