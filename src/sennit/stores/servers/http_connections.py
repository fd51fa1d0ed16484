"""HTTP to one address of a server, for requests whose time counts, and which may be sent twice.

A general client copies headers, cookies and addresses for each request, which takes longer than a small search. Connections
are kept open. The answer is asked for without compression: a server that compresses sends it in several parts, and the
second waits for the acknowledgement of the first, which the system of this machine delays by 40 ms.
"""

from __future__ import annotations

import base64
import http.client
import select
import threading
import urllib.request
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import httpx

MAX_IDLE_CONNECTIONS: Final = 16
"""Connections kept for later."""

UNSENDABLE: Final = (
    "a header has a character that HTTP does not allow; does the API key end with a line break?"
)


class HttpResponse(NamedTuple):
    """What a server answered, whatever the status."""

    status: int
    content: bytes
    headers: http.client.HTTPMessage | httpx.Headers


class RequestFailed(Exception):
    """The server could not be reached, or did not answer in HTTP or in time; the cause says what happened."""

    def __init__(self, cause: Exception, *, is_late: bool) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.is_late = is_late
        """Whether it took longer than the time limit."""


class HttpConnections:
    """The connections to one address. Any thread may use them."""

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        headers: Mapping[str, str],
        ca_file: str = "",
        uses_proxies: bool = True,
    ) -> None:
        """`url` may have a path, which comes before that of each request, and the name and password of a user.

        `uses_proxies`: a proxy that the environment names gets the requests.
        """
        parts = urlsplit(url)
        self._is_secure = parts.scheme.lower() == "https"
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers.setdefault("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
        self._context = httpx.create_ssl_context(verify=ca_file or True) if self._is_secure else None
        self._general: httpx.Client | None = None
        if uses_proxies and _has_proxy(url):
            self._general = httpx.Client(timeout=timeout_seconds, verify=self._context or True)
        self._url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._is_closed = False

    def send(
        self, method: str, path: str, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send a request, and return what the server answers; raises RequestFailed."""
        path = self._prefix + path
        headers = {**self._headers, **headers} if headers else self._headers
        if self._general is not None:
            return self._send_by_proxy(self._general, method, path, content, headers)
        while True:
            connection = self._take()
            was_open = connection.sock is not None
            try:
                connection.request(method, path, content or None, headers)
                response = connection.getresponse()
                found = HttpResponse(response.status, response.read(), response.headers)
            except TimeoutError as error:
                connection.close()
                raise RequestFailed(error, is_late=True) from error
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if was_open and isinstance(error, ConnectionError):
                    # The server closed the kept connection just when the request was sent.
                    continue
                raise RequestFailed(error, is_late=False) from error
            except ValueError:
                connection.close()
                # The message of this error has the value, which may be a key.
                raise RequestFailed(ValueError(UNSENDABLE), is_late=False) from None
            except BaseException:
                connection.close()
                raise
            if response.will_close:
                connection.close()
            else:
                self._give_back(connection)
            return found

    def _send_by_proxy(
        self, client: httpx.Client, method: str, path: str, content: bytes, headers: Mapping[str, str]
    ) -> HttpResponse:
        try:
            found = client.request(method, self._url + path, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise RequestFailed(error, is_late=isinstance(error, httpx.TimeoutException)) from error
        return HttpResponse(found.status_code, found.content, found.headers)

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are released."""
        if self._general is not None:
            self._general.close()
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if self._is_closed:
                    raise RequestFailed(ConnectionError("the connections were closed"), is_late=False)
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            if not _is_readable(connection):
                return connection
            # The server has closed it.
            connection.close()
        if self._context is not None:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_seconds, context=self._context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()


def _has_proxy(url: str) -> bool:
    """Whether the environment names a proxy for an address, which a general client is needed for."""
    parts = urlsplit(url)
    proxies = urllib.request.getproxies()
    named = proxies.get(parts.scheme.lower()) or proxies.get("all")
    return bool(named) and not urllib.request.proxy_bypass(parts.hostname or "")


def _is_readable(connection: http.client.HTTPConnection) -> bool:
    """Whether an idle connection has something to read: its end, nothing else comes unasked."""
    if connection.sock is None:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([connection.sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
