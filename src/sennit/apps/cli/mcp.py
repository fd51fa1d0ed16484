"""`sennit mcp`: sennit as tools of an assistant."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.addresses import allowed_hosts, allowed_origins, listening_at
from sennit.apps.cli.session import TEXT, Session, common, load_settings, pass_session
from sennit.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from sennit.engine import Database

PORT: Final = 8766
"""Beside that of `sennit serve`."""


@click.command()
@click.option(
    "-r", "--recipe", type=TEXT, help="How to search when a call does not say; 'sennit recipes' lists them."
)
@click.option("--read-only", is_flag=True, help="Offer no tool that writes.")
@click.option("--clearance", type=TEXT, help="The highest sensitivity that callers see.")
@click.option("--scope", "scopes", type=TEXT, multiple=True, help="A scope that callers see; repeatable.")
@click.option("--tenant", type=TEXT, help="The tenant whose records callers see.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@listening_at(PORT)
@allowed_hosts
@allowed_origins("An Origin header that is answered besides the loopback ones")
@click.option(
    "--require-token", is_flag=True, help="Ask every HTTP caller for a token; 'sennit tokens' makes them."
)
@common
@pass_session
def mcp(
    session: Session,
    recipe: str | None,
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
    """Offer search, reading and memory as tools of an assistant, by the Model Context Protocol.

    The assistant's program starts this command and speaks to it over standard input and output; with --http it
    listens instead. What callers may see is decided here, by --clearance, --scope and --tenant or the settings, or
    by the token that an HTTP caller shows, and never by a call. Callers from other machines must show one.
    """
    if not http and (hosts or origins or require_token):
        raise InvalidInput("--allowed-host, --allowed-origin and --require-token are for --http.")
    restricted = clearance is not None or scopes or tenant is not None
    settings = load_settings(
        search__recipe=recipe,
        privacy__clearance=clearance,
        privacy__scopes=scopes or None,
        privacy__tenant=tenant,
        # Who says what callers see does not mean everything.
        privacy__open=False if restricted else None,
    )
    named = session.db is not None or os.environ.get("SENNIT_DB")
    # A client starts servers in folders of its own choosing: a database is made only where one was named.
    path = session.writable() if named and not read_only else session.existing()

    def opened() -> Database:
        import sennit

        return sennit.open(path, settings=settings)

    # What is imported stays; looking for garbage in it meanwhile takes a fifth of the start.
    gc.disable()
    try:
        from sennit.apps.mcp.server import Desk, make_server
        from sennit.apps.mcp.serving import Address, serve_http, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sennit"):
            raise
        raise MissingExtra("The MCP server", "mcp") from error
    finally:
        gc.enable()

    desk = Desk(opened)
    server = make_server(desk, read_only=read_only)
    if not http:
        serve_stdio(server)
        return
    address = Address(host=host, port=port, hosts=hosts, origins=origins, tokens=require_token)

    def ready(url: str) -> None:
        if session.json:
            output.emit({"url": url})
        else:
            output.note(session, f"Serving MCP at {url}")

    serve_http(server, desk, address, ready)
