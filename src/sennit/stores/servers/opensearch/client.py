"""Requests to a cluster: the next host answers for one that does not, and a dead host is tried again later."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from sennit.credentials import read_credential
from sennit.errors import SourceError
from sennit.settings.servers import OpenSearchSettings
from sennit.stores.servers.http_connections import HttpConnections, HttpResponse, RequestFailed
from sennit.stores.servers.other_server import UNKNOWN_PATH, OtherServer

REVIVE_SECONDS: Final = (1.0, 2.0, 5.0, 15.0, 30.0)
"""How long a host is left alone after its first, second, … failure in a row. With no other host it is tried at once."""

UNAVAILABLE: Final = frozenset((429, 502, 503, 504))
"""Answers of a host that is overloaded or not ready; another may be."""

PRODUCT_HEADER: Final = "x-elastic-product"
"""Every answer of Elasticsearch has it, also one that refuses a request."""

_MAX_MESSAGE: Final = 300

Json = dict[str, Any]


class NotACluster(OtherServer):
    """What answers is no cluster."""

    def __init__(self, place: str) -> None:
        super().__init__(place, "OpenSearch or Elasticsearch", "opensearch.hosts")


class _Answer(Json):
    """The object that a host answered. A part that every cluster sends is missing where something else answers."""

    def __init__(self, parts: Json, place: str) -> None:
        super().__init__(parts)
        self._place = place

    def __missing__(self, key: str) -> Any:
        raise NotACluster(self._place)


class RequestRefused(SourceError):
    """The server understood the request and answered with an error."""

    def __init__(self, message: str, status: int, kind: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        """The type of the error, such as `index_not_found_exception`."""


@dataclass(slots=True)
class _Host:
    connections: HttpConnections
    name: str
    """The address without a password, for messages."""
    failures: int = 0
    retry_at: float = 0.0


class ClusterClient:
    """Speaks HTTP with the hosts of one cluster. Any thread may use it."""

    def __init__(self, settings: OpenSearchSettings) -> None:
        self._settings = settings
        self._hosts = [
            _Host(
                HttpConnections(
                    url,
                    timeout_seconds=settings.timeout,
                    headers={},
                    ca_file=settings.ca_file,
                    uses_proxies=False,
                ),
                urlsplit(url).netloc,
            )
            for url in settings.hosts
        ]
        self.product = ""
        """What the server that answered last calls itself in its headers: Elasticsearch does."""
        self._turn = 0
        self._lock = threading.Lock()

    def get(self, path: str, body: Json | None = None) -> Json:
        return self.request("GET", path, body)

    def request(self, method: str, path: str, body: Json | None = None) -> Json:
        """Send a request with a JSON body."""
        return self._send(method, path, b"" if body is None else _encode(body), "application/json")

    def send_lines(self, path: str, lines: Iterable[Mapping[str, Any]]) -> Json:
        """Send a body of one JSON object per line, as `_bulk` and `_msearch` take it."""
        return self.send_bytes(path, b"".join(_encode(line) + b"\n" for line in lines))

    def send_bytes(self, path: str, body: bytes) -> Json:
        """Send lines that are encoded already."""
        return self._send("POST", path, body, "application/x-ndjson")

    def close(self) -> None:
        for host in self._hosts:
            host.connections.close()

    def _send(self, method: str, path: str, body: bytes, content_type: str) -> Json:
        """Every request may be sent twice: searches read, and a write names the id of what it writes."""
        headers = {"Content-Type": content_type, **self._credentials()}
        problem: SourceError | None = None
        for host in self._order():
            try:
                response = host.connections.send(method, path, body, headers)
            except RequestFailed as error:
                problem = SourceError(f"{host.name} does not answer: {_describe(error, self._settings)}")
                self._mark_dead(host)
                continue
            self._mark_alive(host)
            self.product = response.headers.get(PRODUCT_HEADER, "")
            if response.status in UNAVAILABLE:
                problem = _refusal(host, response)
                continue
            if response.status >= 300:
                raise _refusal(host, response)
            return _decode(host, response)
        assert problem is not None, "there is always a host"
        raise problem

    def _order(self) -> list[_Host]:
        """The hosts to try: each in its turn, those that failed lately last."""
        now = time.monotonic()
        with self._lock:
            self._turn = (self._turn + 1) % len(self._hosts)
            turned = self._hosts[self._turn :] + self._hosts[: self._turn]
            return sorted(turned, key=lambda host: host.retry_at if host.retry_at > now else 0.0)

    def _mark_dead(self, host: _Host) -> None:
        with self._lock:
            pause = REVIVE_SECONDS[min(host.failures, len(REVIVE_SECONDS) - 1)]
            host.failures += 1
            host.retry_at = time.monotonic() + pause

    def _mark_alive(self, host: _Host) -> None:
        if host.failures:
            with self._lock:
                host.failures, host.retry_at = 0, 0.0

    def _credentials(self) -> dict[str, str]:
        """Read from the environment for each request, so that a changed password takes effect at once."""
        settings = self._settings
        if settings.api_key_env:
            return {
                "Authorization": f"ApiKey {read_credential(settings.api_key_env, 'opensearch.api_key_env')}"
            }
        if settings.username_env or settings.password_env:
            username = read_credential(settings.username_env, "opensearch.username_env")
            pair = f"{username}:{read_credential(settings.password_env, 'opensearch.password_env')}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        return {}


def _describe(error: RequestFailed, settings: OpenSearchSettings) -> str:
    return f"no answer within {settings.timeout:g} s (opensearch.timeout)" if error.is_late else str(error)


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _decode(host: _Host, response: HttpResponse) -> Json:
    try:
        found = json.loads(response.content) if response.content else {}
    except ValueError as error:
        raise NotACluster(host.name) from error
    if not isinstance(found, dict):
        raise NotACluster(host.name)
    return _Answer(found, host.name)


def _refusal(host: _Host, response: HttpResponse) -> SourceError:
    try:
        kind, reason = describe_error(json.loads(response.content)["error"])
    except (ValueError, KeyError, TypeError):
        if response.status in UNKNOWN_PATH:
            return NotACluster(host.name)
        kind, reason = "", response.content.decode(errors="replace")
    return RequestRefused(
        f"{host.name} answered {response.status}: {kind} {shorten(reason)}".rstrip(),
        response.status,
        kind,
    )


def describe_error(error: object) -> tuple[str, str]:
    """The type and the reason of an error object of the server."""
    if isinstance(error, dict):
        causes = error.get("root_cause") or [{}]
        first = causes[0] if isinstance(causes[0], dict) else {}
        return str(error.get("type", "")), str(first.get("reason") or error.get("reason") or "")
    return "", str(error)


def missing_shards(answer: Json) -> str:
    """What is missing from the answer to a search, in words; empty for a complete one."""
    shards = answer["_shards"]
    missing = shards["total"] - shards["successful"]
    if missing:
        return f"the answer is not complete: {missing} of {shards['total']} shards did not answer"
    return "the answer is not complete: the search timed out" if answer["timed_out"] else ""


def shorten(text: str) -> str:
    """One line of a message that a server sent."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:4096]).split())
    return line[:_MAX_MESSAGE]
