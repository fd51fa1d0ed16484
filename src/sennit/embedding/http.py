"""One careful way to ask a model server: retries, one deadline, a size limit, no strange redirects."""

from __future__ import annotations

import json
import os
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urljoin, urlsplit

from sennit.embedding.base import check_base_url
from sennit.errors import EmbeddingError, MissingExtra, SourceError

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

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind:
    """What sort of model is asked: where its settings are, how it takes a key, and how its failures read."""

    section: str = "embedding"
    what: str = "embedding model"
    error: type[SourceError] = EmbeddingError
    smaller: str = "set a smaller embedding.batch"
    """What helps when there is too much at once."""
    slower: str = "embedding.timeout"
    """The setting to raise when there is too little time."""
    most_bytes: int = MAX_ANSWER_BYTES
    key_header: str = "Authorization"
    headers: Mapping[str, str] = field(default_factory=dict)


EMBEDDING: Final = Kind()


class JsonClient:
    """Posts JSON to one server and reads JSON. Safe to use from several threads."""

    def __init__(
        self,
        base_url: str,
        *,
        timeout: float,
        retries: int,
        backoff: float,
        api_key_env: str | None,
        kind: Kind = EMBEDDING,
    ) -> None:
        try:
            import httpx
        except ImportError as error:
            article = "An" if kind.what[0] in "aeiou" else "A"
            raise MissingExtra(f"{article} {kind.what} on a server", "http-models") from error
        check_base_url(base_url, kind.section)
        self._kind = kind
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

    def post(self, path: str, body: object, *, timeout: float | None = None) -> object:
        """The JSON that the server answers; an error when there is none within the time and retries."""
        url = self._base_url + path
        deadline = time.monotonic() + (timeout or self._timeout)
        answer = self._tried(
            url, body, deadline, timeout, lambda response: b"".join(self._parts(response, url, deadline))
        )
        return self._parsed(url, answer)

    def stream(self, path: str, body: object, *, timeout: float | None = None) -> Iterator[bytes]:
        """What the server answers, in parts as they come; once there is one, nothing is tried again."""
        url = self._base_url + path
        deadline = time.monotonic() + (timeout or self._timeout)
        response = self._tried(url, body, deadline, timeout, lambda response: response)
        try:
            yield from self._parts(response, url, deadline)
        except self._httpx.RequestError as error:
            raise self._kind.error(self._transport_problem(url, error, timeout)) from error
        finally:
            response.close()

    def _tried(
        self,
        url: str,
        body: object,
        deadline: float,
        timeout: float | None,
        take: Callable[[httpx.Response], T],
    ) -> T:
        """What is taken from the first good answer; each attempt under the one deadline."""
        payload = json.dumps(body, ensure_ascii=True).encode()
        for attempt in range(self._retries + 1):
            if self._closed.is_set():
                raise self._kind.error(f"The {self._kind.what} was closed while it was being asked.")
            try:
                with ExitStack() as open_until_taken:
                    response = self._send(url, payload, deadline)
                    open_until_taken.callback(response.close)
                    pause = _retry_after(response.headers.get("retry-after"))
                    if response.status_code == 200:
                        taken = take(response)
                        if taken is response:
                            open_until_taken.pop_all()
                        return taken
                    answer = b"".join(self._parts(response, url, deadline))
            except self._httpx.RequestError as error:
                problem, pause = self._transport_problem(url, error, timeout), None
            else:
                problem = self._status_problem(url, response.status_code, answer)
                if response.status_code not in RETRIED:
                    raise self._kind.error(problem)
            if attempt == self._retries:
                break
            pause = self._pause(attempt) if pause is None else pause
            if pause > min(MAX_RETRY_AFTER, deadline - time.monotonic()):
                break
            self._closed.wait(pause)
        raise self._kind.error(problem)

    def close(self) -> None:
        self._closed.set()
        self._client.close()

    def _send(self, url: str, payload: bytes, deadline: float) -> httpx.Response:
        """The answer, its body not yet read; follows redirects on the same server."""
        for _ in range(MAX_REDIRECTS + 1):
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._httpx.ReadTimeout("no time left")
            request = self._client.build_request(
                "POST", url, content=payload, headers=self._headers(), timeout=left
            )
            response = self._client.send(request, stream=True)
            if not response.has_redirect_location:
                return response
            response.close()
            url = self._redirected(url, response)
        raise self._kind.error(f"{_place(url)} redirects in a circle; check {self._kind.section}.base_url.")

    def _parts(self, response: httpx.Response, url: str, deadline: float) -> Iterator[bytes]:
        size = 0
        for part in response.iter_bytes():
            size += len(part)
            if size > self._kind.most_bytes:
                raise self._kind.error(
                    f"{_place(url)} answered with more than {self._kind.most_bytes >> 20} MB and was cut off; "
                    f"{self._kind.smaller}, or check {self._kind.section}.base_url."
                )
            if time.monotonic() > deadline:  # the library's own limit starts anew with every part
                raise self._httpx.ReadTimeout("the answer comes too slowly")
            yield part

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self._kind.headers}
        key = self._key()
        if key:
            name = self._kind.key_header
            headers[name] = f"Bearer {key}" if name == "Authorization" else key
        return headers

    def _key(self) -> str:
        """Read at each request: a key that is set or changed later counts, and none is kept in memory."""
        if self._api_key_env is None:
            return ""
        key = os.environ.get(self._api_key_env, "").strip()
        if not key:
            raise self._kind.error(
                f"The environment variable {self._api_key_env} is empty or not set; "
                f"put the API key there, or name another variable in {self._kind.section}.api_key_env."
            )
        if not (key.isascii() and key.isprintable()):
            raise self._kind.error(f"What {self._api_key_env} holds cannot be an API key; set it anew.")
        return key

    def _redirected(self, url: str, response: httpx.Response) -> str:
        try:
            target = urljoin(url, response.headers["location"])
            same_server = urlsplit(target)[:2] == urlsplit(url)[:2]
        except ValueError as error:
            raise self._kind.error(
                f"{_place(url)} redirects to nowhere; check {self._kind.section}.base_url."
            ) from error
        # 301, 302 and 303 would turn the question into a GET without its body.
        if response.status_code not in (307, 308) or not same_server:
            raise self._kind.error(
                f"{_place(url)} redirects to {_place(target)}, which sennit does not follow; "
                f"if that is the right server, set it as {self._kind.section}.base_url."
            )
        return target

    def _pause(self, attempt: int) -> float:
        # Between half and the whole, so that several clients do not come back at the same moment.
        return float(min(MAX_BACKOFF, self._backoff * 2**attempt) * random.uniform(0.5, 1))  # noqa: S311

    def _transport_problem(self, url: str, error: Exception, timeout: float | None) -> str:
        kind = self._kind
        if isinstance(error, self._httpx.TimeoutException):
            return (
                f"{_place(url)} did not answer within {timeout or self._timeout:g} s; "
                f"is the server busy? Raise {kind.slower}, or {kind.smaller}."
            )
        return (
            f"{_place(url)} cannot be reached ({type(error).__name__}: {error}); "
            f"is the server running, and is {kind.section}.base_url right?"
        )

    def _status_problem(self, url: str, status: int, answer: bytes) -> str:
        kind = self._kind
        key = f"check the key in {self._api_key_env or f'the variable that {kind.section}.api_key_env names'}"
        advice = {
            401: key,
            403: key,
            404: f"check {kind.section}.base_url and {kind.section}.model",
            413: kind.smaller,
            429: f"the service limits how often it is asked; wait, or {kind.smaller}",
        }.get(
            status,
            "try again later" if status >= 500 else f"check {kind.section}.model and the other settings",
        )
        return f"{_place(url)} answered {status}{self._excerpt(answer)}; {advice}."

    def _parsed(self, url: str, answer: bytes) -> object:
        try:
            parsed: object = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise self._kind.error(
                f"{_place(url)} did not answer with JSON; "
                f"is {self._kind.section}.base_url the address of a model server?"
            ) from error
        return parsed

    def _excerpt(self, answer: bytes) -> str:
        """The server's own words, short, on one line, and without the key some servers repeat."""
        said = answer[:4096].decode("utf-8", "replace")
        key = os.environ.get(self._api_key_env, "").strip() if self._api_key_env else ""
        if key:
            said = said.replace(key, "***")
        said = " ".join("".join(c if c.isprintable() else " " for c in said).split())
        return f" ({said[:_EXCERPT]})" if said else ""


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
