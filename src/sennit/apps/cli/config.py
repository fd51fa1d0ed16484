"""`sennit config`: every setting, its value and origin, and which folders are trusted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import Session, common_options, load_settings, pass_session
from sennit.apps.cli.suggestions import CommandGroup


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND] [ARGS]...",
    advice="'sennit config' shows the settings; change one in sennit.toml or with its environment variable.",
)
@common_options
@click.pass_context
@pass_session
def config(session: Session, ctx: click.Context) -> None:
    """Show every setting: its value, where it comes from, and what it means.

    \b
    Example:
      sennit config

    Settings come from your own sennit.toml, then the nearest sennit.toml here or above (or the file in
    SENNIT_CONFIG), then SENNIT_SECTION_NAME variables, then arguments. Later ones win.
    """
    if ctx.invoked_subcommand is not None:
        return
    from sennit.settings import SETTINGS, describe_settings

    rows = describe_settings(load_settings())
    if session.json:
        output.write_json(
            {
                "settings": [
                    {
                        "key": row.key,
                        "value": _to_json(row.value),
                        "origin": row.origin,
                        "about": row.doc,
                        "variable": SETTINGS[row.key].variable if row.key in SETTINGS else None,
                    }
                    for row in rows
                ]
            }
        )
        return
    output.write_table(
        ("setting", "value", "from", "about"),
        [(row.key, _format(row.value), row.origin, row.doc) for row in rows],
        whole=(0,),
    )


@config.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@common_options
@pass_session
def trust(session: Session, path: Path) -> None:
    """Trust the sennit.toml in the folder PATH.

    \b
    Example:
      sennit config trust ~/project

    A trusted file may set where text is sent and which files are opened.
    """
    from sennit.settings import trust_folder

    folder = trust_folder(path)
    if session.json:
        output.write_json({"folder": str(folder), "trusted": True})
    else:
        output.write_note(session, f"{folder} is now trusted.")


@config.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@common_options
@pass_session
def untrust(session: Session, path: Path) -> None:
    """Stop trusting the sennit.toml in the folder PATH.

    \b
    Example:
      sennit config untrust ~/project
    """
    from sennit.settings import distrust_folder

    was_trusted = distrust_folder(path)
    if session.json:
        output.write_json({"folder": str(path.resolve()), "trusted": False, "was_trusted": was_trusted})
    else:
        outcome = "is no longer trusted" if was_trusted else "was not trusted"
        output.write_note(session, f"{path.resolve()} {outcome}.")


def _format(value: object) -> str:
    if value is None or value == "":
        return "-"
    return str(_to_json(value))


def _to_json(value: object) -> object:
    """Convert a value of a settings file to JSON values."""
    if isinstance(value, Mapping):
        return {key: _to_json(item) for key, item in value.items()}
    return [_to_json(item) for item in value] if isinstance(value, (list, tuple)) else value
