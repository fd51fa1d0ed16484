"""The nodes of one Qdrant: a request goes to the node that answered last, and to the next where that one does not."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from sennit.credentials import read_credential
from sennit.errors import SourceError
from sennit.settings.servers import QdrantSettings
from sennit.stores.findings import Finding
from sennit.stores.servers.http_connections import HttpConnections, RequestFailed
from sennit.stores.servers.other_server import OtherServer, may_be_any

T = TypeVar("T")

OLDEST_VERSION: Final = (1, 10)
"""The first version with the query interface and with inverse document frequencies of sparse vectors."""

MAX_CONNECTIONS: Final = 64

_FAILURES: Final = (
    ResponseHandlingException,
    UnexpectedResponse,
    ResourceExhaustedResponse,
    RequestFailed,
    OtherServer,
)

CHECK: Final = "qdrant"


class CollectionMissing(SourceError):
    """A collection does not exist."""


class QdrantNodes:
    """One client for each address. Any thread may use them."""

    def __init__(self, settings: QdrantSettings) -> None:
        self._urls = settings.urls
        self._key_variable = settings.api_key_env
        self._timeout = settings.timeout_seconds
        self._lock = threading.Lock()
        self._clients: dict[int, QdrantClient] = {}
        self._connections: dict[int, HttpConnections] = {}
        """The same nodes without the client, for searches."""
        self._current = 0
        self.failures = 0
        """How often a node did not answer as it should: what was known of it may be out of date."""
        with contextlib.suppress(SourceError):
            # It sends nothing yet. Reading certificates takes a while, which no search should wait for.
            self._connection(0)

    def call(self, request: Callable[[QdrantClient], T]) -> T:
        """Send a request to the first node that answers it. Every request may be sent twice without harm."""
        return self._ask(lambda at: self._call(at, request))

    def post(self, path: str, body: object) -> Any:
        """Send JSON and return the `result`: searches go this way, because the client copies and checks every number."""
        content = json.dumps(body, separators=(",", ":")).encode()
        return self._ask(lambda at: self._post(at, path, content))

    def _call(self, at: int, request: Callable[[QdrantClient], T]) -> T:
        try:
            return request(self._client(at))
        except ResponseHandlingException as error:
            if isinstance(error.source, ValueError):
                # The answer has another shape than the client knows.
                raise self._other_server(at) from error
            raise
        except (ValueError, AssertionError) as error:
            # The answer is not JSON, or has no result; the client reports that so.
            raise self._other_server(at) from error

    def _post(self, at: int, path: str, content: bytes) -> Any:
        response = self._connection(at).send("POST", path, content)
        if response.status != 200:
            raise UnexpectedResponse.for_response(httpx.Response(response.status, content=response.content))
        try:
            return json.loads(response.content)["result"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._other_server(at) from error

    def _is_qdrant(self, at: int) -> bool:
        """Whether a node says that it is Qdrant, or does not say what it is."""
        try:
            response = self._connection(at).send("GET", "/")
        except RequestFailed:
            return True
        if response.status != 200:
            return may_be_any(response.status)
        try:
            return "qdrant" in json.loads(response.content)["title"].lower()
        except (ValueError, KeyError, TypeError, AttributeError):
            return False

    def _other_server(self, at: int) -> OtherServer:
        return OtherServer(_place(self._urls[at]), "Qdrant", "qdrant.urls")

    def _ask(self, send: Callable[[int], T]) -> T:
        first = self._current
        problems = []
        # A connection that was kept open breaks when a node restarts, so the first node gets a second chance.
        for attempt in range(len(self._urls) + 1):
            at = (first + attempt) % len(self._urls)
            try:
                answer = send(at)
            except _FAILURES as error:
                self.failures += 1
                problem = self._explain(error, at)
                if not _is_of_one_node(error):
                    raise problem from error
                problems.append(problem)
            else:
                self._current = at
                return answer
        raise (
            problems[-1]
            if len(self._urls) == 1
            else SourceError(f"none of the {len(self._urls)} Qdrant nodes answers: {problems[-1]}")
        )

    def check(self) -> Iterator[Finding]:
        """One finding for each node."""
        for at, url in enumerate(self._urls):
            try:
                version = self._call(at, lambda client: client.info()).version
            except _FAILURES as error:
                yield Finding(CHECK, "problem", str(self._explain(error, at)))
                continue
            numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
            if numbers < OLDEST_VERSION:
                oldest = ".".join(map(str, OLDEST_VERSION))
                yield Finding(
                    CHECK, "problem", f"{_place(url)} is Qdrant {version}; sennit needs {oldest} or newer"
                )
            else:
                yield Finding(CHECK, "ok", f"{_place(url)} is Qdrant {version}")
            if self._key_variable and urlsplit(url).scheme == "http" and not _is_loopback(url):
                yield Finding(
                    CHECK, "note", f"{_place(url)} gets the API key without encryption; use https://"
                )

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for client in (*self._clients.values(), *self._connections.values()):
                client.close()
            self._clients.clear()
            self._connections.clear()

    def _connection(self, at: int) -> HttpConnections:
        with self._lock:
            found = self._connections.get(at)
            if found is None:
                parts = urlsplit(self._urls[at])
                host = parts.netloc if parts.port else f"{parts.netloc}:{_usual_port(self._urls[at])}"
                found = self._connections[at] = HttpConnections(
                    f"{parts.scheme}://{host}{parts.path}",
                    timeout_seconds=self._timeout,
                    headers={"Content-Type": "application/json", **self._key_header()},
                )
            return found

    def _key_header(self) -> dict[str, str]:
        if not self._key_variable:
            return {}
        return {"api-key": read_credential(self._key_variable, "qdrant.api_key_env")}

    def _client(self, at: int) -> QdrantClient:
        with self._lock:
            found = self._clients.get(at)
            if found is None:
                found = self._clients[at] = QdrantClient(
                    url=self._urls[at],
                    port=_usual_port(self._urls[at]),
                    timeout=self._timeout,
                    headers=self._key_header() or None,
                    # Opening a database must not need the server; `check` compares the versions.
                    check_compatibility=False,
                    limits=httpx.Limits(max_connections=MAX_CONNECTIONS),
                )
            return found

    def _explain(self, error: Exception, at: int) -> SourceError:
        if isinstance(error, OtherServer):
            return error
        place = _place(self._urls[at])
        if isinstance(error, UnexpectedResponse):
            message = _message_of(error)
            match error.status_code:
                case 401 | 403:
                    variable = self._key_variable or "(none)"
                    return SourceError(
                        f"Qdrant at {place} refuses the API key; it comes from the environment variable that "
                        f"qdrant.api_key_env names: {variable}"
                    )
                case 429:
                    return SourceError(f"Qdrant at {place} has too many requests: {message}")
                case status if not (may_be_any(status or 500) or _has_status(error) or self._is_qdrant(at)):
                    return self._other_server(at)
                case 404:
                    return CollectionMissing(f"Qdrant at {place} does not have it: {message}")
            return SourceError(f"Qdrant at {place} answers {error.status_code}: {message}")
        if isinstance(error, ResourceExhaustedResponse):
            return SourceError(f"Qdrant at {place} has too many requests: {error}")
        cause = error.source if isinstance(error, ResponseHandlingException) else error
        if isinstance(cause, httpx.TimeoutException) or (isinstance(cause, RequestFailed) and cause.is_late):
            return SourceError(
                f"Qdrant at {place} did not answer within {self._timeout:g} s (qdrant.timeout_seconds)"
            )
        return SourceError(f"Qdrant at {place} cannot be reached: {cause}. Is it running?")


def _is_of_one_node(error: Exception) -> bool:
    """Whether another node may answer the same request."""
    if isinstance(error, UnexpectedResponse):
        return (error.status_code or 500) >= 500 or error.status_code == 429
    return True


def _message_of(error: UnexpectedResponse) -> str:
    try:
        return str(error.structured()["status"]["error"])[:300]
    except (ValueError, KeyError, TypeError):
        return str(error.reason_phrase)


def _has_status(error: UnexpectedResponse) -> bool:
    """Whether an answer has the form of an error of Qdrant."""
    try:
        return "error" in error.structured()["status"]
    except (ValueError, KeyError, TypeError):
        return False


def _place(url: str) -> str:
    """The address without what may be a password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")


def _usual_port(url: str) -> int:
    """The port of an address without one: that of Qdrant, and with https the usual one."""
    return 443 if url.startswith("https:") else 6333


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
