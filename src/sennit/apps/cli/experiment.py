"""`sennit experiment`: compare two recipes on live searches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import OUTPUT_FILE, TEXT, Session, common_options, pass_session
from sennit.apps.cli.suggestions import CommandGroup

if TYPE_CHECKING:
    from sennit.evaluation.experiments import ExperimentReport
    from sennit.repositories.experiments import Experiment


@click.group(cls=CommandGroup)
@common_options
def experiment() -> None:
    """Compare two recipes on live searches.

    \b
    Example:
      sennit experiment start longer-pools default keyword

    While an experiment runs, searches with the first recipe get results of both, interleaved. Feedback decides: each
    result that is chosen counts for the recipe that put it there. The report may be looked at any time.
    """


@experiment.command()
@click.argument("name", type=TEXT)
@click.argument("control", type=TEXT)
@click.argument("treatment", type=TEXT)
@click.option(
    "--unit",
    type=click.Choice(["user", "session"]),
    default="user",
    show_default=True,
    help="What is assigned as a whole.",
)
@click.option("--share", type=float, default=1.0, show_default=True, help="Share of units that take part.")
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="Chance of calling a winner without one."
)
@common_options
@pass_session
def start(
    session: Session, name: str, control: str, treatment: str, unit: str, share: float, alpha: float
) -> None:
    """Start the experiment NAME: the recipe TREATMENT against CONTROL, which searches use now.

    \b
    Example:
      sennit experiment start longer-pools default keyword --unit session

    The queries of its searches are recorded. A running service notices it within seconds.
    """
    with session.open(background=False) as db:
        begun = db.experiments.start(name, control, treatment, unit=unit, share=share, alpha=alpha)  # type: ignore[arg-type]
    if session.json:
        output.write_json(begun.to_dict())
    else:
        output.write_note(session, f"Started {output.one_line(name)}: {control} against {treatment}.")


@experiment.command()
@click.argument("name", type=TEXT)
@common_options
@pass_session
def stop(session: Session, name: str) -> None:
    """End the experiment NAME; its report stays.

    \b
    Example:
      sennit experiment stop longer-pools
    """
    with session.open(background=False) as db:
        ended = db.experiments.stop(name)
    if session.json:
        output.write_json(ended.to_dict())
    else:
        output.write_note(session, f"Stopped {output.one_line(name)}.")


@experiment.command()
@common_options
@pass_session
def status(session: Session) -> None:
    """List the experiments, and which one runs.

    \b
    Example:
      sennit experiment status
    """
    with session.open(background=False) as db:
        found = db.experiments.all()
    if session.json:
        output.write_json({"experiments": [one.to_dict() for one in found]})
        return
    if not found:
        output.write_note(session, "There are no experiments; 'sennit experiment start' begins one.")
        return
    output.write_table(
        ("experiment", "control", "treatment", "unit", "share", "state", "started"),
        [(*_names(one), "runs" if one.is_active else "stopped", one.started[:10]) for one in found],
        right=(4,),
    )


@experiment.command()
@click.argument("name", type=TEXT, required=False)
@click.option(
    "--plot",
    metavar="FILE",
    type=OUTPUT_FILE,
    help="Write the estimate over time as SVG.",
)
@common_options
@pass_session
def report(session: Session, name: str | None, plot: Path | None) -> None:
    """Report what an experiment has shown; without NAME, that which runs or the last.

    \b
    Example:
      sennit experiment report --plot experiment.svg

    A winner is called if the evidence against equally good recipes reaches 1/alpha. That holds however often you look.
    """
    from sennit.evaluation.experiments import report_experiment

    with session.open(background=False) as db:
        chosen = db.experiments.get(name)
        found = report_experiment(chosen, db.feedback.read(everything=True))
    if plot is not None:
        plot.write_text(found.to_svg(), encoding="utf-8")
    if session.json:
        output.write_json(found.to_dict())
    else:
        _show(found)


def _names(one: Experiment) -> tuple[str, str, str, str, str]:
    return one.name, one.control, one.treatment, one.unit, f"{one.share:g}"


def _show(found: ExperimentReport) -> None:
    from sennit.evaluation.plots import IntervalRow, interval_text

    one = found.experiment
    output.write_line(
        output.one_line(f"{one.name}: {one.treatment} against {one.control}, by {one.unit}")
        + (", running" if one.is_active else ", stopped")
    )
    output.write_line(
        f"{output.pluralize(found.searches, 'search').replace('searchs', 'searches')}, "
        f"{output.pluralize(len(found.outcomes), 'decision')}: "
        + output.one_line(f"{one.treatment} {found.wins:,}, {one.control} {found.losses:,}")
    )
    if found.share is not None:
        row = IntervalRow("share", found.interval.low, found.share, found.interval.high)
        output.write_line(*interval_text([row, IntervalRow("", 0.0, 0.5, 1.0)], 0.5)[:1])
    output.write_line(f"Evidence (e-value) {found.e_value:,.2f}; a winner needs {1 / one.alpha:,.0f}.")
    if found.winner is None:
        output.write_line("No winner yet.")
    else:
        output.write_line(
            output.one_line(f"The winner is {found.winner}, since decision {found.decided_at:,}.")
        )
