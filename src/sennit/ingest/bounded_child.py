"""Runs the parser of a hostile format in a child process that may crash, loop or run out of memory without harm."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sennit.ingest.file_reader import UnreadableFile

CPU_SECONDS: Final = 30
"""CPU time for one file; a PDF of a thousand ordinary pages takes about five seconds."""

WALL_CLOCK_FACTOR: Final = 4
"""The wall clock limit, in multiples of CPU_SECONDS: a busy machine runs the child only part of the time."""

MAX_MEMORY_BYTES: Final = 1536 * 1024 * 1024

_MAIN: Final = Path(__file__).with_name("child_main.py")
_SIGXCPU: Final = -24
_SIGINT: Final = -2


def run_child(parser: Path, data: bytes, what: str, limits: Sequence[int] = ()) -> dict[str, Any]:
    """Run the parser of a format on the bytes of a file, and return the object that it writes as JSON.

    `what` names the format with its article, for the errors. Raises UnreadableFile with the reason.
    """
    arguments = [str(number) for number in (CPU_SECONDS, MAX_MEMORY_BYTES, *limits)]
    try:
        # -I: the working directory and the environment have no influence on imports.
        child = subprocess.run(
            [sys.executable, "-I", str(_MAIN), str(parser), *arguments],
            input=data,
            capture_output=True,
            check=False,
            timeout=CPU_SECONDS * WALL_CLOCK_FACTOR,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableFile(f"{what} that takes more than {CPU_SECONDS} s to read") from None
    except OSError as error:
        raise UnreadableFile(
            f"the reader of {what} cannot be started: {error.strerror}", permanent=False
        ) from error
    if child.returncode == _SIGXCPU:
        raise UnreadableFile(f"{what} that takes more than {CPU_SECONDS} s to read")
    if child.returncode == _SIGINT:  # The user pressed Ctrl-C.
        raise UnreadableFile("interrupted", permanent=False)
    try:
        output = json.loads(child.stdout) if child.returncode == 0 else None
    except ValueError:
        output = None
    if not isinstance(output, dict):
        raise UnreadableFile(f"the reader of {what} fails on this file (it crashes or needs too much memory)")
    if output.get("problem"):
        raise UnreadableFile(str(output["problem"]))
    return output
