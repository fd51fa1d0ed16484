"""The command line, `sennit`. `program.SECTIONS` lists the commands and the modules that define them."""

from __future__ import annotations

import sys

from sennit.apps.cli.program import program

__all__ = ["main", "program"]


def main() -> None:
    """Run the program and exit with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # JSON is always UTF-8, and a terminal that cannot show a character must not cause an error.
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8", errors="backslashreplace")
    program.main(prog_name="sennit")
