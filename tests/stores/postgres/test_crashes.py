"""A process killed at any time loses no write that Postgres committed, and leaves no partial batch."""

from __future__ import annotations

import pytest

from ..test_crashes import kill_repeatedly


def test_committed_writes_survive_a_kill_of_the_writer(dsn: str) -> None:
    kill_repeatedly(dsn, range(3))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_committed_writes_survive_forty_kills_of_the_writer(dsn: str) -> None:
    kill_repeatedly(dsn, range(100, 140))
