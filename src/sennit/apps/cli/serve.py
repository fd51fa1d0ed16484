"""`sennit serve`: the HTTP service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.options import allowed_hosts, allowed_origins, host_and_port
from sennit.apps.cli.session import Session, common_options, load_settings, pass_session
from sennit.apps.sockets import is_loopback, listen, socket_url
from sennit.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from sennit.engine import Database

DEFAULT_PORT: Final = 8765


@click.command()
@host_and_port(DEFAULT_PORT)
@click.option(
    "--open",
    "is_open",
    is_flag=True,
    help="Require no token: every process on this machine may call.",
)
@click.option("--read-only", is_flag=True, help="Reject all writes, whatever a token allows.")
@allowed_hosts
@allowed_origins("Let this web page call from a browser (CORS), e.g. https://app.example")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 600),
    default=30.0,
    show_default=True,
    help="Seconds to receive a body, and to answer.",
)
@click.option(
    "--max-body",
    type=click.IntRange(1024, 1 << 30),
    default=8 * 1024 * 1024,
    show_default=True,
    help="Maximum bytes of a request body.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1, 256),
    default=16,
    show_default=True,
    help="Requests handled at once; eight times as many may wait.",
)
@click.option(
    "--rate", type=click.FloatRange(0), default=0.0, help="Requests per second and token; 0: no limit."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Worker processes; each uses a core and the memory of a database.",
)
@click.option(
    "--save-recipes",
    is_flag=True,
    help="Let administrators (tokens with --everything --write) save recipes in your settings file.",
)
@click.option("--log-queries", is_flag=True, help="Log the query text.")
@common_options
@pass_session
def serve(
    session: Session,
    host: str,
    port: int,
    is_open: bool,
    read_only: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    timeout: float,
    max_body: int,
    max_requests: int,
    rate: float,
    workers: int,
    save_recipes: bool,
    log_queries: bool,
) -> None:
    """Serve search, context and writes over HTTP, until interrupted.

    \b
    Example:
      sennit serve --port 8765 --workers 2

    Callers send a token of 'sennit tokens add', which decides what they see and whether they may write. The log
    goes to standard error, one JSON object per line.
    """
    if is_open and not is_loopback(host):
        raise InvalidInput(f"--open works only on a loopback address; other machines can reach {host}.")
    try:
        from sennit.apps.http.app import HttpOptions
        from sennit.apps.http.hosts import HostPolicy
        from sennit.apps.http.limits import Limits
        from sennit.apps.http.logs import configure_logging
        from sennit.apps.http.server import WorkerConfig, serve_with_workers
        from sennit.apps.http.server import serve as serve_in_process
        from sennit.settings import SettingsFile
    except ImportError as error:
        raise MissingExtra("The HTTP service", "http") from error

    if save_recipes and workers > 1:
        raise InvalidInput("--save-recipes works with one worker: another would not know a saved recipe.")
    options = HttpOptions(
        limits=Limits(
            max_body_bytes=max_body,
            timeout_seconds=timeout,
            threads=max_requests,
            max_queued=8 * max_requests,
            requests_per_second=rate,
        ),
        # Beyond loopback a token is always required, and a foreign page has none.
        host_policy=HostPolicy(any_host=not is_loopback(host) and not hosts, hosts=hosts, origins=origins),
        open_access=is_open,
        read_only=read_only,
        log_queries=log_queries,
        recipe_file=SettingsFile() if save_recipes else None,
    )
    with _open_database(session, is_open=is_open) as db, listen(host, port) as listener:
        if session.json:
            output.write_json({"url": socket_url(listener)})
        else:
            output.write_note(session, f"Serving {socket_url(listener)} (Ctrl-C stops)")
        configure_logging(quiet=session.quiet, verbose=session.verbose)
        if workers == 1:
            serve_in_process(db, listener, options)
            return
        db.close()
        config = WorkerConfig(
            database=_chosen_database(session, is_open=is_open),
            options=options,
            quiet=session.quiet,
            verbose=session.verbose,
        )
        serve_with_workers(config, listener, workers)


def _chosen_database(session: Session, *, is_open: bool) -> Path | str:
    is_named = session.db is not None or os.environ.get("SENNIT_DB")
    return session.writable_database() if is_open and is_named else session.existing_database()


def _open_database(session: Session, *, is_open: bool) -> Database:
    """Open the database; refuse if no caller could be accepted."""
    import sennit

    db = sennit.open(_chosen_database(session, is_open=is_open), settings=load_settings())
    if not is_open and not db.admin.tokens.all():
        db.close()
        raise InvalidInput(
            "No tokens exist, so every request would be rejected. Create one with 'sennit tokens add NAME' (add "
            "--write to allow writes), or accept every process on this machine with --open."
        )
    return db
