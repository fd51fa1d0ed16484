"""A Qdrant of one node and one of three, started once for all tests that need them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest
from scripts.servers.common import ServerUnavailable
from scripts.servers.process import running
from scripts.servers.qdrant import QdrantCluster

from sennit.settings import load_settings
from sennit.stores.contract import Backend
from sennit.stores.open import open_backend

if find_spec("qdrant_client") is None and not os.environ.get("CI"):
    collect_ignore_glob = ["test_*.py"]

THREE_NODES = {"qdrant.shard_number": 3, "qdrant.replication_factor": 2}


@pytest.fixture(scope="session")
def qdrant(leave_out: Callable[[str], NoReturn]) -> Iterator[QdrantCluster]:
    try:
        with running(QdrantCluster(1)) as cluster:
            yield cluster
    except ServerUnavailable as error:
        leave_out(str(error))


@pytest.fixture(scope="session")
def three_nodes(leave_out: Callable[[str], NoReturn]) -> Iterator[QdrantCluster]:
    try:
        with running(QdrantCluster(3)) as cluster:
            yield cluster
    except ServerUnavailable as error:
        leave_out(str(error))


def on_qdrant(folder: Path, cluster: QdrantCluster, **settings: object) -> Callable[[], Backend]:
    """A database in a folder with its keyword and vector index on Qdrant."""
    overrides = {
        "roles.keyword": "qdrant",
        "roles.vector": "qdrant",
        "qdrant.urls": cluster.urls,
        **(THREE_NODES if len(cluster.nodes) > 1 else {}),
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    return lambda: open_backend(folder, load_settings(overrides=overrides))
