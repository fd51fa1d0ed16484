"""`sennit tokens`: access tokens for HTTP and MCP callers."""

from __future__ import annotations

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import TEXT, Session, common_options, load_settings, pass_session
from sennit.apps.cli.suggestions import CommandGroup


@click.group(cls=CommandGroup)
@common_options
def tokens() -> None:
    """Create, list and revoke the tokens of HTTP and MCP callers.

    \b
    Example:
      sennit tokens add reader --scope team

    A token identifies a caller. The token decides what the caller may see; a request cannot change it.
    """


@tokens.command()
@click.argument("name", type=TEXT)
@click.option(
    "--clearance", type=TEXT, default="", help="Highest sensitivity it sees. Default: the lowest level."
)
@click.option("--scope", "scopes", type=TEXT, multiple=True, help="Scope it sees; repeatable.")
@click.option("--tenant", type=TEXT, default="", help="Tenant whose records it sees.")
@click.option("--everything", is_flag=True, help="It sees every level and scope of the tenant.")
@click.option("--write", is_flag=True, help="It may also add, replace and remove records that it sees.")
@common_options
@pass_session
def add(
    session: Session,
    name: str,
    clearance: str,
    scopes: tuple[str, ...],
    tenant: str,
    everything: bool,
    write: bool,
) -> None:
    """Create a token called NAME and print it once.

    \b
    Example:
      sennit tokens add editor --everything --write

    Only the hash of the token is stored.
    """
    from sennit.engine.configuration import make_policy
    from sennit.privacy import Caller

    caller = Caller(
        clearance=clearance, scopes=frozenset(scopes), tenant=tenant, name=name, everything=everything
    )
    make_policy(load_settings()).audience(caller)
    with session.open(create=True, background=False) as db:
        token = db.admin.tokens.issue(name, caller, write=write)
    if session.json:
        output.write_json({"name": name, "token": token})
    else:
        output.write_line(token)
        output.write_note(
            session, "Save the token: it cannot be shown again. 'sennit tokens remove' revokes it."
        )


@tokens.command("list")
@common_options
@pass_session
def list_(session: Session) -> None:
    """List the tokens and what each may see.

    \b
    Example:
      sennit tokens list
    """
    with session.open(background=False) as db:
        found = db.admin.tokens.all()
    if session.json:
        output.write_json(
            {
                "tokens": [
                    {
                        "name": token.name,
                        "clearance": token.caller.clearance,
                        "scopes": sorted(token.caller.scopes),
                        "tenant": token.caller.tenant,
                        "everything": token.caller.everything,
                        "write": token.write,
                        "created": token.created.isoformat(),
                    }
                    for token in found
                ]
            }
        )
        return
    if not found:
        output.write_note(session, "There are no tokens; 'sennit tokens add NAME' creates one.")
        return
    output.write_table(
        ("token", "clearance", "scopes", "tenant", "may", "created"),
        [
            (
                token.name,
                "everything" if token.caller.everything else token.caller.clearance or "lowest",
                ", ".join(sorted(token.caller.scopes)),
                token.caller.tenant,
                "read and write" if token.write else "read",
                token.created.date().isoformat(),
            )
            for token in found
        ],
    )


@tokens.command()
@click.argument("name", type=TEXT)
@common_options
@pass_session
def remove(session: Session, name: str) -> None:
    """Revoke the token NAME; requests with it are rejected from now on.

    \b
    Example:
      sennit tokens remove reader
    """
    with session.open(background=False) as db:
        db.admin.tokens.revoke(name)
    if session.json:
        output.write_json({"removed": name})
    else:
        output.write_note(session, f"Revoked {name}.")
