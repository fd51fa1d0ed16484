"""`sennit mcp`: search and memory as tools of an assistant."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.imports import without_collection
from sennit.apps.cli.options import allowed_hosts, allowed_origins, host_and_port
from sennit.apps.cli.session import TEXT, Session, common_options, load_settings, pass_session
from sennit.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from sennit.engine import Database

DEFAULT_PORT: Final = 8766
"""The port after the one of `sennit serve`."""


@click.command()
@click.option("-r", "--recipe", type=TEXT, help="Default recipe of the tools; see 'sennit recipes'.")
@click.option(
    "--project",
    type=TEXT,
    help="Project of calls that name none. Default: that of the client's roots, or of the current folder.",
)
@click.option("--read-only", is_flag=True, help="Offer no tools that write.")
@click.option("--clearance", type=TEXT, help="Highest sensitivity that callers see.")
@click.option("--scope", "scopes", type=TEXT, multiple=True, help="Scope that callers see; repeatable.")
@click.option("--tenant", type=TEXT, help="Tenant whose records callers see.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input/output.")
@host_and_port(DEFAULT_PORT)
@allowed_hosts
@allowed_origins("Accept this Origin header besides the loopback ones")
@click.option(
    "--require-token", is_flag=True, help="Require a token from every HTTP caller; see 'sennit tokens'."
)
@common_options
@pass_session
def mcp(
    session: Session,
    recipe: str | None,
    project: str | None,
    read_only: bool,
    clearance: str | None,
    scopes: tuple[str, ...],
    tenant: str | None,
    http: bool,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    require_token: bool,
) -> None:
    """Serve search, reading and memory to an assistant over the Model Context Protocol.

    \b
    Example:
      sennit mcp --db ~/notes/.sennit --read-only

    An MCP client starts this command and talks to it over standard input and output; with --http it listens on a
    port. What callers may see is decided by --clearance, --scope and --tenant, by the settings, or by the token of
    an HTTP caller, but never by a tool call. Callers on other machines need a token.
    """
    if not http and (hosts or origins or require_token):
        raise InvalidInput("--allowed-host, --allowed-origin and --require-token are for --http.")
    restricted = clearance is not None or scopes or tenant is not None
    settings = load_settings(
        search__recipe=recipe,
        privacy__clearance=clearance,
        privacy__scopes=scopes or None,
        privacy__tenant=tenant,
        # A restriction on the command line overrides privacy.open in the settings.
        privacy__open=False if restricted else None,
    )
    is_named = session.db is not None or os.environ.get("SENNIT_DB")
    # MCP clients start servers in arbitrary folders, so only a database that was named explicitly is created.
    path = session.writable_database() if is_named and not read_only else session.existing_database()

    def open_database() -> Database:
        import sennit

        return sennit.open(path, settings=settings)

    try:
        with without_collection():
            from sennit.apps.mcp.server import LazyDatabase, make_server
            from sennit.apps.mcp.transports import HttpTransport, serve_http, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sennit"):
            raise
        raise MissingExtra("The MCP server", "mcp") from error

    database = LazyDatabase(open_database)
    # A client that starts the server does so in the folder that it works in; one on the network is elsewhere.
    folder = None if http else os.getcwd()  # noqa: PTH109 - the same as everywhere
    server = make_server(database, read_only=read_only, project=project, folder=folder)
    if not http:
        serve_stdio(server)
        return
    transport = HttpTransport(
        host=host, port=port, allowed_hosts=hosts, allowed_origins=origins, require_token=require_token
    )

    def on_ready(url: str) -> None:
        if session.json:
            output.write_json({"url": url})
        else:
            output.write_note(session, f"Serving MCP at {url}")

    serve_http(server, database, transport, on_ready)
