"""`sennit migrate`: move a database to another place or to other servers."""

from __future__ import annotations

from pathlib import Path

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import OK
from sennit.apps.cli.session import DatabaseTarget, Session, common_options, load_settings, pass_session


@click.command()
@click.argument("target", type=DatabaseTarget(), required=False)
@common_options
@pass_session
def migrate(session: Session, target: Path | str | None) -> int:
    """Copy the database to TARGET, a new folder or postgresql://…, and fill its indexes.

    \b
    Example:
      sennit migrate postgresql://localhost/notes

    Records, facts, vectors, models, folders, tokens and sessions are copied and verified by count and checksum; nothing
    is embedded again, and the database itself stays as it is. If it is stopped, run it again: it goes on where it ended.
    Without TARGET, only the indexes of the servers in [roles] are filled.
    """
    from sennit.engine.migration import migrate as run

    with output.progress_bar(session, "Migrating") as update:
        report = run(
            session.existing_database(),
            target,
            settings=load_settings(),
            progress=lambda _, done, total: update(done, total),
        )
    if session.json:
        output.write_json(report.to_dict())
        return OK
    for table in report.tables:
        if table.rows:
            output.write_line(
                f"{table.name:<16} {table.rows:>12,} {'row ' if table.rows == 1 else 'rows'}  {table.checksum}"
            )
    roles = ", ".join(f"{role}: {home}" for role, home in report.roles.items())
    output.write_line(
        f"{output.pluralize(report.records, 'record')} in {output.one_line(report.target)} ({roles})"
    )
    return OK
