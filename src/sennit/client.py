"""The client for assistants: loads memory for a prompt from a running service, within a time limit."""

from __future__ import annotations

import asyncio
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

DEFAULT_URL: Final = "http://127.0.0.1:8765"
DEFAULT_QUERY: Final = "recent conversations and key facts"
DEFAULT_LIMIT: Final = 10
TIMEOUT_SECONDS: Final = 3.0
MAX_RESPONSE_BYTES: Final = 1 << 20
"""Ten memories take a few thousand bytes."""


async def load_memory_context(
    context_engine_url: str = DEFAULT_URL,
    *,
    token: str | None = None,
    query: str = DEFAULT_QUERY,
    limit: int = DEFAULT_LIMIT,
    timeout: float = TIMEOUT_SECONDS,
    provenance: bool = False,
) -> str:
    """The same as `load_memory_context_sync`, awaited; a cancelled call leaves only a thread that ends in time."""
    return await asyncio.to_thread(
        load_memory_context_sync,
        context_engine_url,
        token=token,
        query=query,
        limit=limit,
        timeout=timeout,
        provenance=provenance,
    )


def load_memory_context_sync(
    context_engine_url: str = DEFAULT_URL,
    *,
    token: str | None = None,
    query: str = DEFAULT_QUERY,
    limit: int = DEFAULT_LIMIT,
    timeout: float = TIMEOUT_SECONDS,
    provenance: bool = False,
) -> str:
    """Return a memory block for a system prompt from `sennit serve` at this URL; empty if it does not answer in time.

    The call takes at most `timeout` seconds and never raises: on any failure the assistant starts without memory,
    and the log says why. Without `token`, the environment variable SENNIT_TOKEN is used.
    """
    blocks: list[str] = []

    def work() -> None:
        try:
            answer = _fetch(
                context_engine_url, token or os.environ.get("SENNIT_TOKEN", ""), query, limit, timeout
            )
            blocks.append(briefing(_read_memories(answer), provenance=provenance))
        except Exception as error:  # noqa: BLE001 - the assistant must start even without memory
            log.warning("memory not loaded: %s: %s", type(error).__name__, error)

    try:
        worker = threading.Thread(target=work, name="sennit-memory", daemon=True)
        worker.start()
        worker.join(max(0.0, float(timeout)))
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        log.warning("memory not loaded: %s", error)
        return ""
    if worker.is_alive():
        log.warning("memory not loaded: no answer within %g s", timeout)
    return blocks[0] if blocks else ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send the token to another service."""

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
        raise ValueError(f"{base_url!r} is not an http:// or https:// URL")
    parameters = urllib.parse.urlencode({"query": query, "limit": limit})
    request = urllib.request.Request(f"{base_url.rstrip('/')}/v1/context?{parameters}")  # noqa: S310 - checked above
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(request, timeout=timeout) as response:
        return json.loads(response.read(MAX_RESPONSE_BYTES))


def _read_memories(answer: Any) -> list[Memory]:
    """Return the memories in an answer of the service; malformed ones are skipped."""
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
