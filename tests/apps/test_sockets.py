"""The socket that servers of this machine listen on."""

from __future__ import annotations

import socket

from sennit.apps.sockets import listen


def test_an_answer_does_not_wait_for_the_client_to_confirm_its_head() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
