"""What models behind HTTP share: deadlines, size limits, parsing of streams, and sanitizing of every prompt."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Final, NamedTuple, TypeVar

from sennit.context.sanitize import sanitize
from sennit.embedding.http import JsonClient, ModelService
from sennit.errors import SourceError
from sennit.llm.base import LanguageSpec
from sennit.llm.deadline import DeadlineExceeded, iterate_with_deadline

T = TypeVar("T")

MAX_RESPONSE_BYTES: Final = 16 * 1024 * 1024
"""A hundred times the longest answers on the wire, with the JSON around every few letters of a stream."""

MAX_ANSWER_CHARACTERS: Final = 400_000

LANGUAGE_SERVICE: Final = ModelService(
    section="llm",
    description="language model",
    error=SourceError,
    size_advice="set a smaller llm.max_tokens",
    timeout_setting="llm.timeout",
    max_response_bytes=MAX_RESPONSE_BYTES,
)


class StreamEvent(NamedTuple):
    """The text that one event of a stream adds."""

    text: str = ""
    is_last: bool = False


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
            service=replace(LANGUAGE_SERVICE, key_header=key_header, headers=headers or {}),
        )

    @abstractmethod
    def _body(self, system: str, prompt: str, max_tokens: int, *, stream: bool) -> dict[str, object]:
        """Return the JSON body of a request."""

    @abstractmethod
    def _parse_answer(self, answer: Mapping[str, object]) -> str:
        """Return the text of a whole answer."""

    @abstractmethod
    def _parse_event(self, event: Mapping[str, object]) -> StreamEvent:
        """Return what an event of a stream adds."""

    def complete(self, system: str, prompt: str, *, max_tokens: int, timeout: float) -> str:
        body = self._body(sanitize(system), sanitize(prompt), max_tokens, stream=False)

        def ask() -> Iterator[object]:
            yield self._client.post(self.path, body, timeout=timeout)

        for answer in self._with_deadline(timeout, ask()):
            text = self._parse_answer(answer if isinstance(answer, dict) else {})
            if not text.strip():
                raise self.unusable_answer("an empty text")
            return self._check_length(text)
        raise self.unusable_answer("nothing")

    def stream(self, system: str, prompt: str, *, max_tokens: int, timeout: float) -> Iterator[str]:
        body = self._body(sanitize(system), sanitize(prompt), max_tokens, stream=True)
        parts = self._with_deadline(timeout, self._client.stream(self.path, body, timeout=timeout))
        length = 0
        for event in self._events(parts):
            parsed = self._parse_event(event)
            length += len(parsed.text)
            if length > MAX_ANSWER_CHARACTERS:
                raise self.unusable_answer(f"more than {MAX_ANSWER_CHARACTERS:,} characters")
            if parsed.text:
                yield parsed.text
            if parsed.is_last:
                if not length:
                    raise self.unusable_answer("an empty text")
                return
        raise SourceError(f"{self.name} stopped in the middle of its answer; ask again.")

    def close(self) -> None:
        self._client.close()

    def unusable_answer(self, what: str) -> SourceError:
        """Return an error about an answer that cannot be used."""
        return SourceError(
            f"{self.name} answered with {what}; "
            "check that llm.model is a chat model and that llm.base_url is its server."
        )

    def refusal(self, why: str = "") -> SourceError:
        """Return an error about a model that declines to answer."""
        return SourceError(f"{self.name} declined to answer{f' ({why})' if why else ''}; ask it differently.")

    def _check_length(self, text: str) -> str:
        if len(text) > MAX_ANSWER_CHARACTERS:
            raise self.unusable_answer(f"more than {MAX_ANSWER_CHARACTERS:,} characters")
        return text

    def _with_deadline(self, timeout: float, parts: Iterator[T]) -> Iterator[T]:
        try:
            yield from iterate_with_deadline(timeout, lambda: parts, self.name)
        except DeadlineExceeded:
            raise SourceError(
                f"{self.name} did not answer within {timeout:g} s; is the server busy? Raise llm.timeout or "
                "llm.transform_timeout, whichever this was, or set a smaller llm.max_tokens."
            ) from None

    def _events(self, parts: Iterable[bytes]) -> Iterator[Mapping[str, object]]:
        """Yield the JSON objects of a stream: one on each line, perhaps after `data:`."""
        for line in split_lines(parts):
            content = line.strip().removeprefix(b"data:").strip()
            if not content.startswith(b"{"):
                continue  # an event name, a comment, or the [DONE] of some servers
            try:
                event = json.loads(content)
            except (ValueError, RecursionError):
                raise self.unusable_answer("a stream that is not JSON") from None
            yield event


def split_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines from chunks of any size; the last line may lack its newline."""
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from whole
    if rest:
        yield rest


def text_at(value: object, *path: str | int) -> str:
    """Return the text at a path inside JSON; empty if there is none."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
