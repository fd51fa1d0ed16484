"""One careful way to ask a model server: retries, one deadline, a size limit, no strange redirects."""

from __future__ import annotations

import json
import os
import random
import ssl
import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from weft.embedding.base import check_base_url
from weft.errors import EmbeddingError, MissingExtra

if TYPE_CHECKING:
    import httpx

MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Six times what 128 vectors of 4,096 numbers take as JSON."""

MAX_RETRY_AFTER: Final = 30.0
"""A server that asks for a longer pause is reported, not waited for."""

MAX_BACKOFF: Final = 20.0
MAX_REDIRECTS: Final = 3
RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""The last four: what proxies in front of hosted models answer when these are busy."""

_EXCERPT: Final = 200
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class JsonClient:
    """Posts JSON to one server and reads JSON. Safe to use from several threads."""

    def __init__(
        self, base_url: str, *, timeout: float, retries: int, backoff: float, api_key_env: str | None
    ) -> None:
        try:
            import httpx
        except ImportError as error:
            raise MissingExtra("An embedding model on a server", "http-models") from error
        check_base_url(base_url)
        self._httpx = httpx
        self._base_url = base_url.rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self._backoff = backoff
        self._api_key_env = api_key_env
        self._closed = threading.Event()
        parts = urlsplit(base_url)
        # Reading the trusted certificates takes 50 ms; a plain http server gets a context that trusts nobody.
        verify = True if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # A proxy of the environment cannot reach this machine's own servers.
        self._client = httpx.Client(
            follow_redirects=False, verify=verify, trust_env=parts.hostname not in _LOOPBACK
        )

    def post(self, path: str, body: object) -> object:
        """The JSON that the server answers; EmbeddingError when there is none within the time and retries."""
        payload = json.dumps(body, ensure_ascii=True).encode()
        url = self._base_url + path
        deadline = time.monotonic() + self._timeout
        for attempt in range(self._retries + 1):
            if self._closed.is_set():
                raise EmbeddingError("The embedding model was closed while it was being asked.")
            try:
                status, pause, answer = self._send(url, payload, deadline)
            except self._httpx.RequestError as error:
                problem, pause = self._transport_problem(url, error), None
            else:
                if status == 200:
                    return _parsed(url, answer)
                problem = self._status_problem(url, status, answer)
                if status not in RETRIED:
                    raise EmbeddingError(problem)
            if attempt == self._retries:
                break
            pause = self._pause(attempt) if pause is None else pause
            if pause > min(MAX_RETRY_AFTER, deadline - time.monotonic()):
                break
            self._closed.wait(pause)
        raise EmbeddingError(problem)

    def close(self) -> None:
        self._closed.set()
        self._client.close()

    def _send(self, url: str, payload: bytes, deadline: float) -> tuple[int, float | None, bytes]:
        """Status, the pause the server asks for, and the body; follows redirects on the same server."""
        for _ in range(MAX_REDIRECTS + 1):
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._httpx.ReadTimeout("no time left")
            with self._client.stream(
                "POST", url, content=payload, headers=self._headers(), timeout=left
            ) as response:
                if not response.has_redirect_location:
                    pause = _retry_after(response.headers.get("retry-after"))
                    return response.status_code, pause, self._read(response, url, deadline)
                url = self._redirected(url, response)
        raise EmbeddingError(f"{_place(url)} redirects in a circle; check embedding.base_url.")

    def _read(self, response: httpx.Response, url: str, deadline: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        for part in response.iter_bytes():
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise EmbeddingError(
                    f"{_place(url)} answered with more than {MAX_ANSWER_BYTES >> 20} MB and was cut off; "
                    "set a smaller embedding.batch, or check embedding.base_url."
                )
            if time.monotonic() > deadline:  # the library's own limit starts anew with every part
                raise self._httpx.ReadTimeout("the answer comes too slowly")
            parts.append(part)
        return b"".join(parts)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        key = self._key()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _key(self) -> str:
        """Read at each request: a key that is set or changed later counts, and none is kept in memory."""
        if self._api_key_env is None:
            return ""
        key = os.environ.get(self._api_key_env, "").strip()
        if not key:
            raise EmbeddingError(
                f"The environment variable {self._api_key_env} is empty or not set; "
                "put the API key there, or name another variable in embedding.api_key_env."
            )
        if not (key.isascii() and key.isprintable()):
            raise EmbeddingError(f"What {self._api_key_env} holds cannot be an API key; set it anew.")
        return key

    def _redirected(self, url: str, response: httpx.Response) -> str:
        try:
            target = urljoin(url, response.headers["location"])
            same_server = urlsplit(target)[:2] == urlsplit(url)[:2]
        except ValueError as error:
            raise EmbeddingError(f"{_place(url)} redirects to nowhere; check embedding.base_url.") from error
        # 301, 302 and 303 would turn the question into a GET without its body.
        if response.status_code not in (307, 308) or not same_server:
            raise EmbeddingError(
                f"{_place(url)} redirects to {_place(target)}, which weft does not follow; "
                "if that is the right server, set it as embedding.base_url."
            )
        return target

    def _pause(self, attempt: int) -> float:
        # Between half and the whole, so that several clients do not come back at the same moment.
        return float(min(MAX_BACKOFF, self._backoff * 2**attempt) * random.uniform(0.5, 1))  # noqa: S311

    def _transport_problem(self, url: str, error: Exception) -> str:
        if isinstance(error, self._httpx.TimeoutException):
            return (
                f"{_place(url)} did not answer within {self._timeout:g} s; "
                "is the server busy? Raise embedding.timeout, or set a smaller embedding.batch."
            )
        return (
            f"{_place(url)} cannot be reached ({type(error).__name__}: {error}); "
            "is the server running, and is embedding.base_url right?"
        )

    def _status_problem(self, url: str, status: int, answer: bytes) -> str:
        advice = {
            401: f"check the key in {self._api_key_env or 'the variable that embedding.api_key_env names'}",
            403: f"check the key in {self._api_key_env or 'the variable that embedding.api_key_env names'}",
            404: "check embedding.base_url and embedding.model",
            413: "set a smaller embedding.batch",
            429: "the service limits how often it is asked; wait, or set a smaller embedding.batch",
        }.get(status, "try again later" if status >= 500 else "check embedding.model and the other settings")
        return f"{_place(url)} answered {status}{self._excerpt(answer)}; {advice}."

    def _excerpt(self, answer: bytes) -> str:
        """The server's own words, short, on one line, and without the key some servers repeat."""
        said = answer[:4096].decode("utf-8", "replace")
        key = os.environ.get(self._api_key_env, "").strip() if self._api_key_env else ""
        if key:
            said = said.replace(key, "***")
        said = " ".join("".join(c if c.isprintable() else " " for c in said).split())
        return f" ({said[:_EXCERPT]})" if said else ""


def _parsed(url: str, answer: bytes) -> object:
    try:
        parsed: object = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise EmbeddingError(
            f"{_place(url)} did not answer with JSON; is embedding.base_url the address of a model server?"
        ) from error
    return parsed


def _retry_after(value: str | None) -> float | None:
    """The header's seconds, or seconds until its date; None where it is missing or senseless."""
    if not value:
        return None
    value = value.strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _place(url: str) -> str:
    """Scheme, host and path: enough to recognise the server, without a password or query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
