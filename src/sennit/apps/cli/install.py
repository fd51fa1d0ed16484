"""`sennit install`: puts the MCP server into the configuration of coding agents and editors."""

from __future__ import annotations

import json
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import Session, common_options, pass_session
from sennit.apps.install.agents import AGENTS, ENTRY_NAME, Agent, Places, Scope
from sennit.apps.install.edits import find_entry, load
from sennit.apps.install.installer import Change, config_file, install, plan_install, undo
from sennit.context.sanitize import sanitize_for_terminal
from sennit.errors import InvalidInput, MissingExtra, NotFound, SennitError, suggest
from sennit.stores.target import is_postgres
from sennit.user_cache import home_folder


@click.command("install")
@click.argument("agent", required=False)
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="For you everywhere, or for all who work in this folder.",
)
@click.option("--read-only", is_flag=True, help="Offer the agent no tools that write.")
@click.option("--print", "only_print", is_flag=True, help="Only show what would be written, and where.")
@click.option("--undo", "undoing", is_flag=True, help="Take the entry out again.")
@common_options
@pass_session
def install_command(
    session: Session, agent: str | None, scope: Scope, read_only: bool, only_print: bool, undoing: bool
) -> None:
    """Put sennit into the configuration of a coding agent or editor, as an MCP server.

    \b
    Example:
      sennit install claude-code --print

    Without AGENT it lists the agents, and which of them are found here. It shows what it writes and where, changes
    nothing else in the file, and writes nothing if the entry is there already. The entry names the database by its full
    path: that of --db or SENNIT_DB, else the nearest .sennit here or above, else a new one in this folder.
    """
    places = Places(home_folder(), Path.cwd())
    if agent is None:
        if only_print or undoing:
            raise InvalidInput("Name an agent. 'sennit install' lists them.")
        _list_agents(session, places)
        return
    chosen = AGENTS.get(agent)
    if chosen is None:
        raise NotFound(f"There is no agent {agent!r}. {suggest(agent, AGENTS)}Agents: {', '.join(AGENTS)}.")
    if undoing:
        if only_print:
            raise InvalidInput("Give --print or --undo, not both.")
        _report(session, undo(chosen, scope, places), scope)
        return
    command = [*_program(), "mcp", "--db", _database(session)]
    if read_only:
        command.append("--read-only")
    if not only_print and find_spec("mcp") is None:
        raise MissingExtra("The MCP server, which the agent would start,", "mcp")
    run = plan_install if only_print else install
    _report(session, run(chosen, scope, places, command), scope, planned=only_print)


def _report(session: Session, change: Change, scope: Scope, *, planned: bool = False) -> None:
    agent = change.agent
    if session.json:
        output.write_json(
            {
                "agent": agent.name,
                "scope": scope,
                "file": str(change.file),
                "state": change.state,
                "written": change.edit is not None and not planned,
                "entry": change.entry,
            }
        )
        return
    file = sanitize_for_terminal(str(change.file))
    if change.state in ("removed", "absent"):
        was = "has no entry" if change.state == "absent" else "is without its entry"
        output.write_line(f"{file} {was} {ENTRY_NAME!r}.")
        return
    shown = json.dumps({agent.section: {ENTRY_NAME: change.entry}}, indent=2, ensure_ascii=False)
    if change.edit is not None and agent.form == "toml":
        shown = change.edit.inserted.strip()
    verb = {"added": "gets", "changed": "gets, in place of another entry,", "unchanged": "has already"}
    output.write_line(f"{file} {verb[change.state]}:")
    output.write_line(sanitize_for_terminal(shown))
    if planned:
        output.write_note(session, "Nothing was written.")
    elif change.edit is not None:
        option = "" if scope == "user" else " --scope project"
        output.write_note(
            session, f"{agent.afterwards} 'sennit install {agent.name}{option} --undo' takes it out again."
        )


def _list_agents(session: Session, places: Places) -> None:
    rows = [
        {
            "agent": agent.name,
            "title": agent.title,
            "found": agent.is_found(places),
            "installed": [scope for scope in _scopes(agent) if _is_installed(agent, scope, places)],
            "scopes": list(_scopes(agent)),
            "file": str(config_file(agent, "user", places)),
        }
        for agent in AGENTS.values()
    ]
    if session.json:
        output.write_json({"agents": rows})
        return
    output.write_table(
        ("agent", "found", "has sennit", "configuration"),
        [
            (
                str(row["agent"]),
                "yes" if row["found"] else "-",
                ", ".join(row["installed"] if isinstance(row["installed"], list) else ()) or "-",
                str(row["file"]),
            )
            for row in rows
        ],
    )


def _scopes(agent: Agent) -> tuple[Scope, ...]:
    return ("user",) if agent.project is None else ("user", "project")


def _is_installed(agent: Agent, scope: Scope, places: Places) -> bool:
    """Whether its configuration has an entry; a file that cannot be read has none."""
    try:
        text = config_file(agent, scope, places).read_text(encoding="utf-8")
        return find_entry(load(text, agent.form), agent.entry_path) is not None
    except (OSError, ValueError, SennitError):
        return False


def _program() -> list[str]:
    """The command that starts this program from any folder, without the PATH of this shell."""
    beside = Path(sys.executable).with_name("sennit.exe" if sys.platform == "win32" else "sennit")
    found = str(beside) if beside.is_file() else shutil.which("sennit")
    if found is None:
        raise NotFound("The program 'sennit' is not on the PATH; install sennit with pip, pipx or uv.")
    return [os.path.abspath(found)]  # noqa: PTH100 - a link, as pipx makes it, outlives the file that it points to


def _database(session: Session) -> str:
    """The database by its full path, or by its connection string if that holds no password."""
    target = session.writable_database()
    if isinstance(target, Path):
        return str(Path(os.path.abspath(target)))  # noqa: PTH100 - follows no links
    if is_postgres(target) and (urlsplit(target).password or "password=" in target):
        raise InvalidInput(
            "The connection string holds a password, which would be written to the file. Put it into ~/.pgpass, or start "
            "the agent with PGPASSWORD, and leave it out here."
        )
    return target
