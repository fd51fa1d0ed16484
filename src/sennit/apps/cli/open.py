"""`sennit open`: the web page."""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from typing import Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import Session, common_options, pass_session
from sennit.apps.sockets import listen, socket_url
from sennit.errors import InvalidInput, MissingExtra
from sennit.privacy import Caller

LOOPBACK: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8764
"""Not the port of `sennit serve`, so that both can run."""

OPEN_YOURSELF: Final = "No browser opens here: open the address yourself."


@click.command("open")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Port to listen on; 0 picks a free one. Default: {DEFAULT_PORT}, or a free one if it is taken.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--read-only", is_flag=True, help="Reject all writes.")
@click.option(
    "--owner",
    is_flag=True,
    help="See every record of the tenant, whatever its sensitivity and scope, and see as any caller.",
)
@common_options
@pass_session
def open_(session: Session, port: int | None, no_browser: bool, read_only: bool, owner: bool) -> None:
    """Open the web page to look into search, until interrupted.

    \b
    Example:
      sennit open

    The service listens on this machine only. The address has a code that works once, for five minutes.
    """
    try:
        from sennit.apps.http.app import HttpOptions
        from sennit.apps.http.auth import SignIn
        from sennit.apps.http.logs import configure_logging
        from sennit.apps.http.server import serve as serve_in_process
        from sennit.settings import SettingsFile
    except ImportError as error:
        raise MissingExtra("The web page", "http") from error
    with session.open() as db, _listen(port) as listener:
        caller = Caller(everything=True, tenant=db.caller.tenant, name="owner") if owner else db.caller
        sign_in = SignIn(caller, can_write=not read_only)
        # In the fragment, which a browser sends to no server; the page removes it from the history.
        address = f"{socket_url(listener)}/#code={sign_in.code}"
        if session.json:
            output.write_json({"url": address})
        elif session.quiet:
            output.write_line(address)
        else:
            output.write_note(session, f"Open {address} (Ctrl-C stops)")
        configure_logging(quiet=True, verbose=session.verbose)
        if not no_browser:
            _show(session, listener, address)
        options = HttpOptions(read_only=read_only, sign_in=sign_in, recipe_file=SettingsFile())
        serve_in_process(db, listener, options)


def _show(session: Session, listener: socket.socket, address: str) -> None:
    """Open the address in a browser, or say how a person opens it."""
    if _has_screen():

        def work() -> None:
            if not webbrowser.open(address):
                output.write_note(session, OPEN_YOURSELF)

        # A browser may keep the thread until it is closed.
        threading.Thread(target=work, daemon=True).start()
    elif "SSH_CONNECTION" in os.environ:
        port = listener.getsockname()[1]
        output.write_note(
            session,
            f"From your own machine, run 'ssh -L {port}:{LOOPBACK}:{port} HOST', and open the address there.",
        )
    else:
        output.write_note(session, OPEN_YOURSELF)


def _has_screen() -> bool:
    """Whether a browser with a window can open. One in the terminal cannot show the page."""
    if "BROWSER" in os.environ:
        return True
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _listen(port: int | None) -> socket.socket:
    if port is not None:
        return listen(LOOPBACK, port)
    try:
        return listen(LOOPBACK, DEFAULT_PORT)
    except InvalidInput:
        return listen(LOOPBACK, 0)
