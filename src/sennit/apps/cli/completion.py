"""`sennit completion`: a completion script for a shell."""

from __future__ import annotations

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import Session, common_options, pass_session

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@common_options
@click.pass_context
@pass_session
def completion(session: Session, ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in a shell.

    \b
    Example:
      sennit completion bash

    \b
    To load it in every shell, add this line:
      ~/.bashrc                    eval "$(sennit completion bash)"
      ~/.zshrc                     eval "$(sennit completion zsh)"
      ~/.config/fish/config.fish   sennit completion fish | source
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # cannot happen: click supports all three
        raise click.UsageError(f"There is no completion for {shell}.")
    script = kind(ctx.find_root().command, {}, "sennit", "_SENNIT_COMPLETE").source()
    if session.json:
        output.write_json({"shell": shell, "script": script})
    else:
        output.write_line(script)
