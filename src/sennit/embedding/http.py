"""The HTTP client for model servers: retries, one deadline, a response size limit, no cross-server redirects."""

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

from sennit.credentials import read_credential
from sennit.embedding.base import check_base_url
from sennit.errors import EmbeddingError, MissingExtra, SourceError

if TYPE_CHECKING:
    import httpx

MAX_RESPONSE_BYTES: Final = 64 * 1024 * 1024
"""Six times the JSON of 128 vectors of 4,096 numbers."""

MAX_RETRY_AFTER_SECONDS: Final = 30.0
"""If a server asks for a longer pause, the client raises an error instead of waiting."""

MAX_BACKOFF_SECONDS: Final = 20.0
MAX_REDIRECTS: Final = 3
RETRYABLE_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Proxies in front of hosted models send the last four when the models are busy."""

_MAX_EXCERPT_CHARS: Final = 200
_LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelService:
    """What differs between model services: the settings to name in errors, the error class, the headers."""

    section: str = "embedding"
    """The section of the settings file."""
    description: str = "embedding model"
    error: type[SourceError] = EmbeddingError
    size_advice: str = "set a smaller embedding.batch"
    """The advice in an error about a request or response that is too large."""
    timeout_setting: str = "embedding.timeout"
    """The setting to raise after a timeout."""
    max_response_bytes: int = MAX_RESPONSE_BYTES
    key_header: str = "Authorization"
    headers: Mapping[str, str] = field(default_factory=dict)


EMBEDDING_SERVICE: Final = ModelService()


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
        service: ModelService = EMBEDDING_SERVICE,
    ) -> None:
        try:
            import httpx
        except ImportError as error:
            article = "An" if service.description[0] in "aeiou" else "A"
            raise MissingExtra(f"{article} {service.description} on a server", "http-models") from error
        check_base_url(base_url, service.section)
        self._service = service
        self._httpx = httpx
        self._base_url = base_url.rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self._backoff = backoff
        self._api_key_env = api_key_env
        self._closed = threading.Event()
        parts = urlsplit(base_url)
        # Loading the trusted certificates takes 50 ms. Plain http needs none, so it gets an empty context.
        verify = True if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # A proxy from the environment cannot reach a server on this machine.
        self._client = httpx.Client(
            follow_redirects=False, verify=verify, trust_env=parts.hostname not in _LOOPBACK_HOSTS
        )

    def post(self, path: str, body: object, *, timeout: float | None = None) -> object:
        """Post a body and return the parsed JSON response; raise an error if all retries fail."""
        url = self._base_url + path
        deadline = time.monotonic() + (timeout or self._timeout)
        content = self._send_with_retries(
            url, body, deadline, timeout, lambda response: b"".join(self._read_body(response, url, deadline))
        )
        return self._parse_json(url, content)

    def stream(self, path: str, body: object, *, timeout: float | None = None) -> Iterator[bytes]:
        """Post a body and yield the response in chunks as they arrive. A started response is not retried."""
        url = self._base_url + path
        deadline = time.monotonic() + (timeout or self._timeout)
        response = self._send_with_retries(url, body, deadline, timeout, lambda response: response)
        try:
            yield from self._read_body(response, url, deadline)
        except self._httpx.RequestError as error:
            raise self._service.error(self._transport_problem(url, error, timeout)) from error
        finally:
            response.close()

    def _send_with_retries(
        self,
        url: str,
        body: object,
        deadline: float,
        timeout: float | None,
        read: Callable[[httpx.Response], T],
    ) -> T:
        """Send until a response has status 200 and return `read(response)`. All attempts share one deadline."""
        payload = json.dumps(body, ensure_ascii=True).encode()
        for attempt in range(self._retries + 1):
            if self._closed.is_set():
                raise self._service.error(f"The {self._service.description} was closed during a request.")
            try:
                with ExitStack() as cleanup:
                    response = self._send(url, payload, deadline)
                    cleanup.callback(response.close)
                    pause = _parse_retry_after(response.headers.get("retry-after"))
                    if response.status_code == 200:
                        result = read(response)
                        if result is response:
                            cleanup.pop_all()  # the caller reads and closes it
                        return result
                    content = b"".join(self._read_body(response, url, deadline))
            except self._httpx.RequestError as error:
                problem, pause = self._transport_problem(url, error, timeout), None
            else:
                problem = self._status_problem(url, response.status_code, content)
                if response.status_code not in RETRYABLE_STATUSES:
                    raise self._service.error(problem)
            if attempt == self._retries:
                break
            pause = self._backoff_seconds(attempt) if pause is None else pause
            if pause > min(MAX_RETRY_AFTER_SECONDS, deadline - time.monotonic()):
                break
            self._closed.wait(pause)
        raise self._service.error(problem)

    def close(self) -> None:
        self._closed.set()
        self._client.close()

    def _send(self, url: str, payload: bytes, deadline: float) -> httpx.Response:
        """Return the response with its body unread. Redirects on the same server are followed."""
        for _ in range(MAX_REDIRECTS + 1):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise self._httpx.ReadTimeout("no time left")
            request = self._client.build_request(
                "POST", url, content=payload, headers=self._headers(), timeout=remaining
            )
            response = self._client.send(request, stream=True)
            if not response.has_redirect_location:
                return response
            response.close()
            url = self._redirect_target(url, response)
        raise self._service.error(
            f"{_display_url(url)} redirects in a circle; check {self._service.section}.base_url."
        )

    def _read_body(self, response: httpx.Response, url: str, deadline: float) -> Iterator[bytes]:
        size = 0
        for chunk in response.iter_bytes():
            size += len(chunk)
            if size > self._service.max_response_bytes:
                raise self._service.error(
                    f"{_display_url(url)} sent more than {self._service.max_response_bytes >> 20} MB, so the "
                    f"response was dropped; {self._service.size_advice}, or check {self._service.section}.base_url."
                )
            if time.monotonic() > deadline:  # httpx restarts its own timeout with every chunk
                raise self._httpx.ReadTimeout("the response arrives too slowly")
            yield chunk

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self._service.headers}
        key = self._read_key()
        if key:
            name = self._service.key_header
            headers[name] = f"Bearer {key}" if name == "Authorization" else key
        return headers

    def _read_key(self) -> str:
        """Read the key from its variable. This happens per request, so a changed key takes effect at once."""
        if self._api_key_env is None:
            return ""
        setting = f"{self._service.section}.api_key_env"
        key = read_credential(self._api_key_env, setting, self._service.error).strip()
        if not (key.isascii() and key.isprintable()):
            raise self._service.error(
                f"The value of {self._api_key_env} cannot be an API key; it must be one line of printable ASCII."
            )
        return key

    def _redirect_target(self, url: str, response: httpx.Response) -> str:
        try:
            target = urljoin(url, response.headers["location"])
            same_server = urlsplit(target)[:2] == urlsplit(url)[:2]
        except ValueError as error:
            raise self._service.error(
                f"{_display_url(url)} redirects to an invalid address; check {self._service.section}.base_url."
            ) from error
        # 301, 302 and 303 would turn the POST into a GET without a body.
        if response.status_code not in (307, 308) or not same_server:
            raise self._service.error(
                f"{_display_url(url)} redirects to {_display_url(target)}, which sennit does not follow; "
                f"if that is the right server, set it as {self._service.section}.base_url."
            )
        return target

    def _backoff_seconds(self, attempt: int) -> float:
        # Jitter, so that several clients do not retry at the same time.
        return float(min(MAX_BACKOFF_SECONDS, self._backoff * 2**attempt) * random.uniform(0.5, 1))  # noqa: S311

    def _transport_problem(self, url: str, error: Exception, timeout: float | None) -> str:
        service = self._service
        if isinstance(error, self._httpx.TimeoutException):
            return (
                f"{_display_url(url)} did not answer within {timeout or self._timeout:g} s; "
                f"is the server busy? Raise {service.timeout_setting}, or {service.size_advice}."
            )
        return (
            f"{_display_url(url)} cannot be reached ({type(error).__name__}: {error}); "
            f"is the server running, and is {service.section}.base_url right?"
        )

    def _status_problem(self, url: str, status: int, content: bytes) -> str:
        service = self._service
        variable = self._api_key_env or f"the variable that {service.section}.api_key_env names"
        key_advice = f"check the key in {variable}"
        advice = {
            401: key_advice,
            403: key_advice,
            404: f"check {service.section}.base_url and {service.section}.model",
            413: service.size_advice,
            429: f"the service limits the request rate; wait, or {service.size_advice}",
        }.get(
            status,
            "try again later" if status >= 500 else f"check {service.section}.model and the other settings",
        )
        return f"{_display_url(url)} answered {status}{self._excerpt(content)}; {advice}."

    def _parse_json(self, url: str, content: bytes) -> object:
        try:
            parsed: object = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self._service.error(
                f"{_display_url(url)} did not answer with JSON; "
                f"is {self._service.section}.base_url the address of a model server?"
            ) from error
        return parsed

    def _excerpt(self, content: bytes) -> str:
        """Return the start of the server's message on one line, without the key, which some servers repeat."""
        message = content[:4096].decode("utf-8", "replace")
        key = os.environ.get(self._api_key_env, "").strip() if self._api_key_env else ""
        if key:
            message = message.replace(key, "***")
        message = " ".join("".join(c if c.isprintable() else " " for c in message).split())
        return f" ({message[:_MAX_EXCERPT_CHARS]})" if message else ""


def _parse_retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, or the seconds until its date; None if missing or invalid."""
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


def _display_url(url: str) -> str:
    """Return scheme, host and path: enough to recognise the server, without a password or query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
