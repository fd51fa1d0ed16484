"""The systems that are compared, with one small adapter each."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib import metadata
from typing import Final

from benchmarks.peers.base import Peer

ADAPTERS: Final = {
    "sennit": ("benchmarks.peers.sennit_peer", "SennitPeer"),
    "qdrant": ("benchmarks.peers.qdrant", "QdrantPeer"),
    "stack": ("benchmarks.peers.stack", "StackPeer"),
    "lancedb": ("benchmarks.peers.lance", "LancePeer"),
    "chroma": ("benchmarks.peers.chroma", "ChromaPeer"),
    "fts5": ("benchmarks.peers.fts", "FtsPeer"),
}
"""The module and class of each adapter. They are imported on use, because a system may not be installed."""


def make_peer(name: str) -> Peer:
    """The adapter of this name. Raises ImportError if its system is not installed."""
    module, kind = ADAPTERS[name]
    peer: Peer = getattr(importlib.import_module(module), kind)()
    for required in peer.modules:
        importlib.import_module(required)
    return peer


def find_installed(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The systems that are installed, and for each other one the reason."""
    available: list[str] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            make_peer(name)
            available.append(name)
        except ImportError as error:
            missing[name] = f"not installed: {error.name or error}"
    return available, missing


def package_versions(peer: Peer) -> dict[str, str]:
    """The versions of a system's packages."""
    return {package: metadata.version(package) for package in peer.packages}
