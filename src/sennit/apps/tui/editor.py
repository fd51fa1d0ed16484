"""The command that opens a file in the user's editor, at a line."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sennit.errors import InvalidInput

_PATH_COLON_LINE: Final = {
    "hx": (),
    "helix": (),
    "zed": (),
    "subl": (),
    "code": ("--goto",),
    "codium": ("--goto",),
}
"""Editors that take PATH:LINE, and the options they need before it; others take +LINE PATH."""


def editor_command(path: str, line: int, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the command that opens a file at a line with $VISUAL, else $EDITOR."""
    setting = (environment.get("VISUAL") or environment.get("EDITOR") or "").strip()
    if not setting:
        raise InvalidInput("No editor is set. Set one, for example: export EDITOR=vim")
    try:
        program = shlex.split(setting)
    except ValueError as error:
        raise InvalidInput(f"EDITOR is {setting!r}, which is not a valid command: {error}") from error
    # An absolute path cannot be mistaken for an option.
    absolute = str(Path(path).absolute())
    name = Path(program[0]).name
    if name in _PATH_COLON_LINE:
        return [*program, *_PATH_COLON_LINE[name], f"{absolute}:{line}"]
    return [*program, f"+{line}", absolute]
