"""A Chroma server, started once for all tests that need it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import NoReturn

import pytest
from scripts.servers.chroma import ChromaProcess
from scripts.servers.common import ServerUnavailable
from scripts.servers.process import running

if find_spec("chromadb") is None and not os.environ.get("CI"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def chroma(leave_out: Callable[[str], NoReturn]) -> Iterator[ChromaProcess]:
    try:
        with running(ChromaProcess()) as server:
            yield server
    except ServerUnavailable as error:
        leave_out(str(error))
