"""The program: its commands, which are imported only when they run, and what becomes of their errors."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, NoReturn

import click

import sennit
from sennit.apps.cli.exits import EPILOG, INTERRUPTED, OK, code_of, describe_error
from sennit.apps.cli.output import complain
from sennit.apps.cli.session import common


class Row(NamedTuple):
    """Where a command lives, and the line that `sennit --help` has for it."""

    target: str
    help: str


COMMANDS: Final[dict[str, Row]] = {
    "index": Row("sennit.apps.cli.index:index", "Take in files and folders; again, only what changed."),
    "search": Row("sennit.apps.cli.search:search", "Find the best records for a question."),
    "ask": Row("sennit.apps.cli.ask:ask", "Answer a question in words, with citations."),
    "grep": Row("sennit.apps.cli.grep:grep", "Find exact text in files, with the lines around it."),
    "read": Row("sennit.apps.cli.read:read", "Print a file of an allowed folder, or some of its lines."),
    "why": Row("sennit.apps.cli.search:why", "Say why a record is in an answer, or what kept it out."),
    "get": Row("sennit.apps.cli.keeping:get", "Show one record."),
    "import": Row("sennit.apps.cli.transfer:import_", "Add or replace records from JSON lines."),
    "export": Row("sennit.apps.cli.transfer:export", "Write records as JSON lines."),
    "remove": Row("sennit.apps.cli.keeping:remove", "Remove records by id."),
    "recipes": Row("sennit.apps.cli.keeping:recipes", "List the ways to search."),
    "remember": Row("sennit.apps.cli.memory:remember", "Keep a text or a conversation for later."),
    "context": Row("sennit.apps.cli.memory:context", "Print what is remembered as a block for a prompt."),
    "facts": Row("sennit.apps.cli.memory:facts", "Say what is known, list it, take it back."),
    "plan": Row("sennit.apps.cli.plan:plan", "Print the code that belongs into a prompt, within a budget."),
    "introspect": Row("sennit.apps.cli.plan:introspect", "Show what was planned in an episode, and why."),
    "eval": Row("sennit.apps.cli.eval:eval_", "Measure search on collections with judgements."),
    "models": Row("sennit.apps.cli.models:models", "Show, install and change embedding models."),
    "tokens": Row("sennit.apps.cli.tokens:tokens", "Give out and take back tokens for callers from outside."),
    "config": Row("sennit.apps.cli.config:config", "Show every setting and where it came from."),
    "doctor": Row(
        "sennit.apps.cli.doctor:doctor", "Prove that the database is sound; repair what is derived."
    ),
    "tui": Row("sennit.apps.cli.tui:tui", "Search, read and explain in the terminal, with the keyboard."),
    "serve": Row("sennit.apps.cli.serve:serve", "Offer search, context and writing over HTTP."),
    "mcp": Row("sennit.apps.cli.mcp:mcp", "Offer search and memory as tools of an assistant, by MCP."),
    "demo": Row("sennit.apps.cli.demo:demo", "Show what sennit does, on a few dozen sample records."),
    "completion": Row("sennit.apps.cli.completion:completion", "Print the completion script of a shell."),
}
"""Every command, in the order of the help."""


class _ReaderGone(Exception):
    """Whoever read our output has stopped."""


class Program(click.Group):
    """A group that knows its commands by name and loads the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        module, _, attribute = row.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            advice = f"Did you mean {near[0]!r}?" if near else "'sennit --help' lists the commands."
            ctx.fail(f"There is no command {args[0]!r}. {advice}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # By another name, because click would leave with 1.
            raise _ReaderGone from error

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> NoReturn:
        """Run, turn every error into one clear sentence and an exit code, and leave."""
        given = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        sys.exit(_guarded(lambda: super(Program, self).main(given, *others, **extra), given))


def _guarded(run: Callable[[], object], args: list[str]) -> int:
    try:
        result = run()
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except (_ReaderGone, BrokenPipeError):
        # It has seen enough. Nothing may be flushed into the closed pipe at the end.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except Exception as error:  # noqa: BLE001 - the last stop
        if os.environ.get("SENNIT_DEBUG"):
            import traceback

            traceback.print_exc()
        complain(describe_error(error), as_json="--json" in _options(args))
        return code_of(error)
    return result if isinstance(result, int) else OK


def _options(args: list[str]) -> Iterator[str]:
    """The arguments before `--`: when parsing fails, nothing else says whether JSON was wanted."""
    for arg in args:
        if arg == "--":
            return
        yield arg


@click.group(
    cls=Program,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(sennit.__version__, "--version", message="sennit %(version)s")
@common
def program() -> None:
    """One hybrid-retrieval engine: search records by keyword and by meaning, in one explained ranking."""
