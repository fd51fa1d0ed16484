"""What language models on a server share: the time, the size, the lines of a stream, and distrust of what comes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Final, NamedTuple, TypeVar

from sennit.embedding.http import JsonClient, Kind
from sennit.errors import SourceError
from sennit.llm.base import LanguageSpec
from sennit.llm.deadline import Late, within

T = TypeVar("T")

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""A hundred times what the longest answers take on the wire, with the frames around every few letters."""

MAX_TEXT: Final = 400_000
"""Characters of an answer."""

LANGUAGE: Final = Kind(
    section="llm",
    what="language model",
    error=SourceError,
    smaller="set a smaller llm.max_tokens",
    slower="llm.timeout",
    most_bytes=MAX_ANSWER_BYTES,
)


class Said(NamedTuple):
    """What one event of a stream adds, and whether it is the last."""

    text: str = ""
    last: bool = False


class RemoteModel(ABC):
    """A model behind HTTP."""

    path: ClassVar[str]

    def __init__(
        self,
        spec: LanguageSpec,
        *,
        base_url: str,
        api_key_env: str | None,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.name: Final = f"{spec.provider}/{spec.model}"
        self._model: Final = spec.model
        self._client: Final = JsonClient(
            base_url,
            timeout=60.0,
            retries=spec.retries,
            backoff=spec.backoff,
            api_key_env=api_key_env,
            kind=replace(LANGUAGE, key_header=key_header, headers=headers or {}),
        )

    @abstractmethod
    def _body(self, system: str, prompt: str, max_tokens: int, *, stream: bool) -> dict[str, object]:
        """What is sent."""

    @abstractmethod
    def _text(self, answer: Mapping[str, object]) -> str:
        """The text of a whole answer."""

    @abstractmethod
    def _said(self, event: Mapping[str, object]) -> Said:
        """What an event of a stream says."""

    def complete(self, system: str, prompt: str, *, max_tokens: int, timeout: float) -> str:
        body = self._body(sendable(system), sendable(prompt), max_tokens, stream=False)

        def ask() -> Iterator[object]:
            yield self._client.post(self.path, body, timeout=timeout)

        for answer in self._timed(timeout, ask()):
            text = self._text(answer if isinstance(answer, dict) else {})
            if not text.strip():
                raise self.nonsense("an empty text")
            return self._short_enough(text)
        raise self.nonsense("nothing")

    def stream(self, system: str, prompt: str, *, max_tokens: int, timeout: float) -> Iterator[str]:
        body = self._body(sendable(system), sendable(prompt), max_tokens, stream=True)
        parts = self._timed(timeout, self._client.stream(self.path, body, timeout=timeout))
        length = 0
        for event in self._events(parts):
            said = self._said(event)
            length += len(said.text)
            if length > MAX_TEXT:
                raise self.nonsense(f"more than {MAX_TEXT:,} characters")
            if said.text:
                yield said.text
            if said.last:
                if not length:
                    raise self.nonsense("an empty text")
                return
        raise SourceError(f"{self.name} stopped in the middle of its answer; ask again.")

    def close(self) -> None:
        self._client.close()

    def nonsense(self, what: str) -> SourceError:
        """An error about an answer that cannot be used."""
        return SourceError(
            f"{self.name} answered with {what}; "
            "check that llm.model is a chat model and that llm.base_url is its server."
        )

    def refused(self, why: str = "") -> SourceError:
        """An error about a model that will not answer."""
        return SourceError(f"{self.name} declined to answer{f' ({why})' if why else ''}; ask it differently.")

    def _short_enough(self, text: str) -> str:
        if len(text) > MAX_TEXT:
            raise self.nonsense(f"more than {MAX_TEXT:,} characters")
        return text

    def _timed(self, timeout: float, parts: Iterator[T]) -> Iterator[T]:
        try:
            yield from within(timeout, lambda: parts, self.name)
        except Late:
            raise SourceError(
                f"{self.name} did not answer within {timeout:g} s; is the server busy? Raise llm.timeout or "
                "llm.transform_timeout, whichever this was, or set a smaller llm.max_tokens."
            ) from None

    def _events(self, parts: Iterable[bytes]) -> Iterator[Mapping[str, object]]:
        """The JSON objects of a stream: each on a line, perhaps after `data:`."""
        for line in lines_of(parts):
            content = line.strip().removeprefix(b"data:").strip()
            if not content.startswith(b"{"):
                continue  # names of events, comments, and the [DONE] of some servers
            try:
                event = json.loads(content)
            except (ValueError, RecursionError):
                raise self.nonsense("a stream that is not JSON") from None
            yield event


def lines_of(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines, however they were cut on the way; the last may lack its end."""
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from whole
    if rest:
        yield rest


def sendable(text: str) -> str:
    """JSON for a server must be valid Unicode; a lone surrogate is not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def text_at(value: object, *path: str | int) -> str:
    """The text at a place inside JSON; empty when there is none."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
