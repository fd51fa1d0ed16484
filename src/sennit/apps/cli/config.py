"""`sennit config`: every setting, its value, where that came from; and which folders are trusted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import Session, common, load_settings, pass_session


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@common
@click.pass_context
@pass_session
def config(session: Session, ctx: click.Context) -> None:
    """Show every setting: its value, where it came from, and what it means.

    Settings come from the user's own sennit.toml, the nearest sennit.toml here or above (or the file that
    SENNIT_CONFIG names), SENNIT_SECTION_NAME variables and arguments, each over the one before.
    """
    if ctx.invoked_subcommand is not None:
        return
    from sennit.settings import SETTINGS, describe

    rows = describe(load_settings())
    if session.json:
        output.emit(
            {
                "settings": [
                    {
                        "key": row.key,
                        "value": _json(row.value),
                        "origin": row.origin,
                        "about": row.doc,
                        "variable": SETTINGS[row.key].variable if row.key in SETTINGS else None,
                    }
                    for row in rows
                ]
            }
        )
        return
    output.table(
        ("setting", "value", "from", "about"),
        [(row.key, _shown(row.value), row.origin, row.doc) for row in rows],
    )


@config.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@common
@pass_session
def trust(session: Session, path: Path) -> None:
    """Let the sennit.toml in the folder PATH say where text is sent and which files are opened."""
    from sennit.settings import trust as add

    folder = add(path)
    if session.json:
        output.emit({"folder": str(folder), "trusted": True})
    else:
        output.note(session, f"{folder} is trusted from now on.")


@config.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@common
@pass_session
def untrust(session: Session, path: Path) -> None:
    """Take back the trust in the folder PATH."""
    from sennit.settings import distrust

    was = distrust(path)
    if session.json:
        output.emit({"folder": str(path.resolve()), "trusted": False, "was_trusted": was})
    else:
        said = "is no longer trusted" if was else "was not trusted"
        output.note(session, f"{path.resolve()} {said}.")


def _shown(value: object) -> str:
    if value is None or value == "":
        return "-"
    return str(_json(value))


def _json(value: object) -> object:
    """What a settings file said, as plain values."""
    if isinstance(value, Mapping):
        return {key: _json(item) for key, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, (list, tuple)) else value
