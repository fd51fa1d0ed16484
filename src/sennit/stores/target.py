"""What names a database: the path of a folder, or the connection string of a Postgres server."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

POSTGRES_SCHEMES: Final = ("postgresql://", "postgres://")
UNREADABLE: Final = "postgresql://…"
"""Shown for a connection string in which the password cannot be told from the rest."""


def is_postgres(target: str) -> bool:
    """Whether the target is the connection string of a Postgres database."""
    return target.startswith(POSTGRES_SCHEMES)


def describe_target(target: str) -> str:
    """The target for a message: a connection string without its password and its options."""
    if not is_postgres(target):
        return target
    try:
        parts = urlsplit(target)
        port = parts.port
    except ValueError:
        return UNREADABLE
    name = parts.path.removeprefix("/")
    if parts.fragment or not name.isprintable() or set("@:/ ") & set(name):
        # An unescaped '/', '#' or '?' in a password ends the part that holds it.
        return UNREADABLE
    user = f"{parts.username}@" if parts.username else ""
    host = parts.netloc.rpartition("@")[2] if "," in parts.netloc else parts.hostname or ""
    if "," not in host and port is not None:
        host = f"{host}:{port}"
    return f"postgresql://{user}{host}/{name}"
