"""The command line, `sennit`. `program.SECTIONS` lists the commands and the modules that define them."""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the program and exit with its exit code."""
    # Ctrl-C is an exception that a command handles. While modules are imported and while the interpreter ends,
    # nothing could handle it, and Python would print a traceback: then it ends the process without a word.
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sennit.apps.cli.program import program

    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # JSON is always UTF-8, and a terminal that cannot show a character must not cause an error.
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8", errors="backslashreplace")
    try:
        if is_default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        program.main(prog_name="sennit")
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that is closed; the next file would get its number, and our output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - it stays open
