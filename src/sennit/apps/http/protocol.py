"""The connection of a client: HTTP/1.1 by httptools, with a bound on the head of a request and errors as JSON."""

from __future__ import annotations

import uuid
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sennit.apps.http.bodies import JSON_TYPE
from sennit.apps.http.errors import HttpError, encode_error

MAX_HEAD_BYTES: Final = 64 * 1024
"""Request line and headers that may arrive before the head is complete. The parser itself would collect without end."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """Refuses what is not HTTP, and a request whose head does not end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self.send_400_response(f"Request line and headers may have at most {MAX_HEAD_BYTES:,} bytes.")

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer in the format of all errors, and close the connection."""
        request_id = uuid.uuid4().hex
        body = encode_error(HttpError(400, msg), request_id)
        head = (
            "HTTP/1.1 400 Bad Request\r\n"
            f"content-type: {JSON_TYPE}\r\n"
            f"content-length: {len(body)}\r\n"
            f"x-request-id: {request_id}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
