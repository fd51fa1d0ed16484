"""Tests of the adapters. Where a framework is not installed, they are left out; in CI that is a failure."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from conftest import IN_CI


def need(package: str, extra: str) -> None:
    """Leave out the calling module unless the package is installed."""
    if find_spec(package) is None and not IN_CI:
        pytest.skip(f"{package} is not installed: pip install 'sennit[{extra}]'", allow_module_level=True)
