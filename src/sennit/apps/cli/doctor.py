"""`sennit doctor`: check the database and repair its indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import OK, PROBLEMS_FOUND
from sennit.apps.cli.session import Session, common_options, pass_session
from sennit.errors import StoreCorrupt
from sennit.stores.target import describe_target

if TYPE_CHECKING:
    from sennit.stores.findings import Finding

STYLES: Final = {"ok": "green", "note": "yellow", "problem": "red"}


@click.command()
@click.option("--quick", is_flag=True, help="Check a sample of 1000 records only.")
@click.option(
    "--repair", is_flag=True, help="Rebuild indexes that disagree with the records; records never change."
)
@common_options
@pass_session
def doctor(session: Session, quick: bool, repair: bool) -> int:
    """Check the database, and that every index agrees with the records.

    \b
    Example:
      sennit doctor --repair

    The exit code is 6 if there are problems (with --repair: if some remain).
    """
    folder = session.existing_database()
    findings, repaired = _examine(session, quick=quick, repair=repair)
    if repaired:
        if not session.json:
            _show([finding for finding in findings if finding.fix is not None])
            for line in repaired:
                output.write_line(f"{click.style('repaired', fg='green')}  {line}")
        # Check again with a newly opened store, which has nothing cached.
        findings, _ = _examine(session, quick=quick, repair=False)
    is_sound = not any(finding.level == "problem" for finding in findings)
    if session.json:
        output.write_json(
            {
                "database": describe_target(str(folder)),
                "ok": is_sound,
                "findings": [finding.to_dict() for finding in findings],
                "repaired": repaired,
            }
        )
    else:
        _show(findings)
        if any(finding.fix for finding in findings):
            output.write_note(session, "'sennit doctor --repair' repairs what can be repaired.")
    return OK if is_sound else PROBLEMS_FOUND


def _examine(session: Session, *, quick: bool, repair: bool) -> tuple[list[Finding], list[str]]:
    """Check the database and repair it if asked; return the findings and what was repaired."""
    from sennit.stores.findings import Finding
    from sennit.stores.findings import repair as repair_findings

    try:
        with session.open(background=False) as db:
            with output.progress_bar(session, "Checking") as update:
                findings = db.admin.check(quick=quick, progress=lambda _, done, total: update(done, total))
            if not repair:
                return findings, []
            with output.progress_bar(session, "Repairing") as update:
                return findings, repair_findings(findings, progress=update)
    except StoreCorrupt as error:
        return [Finding("database", "problem", str(error))], []


def _show(findings: Sequence[Finding]) -> None:
    width = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        level = click.style(f"{finding.level:<8}", fg=STYLES[finding.level])
        message = output.wrap(output.one_line(finding.message), indent=width + 12)
        output.write_line(f"{level}  {finding.check:<{width}}  {message}")
