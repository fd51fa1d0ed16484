"""`sennit serve`: sennit over HTTP."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.addresses import allowed_hosts, allowed_origins, listening_at
from sennit.apps.cli.session import Session, common, load_settings, pass_session
from sennit.apps.listening import is_loopback, listen, url_of
from sennit.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from sennit.engine import Database

PORT: Final = 8765


@click.command()
@listening_at(PORT)
@click.option(
    "--open",
    "is_open",
    is_flag=True,
    help="Ask for no token: whoever reaches this machine's loopback may ask.",
)
@click.option("--read-only", is_flag=True, help="Write for nobody, whatever a token says.")
@allowed_hosts
@allowed_origins("A page that may ask from a browser (CORS), such as https://app.example")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 600),
    default=30.0,
    show_default=True,
    help="Seconds for a body to arrive, and for an answer.",
)
@click.option(
    "--max-body",
    type=click.IntRange(1024, 1 << 30),
    default=8 * 1024 * 1024,
    show_default=True,
    help="Bytes of a request's body.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1, 256),
    default=16,
    show_default=True,
    help="Requests that are worked on at once; eight times as many may wait.",
)
@click.option(
    "--rate", type=click.FloatRange(0), default=0.0, help="Requests per second of one token; 0: any number."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that answer; each takes a core and the memory of a database.",
)
@click.option("--log-queries", is_flag=True, help="Have what was searched for in the log.")
@common
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
    log_queries: bool,
) -> None:
    """Offer search, context and writing over HTTP, until interrupted.

    Callers show a token of 'sennit tokens add', which decides what they see and whether they may write. The log goes to
    standard error, one JSON object per line.
    """
    if is_open and not is_loopback(host):
        raise InvalidInput(f"--open is for this machine alone, and {host} can be reached from others.")
    try:
        from sennit.apps.http.addresses import Addresses
        from sennit.apps.http.app import Options
        from sennit.apps.http.limits import Limits
        from sennit.apps.http.logs import configure
        from sennit.apps.http.serving import serve as run
        from sennit.apps.http.workers import Work, serve_many
    except ImportError as error:
        raise MissingExtra("The HTTP service", "http") from error

    options = Options(
        limits=Limits(
            body=max_body, seconds=timeout, threads=max_requests, waiting=8 * max_requests, rate=rate
        ),
        # Beyond loopback a token is always asked for, and no foreign page has one.
        addresses=Addresses(any_host=not is_loopback(host) and not hosts, hosts=hosts, origins=origins),
        open=is_open,
        read_only=read_only,
        log_queries=log_queries,
    )
    with _opened(session, is_open=is_open) as db, listen(host, port) as listener:
        if session.json:
            output.emit({"url": url_of(listener)})
        else:
            output.note(session, f"Serving {url_of(listener)} (Ctrl-C ends it)")
        configure(quiet=session.quiet, verbose=session.verbose)
        if workers == 1:
            run(db, listener, options)
            return
        path = db.path
        assert path is not None, "a service has a database on disk"
        db.close()
        work = Work(
            path=path,
            options=options,
            quiet=session.quiet,
            verbose=session.verbose,
        )
        serve_many(work, listener, workers)


def _opened(session: Session, *, is_open: bool) -> Database:
    """The database, if there is anybody who may ask."""
    import sennit

    named = session.db is not None or os.environ.get("SENNIT_DB")
    db = sennit.open(
        session.writable() if is_open and named else session.existing(), settings=load_settings()
    )
    if not is_open and not db.permits.tokens():
        db.close()
        raise InvalidInput(
            "Nobody could ask: there is no token yet. Make one with 'sennit tokens add NAME' (--write lets it write), "
            "or let everyone on this machine in with --open."
        )
    return db
