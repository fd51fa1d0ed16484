"""The command line: `sennit`. A command is one module here and one row in `program.COMMANDS`."""

from __future__ import annotations

import sys

from sennit.apps.cli.program import program

__all__ = ["main", "program"]


def main() -> None:
    """Run the program and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # JSON is UTF-8 wherever it goes, and a terminal that cannot show a character is no reason to fail.
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8", errors="backslashreplace")
    program.main(prog_name="sennit")
