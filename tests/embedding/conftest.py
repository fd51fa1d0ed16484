from __future__ import annotations

from collections.abc import Iterator

import pytest

from .server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    running = ModelServer()
    yield running
    running.close()


@pytest.fixture
def other_server() -> Iterator[ModelServer]:
    running = ModelServer()
    yield running
    running.close()
