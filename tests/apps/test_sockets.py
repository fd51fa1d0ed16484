"""The listening socket."""

from __future__ import annotations

import socket

from sennit.apps.sockets import listen


def test_accepted_connections_have_tcp_nodelay() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
