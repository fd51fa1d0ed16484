"""The connection to one Chroma, on a server or in a folder of this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

import chromadb
import httpx
import numpy as np
from chromadb.config import Settings as ClientSettings
from chromadb.errors import AuthorizationError, ChromaAuthError, NotFoundError
from numpy.typing import NDArray

from sennit.credentials import read_credential
from sennit.errors import SourceError
from sennit.settings.servers import ChromaSettings
from sennit.stores.servers.http_connections import HttpConnections, RequestFailed
from sennit.stores.servers.other_server import OtherServer, may_be_any

T = TypeVar("T")

API_PATH: Final = "/api/v2"
HEARTBEAT: Final = "nanosecond heartbeat"
"""What only Chroma answers to `/heartbeat`, with any key."""


class CollectionMissing(SourceError):
    """A collection does not exist."""


class Nearest(NamedTuple):
    """The documents nearest to a vector, nearest first."""

    ids: Sequence[str]
    distances: Sequence[float]


class ChromaClient:
    """Opens the connection when it is first needed, and turns every failure into SourceError."""

    def __init__(self, settings: ChromaSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._client: Any = None
        self._connections: HttpConnections | None = None
        """The same server without the client, for searches."""
        self.place = settings.path or settings.url

    def call(self, request: Callable[[Any], T]) -> T:
        """Send a request."""
        try:
            return request(self._open())
        except NotFoundError as error:
            raise CollectionMissing(f"Chroma at {self.place} does not have it: {error}") from error
        except (AuthorizationError, ChromaAuthError) as error:
            raise self._refused() from error
        except httpx.TimeoutException as error:
            raise self._late() from error
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        except SourceError:
            raise
        except (
            Exception
        ) as error:  # the client raises plain Exception, and others where it was closed meanwhile
            raise self._failed(str(error)) from error

    def query(
        self, collection: Any, vector: NDArray[np.float32], limit: int, where: Mapping[str, Any] | None
    ) -> Nearest:
        """The nearest documents of a collection; without the client on a server, because it copies every number."""
        if self._settings.path:
            found = self.call(
                lambda _: collection.query(
                    query_embeddings=[vector], n_results=limit, where=where, include=["distances"]
                )
            )
        else:
            found = self._post(
                f"/collections/{collection.id}/query",
                {
                    "query_embeddings": [vector.tolist()],
                    "n_results": limit,
                    "where": where,
                    "include": ["distances"],
                },
            )
        return Nearest(found["ids"][0], found["distances"][0])

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            client, self._client = self._client, None
            connections, self._connections = self._connections, None
        if connections is not None:
            connections.close()
        if client is not None:
            close = getattr(client, "close", None)
            if close is not None:
                close()

    def _open(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send JSON to the database of the settings, and return the answer."""
        settings = self._settings
        database = f"/tenants/{quote(settings.tenant, safe='')}/databases/{quote(settings.database, safe='')}"
        content = json.dumps(body, separators=(",", ":")).encode()
        try:
            response = self._open_connections().send("POST", database + path, content)
            answer = json.loads(response.content)
        except RequestFailed as error:
            raise (self._late() if error.is_late else self._unreachable(error)) from error
        except ValueError as error:
            raise self._failed("the answer is not JSON") from error
        if response.status < 300:
            return answer
        message = str(answer.get("message", answer) if isinstance(answer, dict) else answer)[:300]
        match response.status:
            case 401 | 403:
                raise self._refused()
            case 404:
                raise CollectionMissing(f"Chroma at {self.place} does not have it: {message}")
        raise self._failed(message)

    def _failed(self, message: str) -> SourceError:
        """The error for an answer that was not understood."""
        if not self._settings.path and self._is_other_server():
            return OtherServer(self.place, f"Chroma with the interface {API_PATH}", "chroma.url")
        return SourceError(f"Chroma at {self.place} failed: {message[:300]}")

    def _is_other_server(self) -> bool:
        """Whether a server answers as Chroma never does."""
        try:
            response = self._open_connections().send("GET", "/heartbeat")
        except (RequestFailed, SourceError):
            return False
        if response.status != 200:
            return not may_be_any(response.status)
        try:
            return HEARTBEAT not in json.loads(response.content)
        except (ValueError, TypeError):
            return True

    def _refused(self) -> SourceError:
        return SourceError(
            f"Chroma at {self.place} refuses the key, which comes from the environment variable that "
            f"chroma.api_key_env names: {self._settings.api_key_env or '(none)'}"
        )

    def _late(self) -> SourceError:
        return SourceError(
            f"Chroma at {self.place} did not answer within {self._settings.timeout_seconds:g} s "
            "(chroma.timeout_seconds)"
        )

    def _unreachable(self, error: Exception) -> SourceError:
        return SourceError(f"Chroma at {self.place} cannot be reached: {error}. Is it running?")

    def _key_header(self) -> dict[str, str]:
        variable = self._settings.api_key_env
        if not variable:
            return {}
        return {"x-chroma-token": read_credential(variable, "chroma.api_key_env")}

    def _open_connections(self) -> HttpConnections:
        with self._lock:
            if self._connections is None:
                url = urlsplit(self._settings.url)
                host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
                self._connections = HttpConnections(
                    f"{url.scheme}://{host}:{_port(url)}{url.path.rstrip('/')}{API_PATH}",
                    timeout_seconds=self._settings.timeout_seconds,
                    headers={"Content-Type": "application/json", **self._key_header()},
                )
            return self._connections

    def _connect(self) -> Any:
        settings = self._settings
        options = ClientSettings(anonymized_telemetry=False)
        names = {"tenant": settings.tenant, "database": settings.database}
        if settings.path:
            return chromadb.PersistentClient(settings.path, settings=options, **names)
        url = urlsplit(settings.url)
        client = chromadb.HttpClient(
            host=f"{url.scheme}://{url.hostname}{url.path}" if url.path.strip("/") else url.hostname or "",
            port=_port(url),
            ssl=_is_secure(url),
            headers=self._key_header(),
            settings=options,
            **names,
        )
        # The client has no setting for this, and waits for ever.
        session = getattr(getattr(client, "_server", None), "_session", None)
        if session is not None:
            session.timeout = httpx.Timeout(settings.timeout_seconds)
        return client


def _is_secure(url: SplitResult) -> bool:
    return url.scheme.lower() == "https"


def _port(url: SplitResult) -> int:
    return url.port or (443 if _is_secure(url) else 80)
