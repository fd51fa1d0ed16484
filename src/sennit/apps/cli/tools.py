"""`sennit tools`: the tools for language models that are not reached over MCP."""

from __future__ import annotations

import json
import sys

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import OK, USAGE
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.apps.cli.suggestions import CommandGroup
from sennit.errors import InvalidInput
from sennit.tools import FORMATS, ToolFormat, Tools, describe_tools
from sennit.tools.toolset import select_tools


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="openai",
    show_default=True,
    help="The interface whose form to print.",
)
@click.option("--tool", "names", type=TEXT, multiple=True, help="Only this tool; repeatable.")
@click.option("--read-only", is_flag=True, help="Leave out the tools that write.")
@common_options
@pass_session
@click.pass_context
def tools(
    ctx: click.Context, session: Session, form: ToolFormat, names: tuple[str, ...], read_only: bool
) -> None:
    """Print the tools as JSON, for the `tools` of a request to a language model.

    \b
    Example:
      sennit tools --format anthropic --read-only

    They are the tools that 'sennit mcp' serves. 'sennit tools call' runs a call that the model has made.
    """
    if ctx.invoked_subcommand is not None:
        return
    described = describe_tools(select_tools(names or None, read_only=read_only), form)
    if session.json:
        output.write_json({"format": form, "tools": described})
    else:
        output.write_line(json.dumps(described, indent=2, ensure_ascii=False))


@tools.command()
@click.argument("name", type=TEXT)
@click.argument("arguments", type=TEXT, default="-")
@common_options
@pass_session
@click.pass_context
def call(ctx: click.Context, session: Session, name: str, arguments: str) -> int:
    """Run the tool NAME with ARGUMENTS, a JSON object, and print the text for the model.

    \b
    Example:
      sennit tools call hybrid_search '{"query": "backup", "limit": 3}'

    ARGUMENTS are read from standard input if they are left out or '-'. If the call fails, the text says why and the
    exit code is 2. Options of 'sennit tools' before the word 'call' limit what may be called.
    """
    given = _read_arguments() if arguments == "-" else arguments
    offered = ctx.parent.params if ctx.parent else {}
    with session.open() as db:
        offered_tools = Tools(
            db,
            read_only=offered.get("read_only", False),
            names=offered.get("names") or None,
            source="sennit tools",
        )
        result = offered_tools.call(name, given)
    if session.json:
        output.write_json(
            {
                "text": result.text,
                "is_error": result.is_error,
                "structured_content": result.structured_content,
            }
        )
    else:
        output.write_line(result.text)
    return USAGE if result.is_error else OK


def _read_arguments() -> str:
    if sys.stdin.isatty():
        raise InvalidInput("Give the arguments as a JSON object, or pipe them into this command.")
    return sys.stdin.buffer.read().decode(errors="replace")
