"""`sennit tokens`: who may ask from outside."""

from __future__ import annotations

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import TEXT, Session, common, load_settings, pass_session


@click.group()
@common
def tokens() -> None:
    """Give out, list and take back the tokens that HTTP and MCP callers show.

    A token stands for a caller: what that caller may see is decided here and not by what it asks.
    """


@tokens.command()
@click.argument("name", type=TEXT)
@click.option("--clearance", type=TEXT, default="", help="The highest level it sees; default: the lowest.")
@click.option("--scope", "scopes", type=TEXT, multiple=True, help="A scope it sees; repeatable.")
@click.option("--tenant", type=TEXT, default="", help="The tenant whose records it sees.")
@click.option("--everything", is_flag=True, help="Every level and scope of the tenant.")
@click.option("--write", is_flag=True, help="It may also add, replace and remove what it sees.")
@common
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
    """Make a token called NAME and show it, this once: only its hash is kept."""
    from sennit.engine.callers import policy_of
    from sennit.privacy import Caller
    from sennit.stores.embedded.permits import Permits
    from sennit.stores.embedded.store import EmbeddedStore

    caller = Caller(
        clearance=clearance, scopes=frozenset(scopes), tenant=tenant, name=name, everything=everything
    )
    policy_of(load_settings()).audience(caller)
    store = EmbeddedStore(session.writable())
    try:
        token = Permits(store.database).issue(name, caller, write=write)
    finally:
        store.close()
    if session.json:
        output.emit({"name": name, "token": token})
    else:
        output.say(token)
        output.note(session, "Keep it: it cannot be shown again. 'sennit tokens remove' takes it back.")


@tokens.command("list")
@common
@pass_session
def list_(session: Session) -> None:
    """List the tokens by name, and what each may see."""
    from sennit.stores.embedded.permits import Permits

    store = session.store()
    try:
        found = Permits(store.database).tokens()
    finally:
        store.close()
    if session.json:
        output.emit(
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
    output.table(
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
@common
@pass_session
def remove(session: Session, name: str) -> None:
    """Take back the token NAME: whoever shows it is refused from now on."""
    from sennit.stores.embedded.permits import Permits

    store = session.store()
    try:
        Permits(store.database).revoke(name)
    finally:
        store.close()
    if session.json:
        output.emit({"removed": name})
    else:
        output.note(session, f"Took back {name}.")
