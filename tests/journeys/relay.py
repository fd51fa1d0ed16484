"""A relay before a server, which stops in the middle of what a client sends."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

CHUNK_BYTES = 65_536


class Relay:
    """Passes on so many bytes from clients to a server, and then nothing more: the client waits, and can be killed."""

    def __init__(self, url: str, limit: int) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._left = limit
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self.url = url.replace(f":{parts.port}", f":{self._listener.getsockname()[1]}")
        self.has_stopped = threading.Event()
        """Set when the limit is reached."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close every connection."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                threading.Thread(target=self._pass_on, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(server, client, False), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if is_counted and not self._may_pass(len(data)):
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def _may_pass(self, size: int) -> bool:
        with self._lock:
            self._left -= size
            if self._left < 0:
                self.has_stopped.set()
            return self._left >= 0


@contextlib.contextmanager
def relay(url: str, limit: int) -> Iterator[Relay]:
    """A relay, closed at the end of the block."""
    made = Relay(url, limit)
    try:
        yield made
    finally:
        made.close()
