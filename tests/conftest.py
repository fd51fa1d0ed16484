"""What every test stands on: an environment without the user's own settings, and the shared collections."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI", "").lower() in ("1", "true")

# Frameworks read these when they are imported, and would send requests to other machines.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ["LANGSMITH_TRACING"] = "false"

SERVER_TEST_SECONDS = 900
"""A test on a server waits for the server's start too, which takes minutes on a busy machine."""

# No deadline: how long an example takes says more about the machine than about the code.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if IN_CI else "dev")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("servers") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SERVER_TEST_SECONDS))


@pytest.fixture(scope="session", autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's sennit.toml, trust list and SENNIT_ variables do not decide whether a test passes."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("SENNIT_")]:
            if not name.startswith("SENNIT_TEST_"):
                patch.delenv(name)
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture
def default_sigint() -> Iterator[None]:
    """Let child processes start with the default action for SIGINT, even where this process ignores it.

    A background job, such as `nohup make test`, ignores SIGINT and its children inherit that. Python then installs no
    KeyboardInterrupt handler in them. A child of a process that has a handler starts with the default action.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def leave_out() -> Callable[[str], NoReturn]:
    """Leave a test out for a reason; where everything must be there, that is a failure."""
    return pytest.fail if IN_CI else pytest.skip


@pytest.fixture(scope="session")
def shared_data(leave_out: Callable[[str], NoReturn]) -> Path:
    """The folder of real collections beside the repository."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        leave_out("the shared collections are not there: ../shared/data, from the repository's root")
    return folder


@pytest.fixture(scope="session")
def naughty_strings(shared_data: Path) -> list[str]:
    """Strings that programs are known to stumble over, each once."""
    listed: list[str] = json.loads((shared_data / "security/blns/blns.json").read_text())
    assert len(listed) > 400
    own = ("a\0b", "\0", "\ufeff", "\U0010ffff", "e\u0301" * 100, "x" * 70_000, "\r\n\t")
    return list(dict.fromkeys([*listed, *own]))
