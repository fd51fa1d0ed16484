"""The `sennit` program: its commands, which are imported only when they run, and its error handling."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, NoReturn

import click

import sennit
from sennit.apps.cli.exit_codes import EPILOG, INTERRUPTED, OK, USAGE, describe_error, exit_code_for
from sennit.apps.cli.imports import without_collection
from sennit.apps.cli.output import write_error
from sennit.apps.cli.session import common_options
from sennit.apps.cli.suggestions import CommandGroup


class CommandEntry(NamedTuple):
    """Where a command is defined, and its line in `sennit --help`."""

    target: str
    help: str


_CLI: Final = "sennit.apps.cli"


class Section(NamedTuple):
    """What people want to do, a command line that does it, and the commands for it."""

    title: str
    example: str
    commands: dict[str, CommandEntry]


SECTIONS: Final = (
    Section(
        "Put something in",
        "sennit index .",
        {
            "index": CommandEntry(f"{_CLI}.index:index", "Index files and folders; run again to update."),
            "import": CommandEntry(f"{_CLI}.records:import_", "Add or replace records from JSON lines."),
            "remember": CommandEntry(f"{_CLI}.memory:remember", "Store a text or a conversation."),
            "facts": CommandEntry(f"{_CLI}.memory:facts", "Add, list, extract and remove facts."),
        },
    ),
    Section(
        "Find something",
        "sennit search how do I restore a backup",
        {
            "search": CommandEntry(
                f"{_CLI}.search:search", "Search by keyword and by meaning, in one ranking."
            ),
            "ask": CommandEntry(f"{_CLI}.ask:ask", "Answer a question in sentences, with citations."),
            "grep": CommandEntry(f"{_CLI}.grep:grep", "Find exact text in files, with the lines around it."),
            "tui": CommandEntry(f"{_CLI}.tui:tui", "Search, read and explain in a full-screen terminal."),
        },
    ),
    Section(
        "Look at a result",
        "sennit why how do I restore a backup docs/backup.md:3-9",
        {
            "read": CommandEntry(
                f"{_CLI}.read:read", "Print a file of an allowed folder, or some of its lines."
            ),
            "get": CommandEntry(f"{_CLI}.records:get", "Show one record."),
            "why": CommandEntry(f"{_CLI}.search:why", "Explain why a record is in a result, or why not."),
        },
    ),
    Section(
        "See what is there, and tidy up",
        "sennit status",
        {
            "status": CommandEntry(
                f"{_CLI}.inventory:status", "Show collections, folders, models, and what is left to do."
            ),
            "list": CommandEntry(f"{_CLI}.inventory:list_", "List records, files or sessions."),
            "remove": CommandEntry(f"{_CLI}.records:remove", "Remove records, one by one or by a condition."),
            "forget": CommandEntry(
                f"{_CLI}.inventory:forget", "Remove a conversation and what is known only from it."
            ),
            "export": CommandEntry(f"{_CLI}.records:export", "Write records as JSON lines."),
        },
    ),
    Section(
        "Give a model what it needs",
        "sennit context what did Rajesh say about the vacation",
        {
            "context": CommandEntry(
                f"{_CLI}.memory:context", "Print memories as a block for a system prompt."
            ),
            "plan": CommandEntry(f"{_CLI}.plan:plan", "Print the code a task needs, within a token budget."),
            "introspect": CommandEntry(
                f"{_CLI}.plan:introspect", "Show what an earlier plan included, and why."
            ),
        },
    ),
    Section(
        "Serve assistants and other programs",
        "sennit serve",
        {
            "serve": CommandEntry(f"{_CLI}.serve:serve", "Serve search, context and writes over HTTP."),
            "open": CommandEntry(f"{_CLI}.open:open_", "Open the web page to look into search."),
            "mcp": CommandEntry(f"{_CLI}.mcp:mcp", "Serve tools to an assistant over MCP."),
            "install": CommandEntry(
                f"{_CLI}.install:install_command", "Put it into a coding agent or editor, and take it out."
            ),
            "tools": CommandEntry(
                f"{_CLI}.tools:tools", "Print the tools for a model without MCP; run calls."
            ),
            "tokens": CommandEntry(f"{_CLI}.tokens:tokens", "Create, list and revoke access tokens."),
        },
    ),
    Section(
        "Set up, check and measure",
        "sennit demo",
        {
            "demo": CommandEntry(f"{_CLI}.demo:demo", "Show the five recipes on sample data."),
            "recipes": CommandEntry(f"{_CLI}.search:recipes", "List the recipes: the ways to search."),
            "config": CommandEntry(f"{_CLI}.config:config", "Show every setting and where it comes from."),
            "models": CommandEntry(f"{_CLI}.models:models", "Show, install and change embedding models."),
            "doctor": CommandEntry(f"{_CLI}.doctor:doctor", "Check the database, and repair its indexes."),
            "optimise": CommandEntry(
                f"{_CLI}.inventory:optimise", "Merge index segments, and delete unused vectors."
            ),
            "migrate": CommandEntry(
                f"{_CLI}.migrate:migrate", "Move the database to another place or server."
            ),
            "eval": CommandEntry(f"{_CLI}.eval:eval_", "Measure search quality and speed on labelled data."),
            "tune": CommandEntry(
                f"{_CLI}.tune:tune", "Find better numbers for a recipe on your own queries."
            ),
            "judge": CommandEntry(f"{_CLI}.judge:judge", "Grade results by hand, for 'sennit eval'."),
            "feedback": CommandEntry(
                f"{_CLI}.feedback:feedback", "Record, list and export what people did with results."
            ),
            "learn": CommandEntry(f"{_CLI}.learn:learn", "Learn a ranking from judgements or feedback."),
            "rankers": CommandEntry(f"{_CLI}.learn:rankers", "List, store and remove learned rankers."),
            "experiment": CommandEntry(
                f"{_CLI}.experiment:experiment", "Compare two recipes on live searches."
            ),
            "completion": CommandEntry(f"{_CLI}.completion:completion", "Print a shell completion script."),
        },
    ),
)
"""The commands in the order of the help. A command's module is imported only when the command runs."""

COMMANDS: Final = {name: entry for section in SECTIONS for name, entry in section.commands.items()}


class _ReaderGone(Exception):
    """The process that reads our output has closed the pipe."""


@contextlib.contextmanager
def _reader_may_go() -> Iterator[None]:
    """Raise another exception type, because click would exit with 1 on a broken pipe."""
    try:
        yield
    except BrokenPipeError as error:
        raise _ReaderGone from error


class Program(CommandGroup):
    """A group that imports only the command that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        with without_collection():
            command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, COMMANDS))
        for section in SECTIONS:
            with formatter.section(section.title):
                formatter.write_dl(
                    [(f"{name:<{width}}", entry.help) for name, entry in section.commands.items()]
                )
                formatter.write(f"{'':>{formatter.current_indent}}$ {section.example}\n")

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _reader_may_go():  # --help and --version print while the options are parsed
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with _reader_may_go():
            return super().invoke(ctx)

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> NoReturn:
        """Run a command and exit; every error becomes a sentence and an exit code."""
        arguments = _as_options(list(sys.argv[1:] if args is None else args))
        extra["standalone_mode"] = False
        sys.exit(_run(lambda: super(Program, self).main(arguments, *others, **extra), arguments))


def _as_options(args: list[str]) -> list[str]:
    """Return the arguments with the options that `help` and `version` stand for, which other programs have as commands."""
    if args[:1] == ["help"]:
        return [*args[1:], "--help"]
    return ["--version", *args[1:]] if args[:1] == ["version"] else args


def _run(command: Callable[[], object], args: list[str]) -> int:
    """Run a command and return its exit code."""
    try:
        result = command()
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except (_ReaderGone, BrokenPipeError):
        # Not an error: `sennit export | head`. Python must not flush into the closed pipe at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except Exception as error:  # noqa: BLE001 - the outermost handler
        if os.environ.get("SENNIT_DEBUG"):
            import traceback

            traceback.print_exc()
        with contextlib.suppress(OSError):  # nobody reads it
            write_error(describe_error(error), as_json="--json" in _options(args))
        return exit_code_for(error)
    return result if isinstance(result, int) else OK


def _options(args: list[str]) -> Iterator[str]:
    """Yield the arguments before `--`; needed to recognise --json when parsing has failed."""
    for arg in args:
        if arg == "--":
            return
        yield arg


@click.group(
    cls=Program,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(sennit.__version__, "-V", "--version", message="sennit %(version)s")
@common_options
@click.pass_context
def program(ctx: click.Context) -> None:
    """Search documents, notes, conversations and code by keyword and by meaning, and explain every result.

    \b
    Example:
      sennit index .
      sennit search how do I restore a backup
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
