"""HTTP to one address of a server, for requests whose time counts, and which may be sent twice.

A general client copies headers, cookies and addresses for each request, and reads those of the answer as if they were of an
email, which takes longer than a small search. Connections are kept open. The answer is asked for without compression: a
server that compresses sends it in several parts, and the second waits for the acknowledgement of the first, which the system
of this machine delays by 40 ms.
"""

from __future__ import annotations

import base64
import re
import select
import socket
import ssl
import threading
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import httptools
import httpx

MAX_IDLE_CONNECTIONS: Final = 16
"""Connections kept for later."""

MAX_HEAD_BYTES: Final = 65_536
"""Bytes that are received before the head of an answer has ended; servers send some hundred."""

RECEIVED_BYTES: Final = 65_536
"""Bytes received at once; the answer to a search has about as many."""

FIRST_FINAL_STATUS: Final = 200
"""An answer with a lower status, such as 100, is followed by another."""

UNSENDABLE: Final = (
    "a header has a character that HTTP does not allow; does the API key end with a line break?"
)

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class HttpResponse(NamedTuple):
    """What a server answered, whatever the status."""

    status: int
    content: bytes
    headers: Mapping[str, str]
    """By their names in lower case."""


class RequestFailed(Exception):
    """The server could not be reached, or did not answer in HTTP or in time; the cause says what happened."""

    def __init__(self, cause: Exception, *, is_late: bool) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.is_late = is_late
        """Whether it took longer than the time limit."""


class _Answer:
    """One answer, as the parser reads it."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.is_complete = False
        self.may_keep_connection = False
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._head_bytes: int | None = 0
        """Bytes of a head that has not ended yet."""

    def read(self, data: bytes) -> None:
        """Read the next part; raises HttpParserError for what is not HTTP."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not self.is_complete:
                raise
            # What follows the answer belongs to none, so the connection cannot be used again.
            self.may_keep_connection = False
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                raise HTTPException(f"the head of the answer is longer than {MAX_HEAD_BYTES} bytes")

    def end(self) -> None:
        """Take the end of the connection; it is the end of an answer only if that has no other."""
        if self._head_bytes == 0:
            raise RemoteDisconnected("the server closed the connection without an answer")
        is_chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        if self._head_bytes is not None or "content-length" in self.headers or is_chunked:
            raise IncompleteRead(b"".join(self._parts))
        self.is_complete = True

    def response(self) -> HttpResponse:
        """Return the answer, which is complete."""
        status = self._parser.get_status_code()
        del self._parser  # It refers to this object, and both would wait for the garbage collector.
        return HttpResponse(status, b"".join(self._parts), self.headers)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._parser.get_status_code() < FIRST_FINAL_STATUS:
            self.headers.clear()
        else:
            self._head_bytes = None

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self.is_complete = self._parser.get_status_code() >= FIRST_FINAL_STATUS
        self.may_keep_connection = self._parser.should_keep_alive()


class _Connection:
    """One connection, which is opened by its first request, and used by one thread at a time."""

    def __init__(self, host: str, port: int, seconds: float, context: ssl.SSLContext | None) -> None:
        self._address = (host, port)
        self._seconds = seconds
        self._context = context
        self.sock: socket.socket | None = None

    def send(self, request: bytes) -> HttpResponse:
        """Send a request and read the answer."""
        if self.sock is None:
            self.sock = self._open()
        self.sock.sendall(request)
        answer = _Answer()
        while not answer.is_complete:
            data = self.sock.recv(RECEIVED_BYTES)
            if data:
                answer.read(data)
            else:
                answer.end()
        if not answer.may_keep_connection:
            self.close()
        return answer.response()

    def close(self) -> None:
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def _open(self) -> socket.socket:
        opened = socket.create_connection(self._address, self._seconds)
        try:
            # A request is sent as a whole, and must not wait for the acknowledgement of the last one.
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                return self._context.wrap_socket(opened, server_hostname=self._address[0])
        except BaseException:
            opened.close()
            raise
        return opened


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
        self._port = parts.port or (443 if self._is_secure else 80)
        host = f"[{self._host}]" if ":" in self._host else _encode_host(self._host)
        self._host_header = host if parts.port is None else f"{host}:{self._port}"
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
        self._idle: list[_Connection] = []
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
                found = connection.send(self._encode(method, path, content, headers))
            except TimeoutError as error:
                connection.close()
                raise RequestFailed(error, is_late=True) from error
            except (OSError, HTTPException, httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
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
            if connection.sock is not None:
                self._give_back(connection)
            return found

    def _encode(self, method: str, path: str, content: bytes, headers: Mapping[str, str]) -> bytes:
        """A request as it is sent; raises ValueError for what HTTP does not allow."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host_header}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if content or method != "GET":
            lines.append(f"Content-Length: {len(content)}")
        if _CONTROL.search("".join(lines)) or " " in path:
            raise ValueError("a control character")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + content

    def _send_by_proxy(
        self, client: httpx.Client, method: str, path: str, content: bytes, headers: Mapping[str, str]
    ) -> HttpResponse:
        try:
            found = client.request(method, self._url + path, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise RequestFailed(error, is_late=isinstance(error, httpx.TimeoutException)) from error
        return HttpResponse(found.status_code, found.content, dict(found.headers))

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are released."""
        if self._general is not None:
            self._general.close()
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> _Connection:
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
        return _Connection(self._host, self._port, self._timeout_seconds, self._context)

    def _give_back(self, connection: _Connection) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()


def _encode_host(name: str) -> str:
    """The name of a host in the characters of HTTP; one that has no such form is refused when it is connected to."""
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return name


def _has_proxy(url: str) -> bool:
    """Whether the environment names a proxy for an address, which a general client is needed for."""
    parts = urlsplit(url)
    proxies = urllib.request.getproxies()
    named = proxies.get(parts.scheme.lower()) or proxies.get("all")
    return bool(named) and not urllib.request.proxy_bypass(parts.hostname or "")


def _is_readable(connection: _Connection) -> bool:
    """Whether an idle connection has something to read: its end, nothing else comes unasked."""
    if connection.sock is None:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([connection.sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
