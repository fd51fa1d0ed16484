"""The systems that are compared, one small adapter each."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib import metadata
from typing import Final

from benchmarks.peers.base import Peer

HOMES: Final = {
    "sennit": ("benchmarks.peers.ours", "SennitPeer"),
    "qdrant": ("benchmarks.peers.qdrant", "QdrantPeer"),
    "stack": ("benchmarks.peers.stack", "StackPeer"),
    "lancedb": ("benchmarks.peers.lance", "LancePeer"),
    "chroma": ("benchmarks.peers.chroma", "ChromaPeer"),
    "fts5": ("benchmarks.peers.fts", "FtsPeer"),
}
"""Where each adapter lives; imported when it is used, because not every system is installed everywhere."""


def make(name: str) -> Peer:
    """The adapter of this name; ImportError when its system is not installed."""
    module, kind = HOMES[name]
    peer: Peer = getattr(importlib.import_module(module), kind)()
    for needed in peer.modules:
        importlib.import_module(needed)
    return peer


def installed(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Those that can be measured here, and why the others cannot."""
    here: list[str] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            make(name)
            here.append(name)
        except ImportError as error:
            missing[name] = f"not installed: {error.name or error}"
    return here, missing


def versions(peer: Peer) -> dict[str, str]:
    """The versions of a system's packages."""
    return {package: metadata.version(package) for package in peer.packages}
