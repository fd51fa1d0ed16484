"""Credentials: a setting names the environment variable that holds one, so that no file and no error does."""

from __future__ import annotations

import os

from sennit.errors import SourceError


def is_shown(name: str) -> bool:
    """Return whether the name of a variable may be shown; another text may be a key that was pasted in its place."""
    is_usual = name.isupper() and ("_" in name or name.isalpha())
    return not name or is_usual or name in os.environ


def read_credential(name: str, setting: str, error: type[SourceError] = SourceError) -> str:
    """Return the value of the variable that a setting names; raise an error if there is none."""
    value = os.environ.get(name, "") if name else ""
    if value.strip():
        return value
    if not name:
        raise error(f"{setting} is empty; name the environment variable that holds the credential there.")
    which = (
        name if is_shown(name) else f"that {setting} names (its name is not shown, because it may be a key)"
    )
    raise error(
        f"The environment variable {which} is empty or not set; put the credential there, or name another "
        f"variable in {setting}."
    )
