from __future__ import annotations

from collections.abc import Iterator

import pytest

from llm.server import ChatServer


@pytest.fixture
def server() -> Iterator[ChatServer]:
    running = ChatServer()
    yield running
    running.close()
