"""A chat server on loopback that speaks the protocols of the three providers, whole and in parts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler

from embedding.server import ModelServer, Request, Response, as_json, hang, reset, truncate_body

__all__ = ["ChatServer", "Request", "Response", "as_json", "hang", "reset", "truncate_body"]

PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "ollama": "/api/chat"}


def whole(path: str, text: str) -> object:
    """Return a whole answer."""
    if path == PATHS["anthropic"]:
        thought = {"type": "thinking", "thinking": "hm"}
        return {"content": [thought, {"type": "text", "text": text}], "stop_reason": "end_turn"}
    if path == PATHS["ollama"]:
        return {"message": {"role": "assistant", "content": text}, "done": True}
    message = {"role": "assistant", "content": text, "refusal": None}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def events(path: str, parts: Sequence[str]) -> list[bytes]:
    """Return the lines of a streamed answer; the last line marks the end."""
    if path == PATHS["ollama"]:
        said = [{"message": {"content": part}, "done": False} for part in parts]
        return [json.dumps(event).encode() + b"\n" for event in [*said, {"message": {}, "done": True}]]
    if path == PATHS["anthropic"]:
        named: list[dict[str, object]] = [{"type": "message_start"}, {"type": "ping"}]
        named += [
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": part}} for part in parts
        ]
        named.append({"type": "message_stop"})
        return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in named]
    chunks: list[object] = [
        {"choices": [{"delta": {"content": part}, "finish_reason": None}]} for part in parts
    ]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    return [f"data: {json.dumps(c)}\n\n".encode() for c in chunks] + [b"data: [DONE]\n\n"]


class ChatServer(ModelServer):
    """Answers with `says`, unless `script` holds the next response."""

    def __init__(self) -> None:
        super().__init__()
        self.says = "Use the retry setting [1]."

    def base_url(self, provider: str) -> str:
        return f"{self.url}/v1" if provider == "openai" else self.url

    def settings(self) -> dict[str, object]:
        """Return settings that make sennit use this server, in OpenAI's protocol and without a transform."""
        return {
            "llm__provider": "openai",
            "llm__model": "small",
            "llm__base_url": self.base_url("openai"),
            "llm__retries": 0,
            "llm__transform": "none",
        }

    def environment(self) -> dict[str, str]:
        """Return the same settings as environment variables."""
        return {
            f"SENNIT_{name.replace('__', '_').upper()}": str(value) for name, value in self.settings().items()
        }

    def respond(self, request: Request) -> Response:
        if request.body["stream"]:
            words = self.says.split(" ")
            parts = [word if at == 0 else f" {word}" for at, word in enumerate(words)]
            return streamed(events(request.path, parts))
        return as_json(whole(request.path, self.says))


def streamed(lines: Sequence[bytes], *, then_hang: bool = False) -> Response:
    """Return a response that sends the lines, then closes the connection or hangs."""

    def act(handler: BaseHTTPRequestHandler, released: threading.Event) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for line in lines:
            handler.wfile.write(line)
            handler.wfile.flush()
        if then_hang:
            released.wait(10)

    return Response(act=act)


def endless(unheard: threading.Event) -> Callable[[BaseHTTPRequestHandler, threading.Event], None]:
    """Stream for ever, in OpenAI's protocol; set `unheard` when the client stops reading."""

    def act(handler: BaseHTTPRequestHandler, released: threading.Event) -> None:
        part, *_ = events(PATHS["openai"], ["and on "])
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while not released.wait(0.01):
                handler.wfile.write(part)
                handler.wfile.flush()
        except OSError:
            unheard.set()

    return act
