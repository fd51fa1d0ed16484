"""Opening a file in the user's editor, at a line."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sennit.errors import InvalidInput

_BY_COLON: Final = {"hx": (), "helix": (), "zed": (), "subl": (), "code": ("--goto",), "codium": ("--goto",)}
"""Editors that are told the line behind the path; others take +LINE before it."""


def command(path: str, line: int, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The command that opens a file at a line: $VISUAL, else $EDITOR."""
    wanted = (environment.get("VISUAL") or environment.get("EDITOR") or "").strip()
    if not wanted:
        raise InvalidInput("No editor is set. Say which one: export EDITOR=vim")
    try:
        program = shlex.split(wanted)
    except ValueError as error:
        raise InvalidInput(f"EDITOR is {wanted!r}, which is no command: {error}") from error
    # An absolute path cannot be taken for an option.
    real = str(Path(path).absolute())
    name = Path(program[0]).name
    if name in _BY_COLON:
        return [*program, *_BY_COLON[name], f"{real}:{line}"]
    return [*program, f"+{line}", real]
