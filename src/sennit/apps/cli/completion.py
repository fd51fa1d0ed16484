"""`sennit completion`."""

from __future__ import annotations

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import Session, common, pass_session

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@common
@click.pass_context
@pass_session
def completion(session: Session, ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash   eval "$(sennit completion bash)"              in ~/.bashrc
    zsh    eval "$(sennit completion zsh)"               in ~/.zshrc
    fish   sennit completion fish | source               in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # click has known these three since 8.0
        raise click.UsageError(f"There is no completion for {shell}.")
    script = kind(ctx.find_root().command, {}, "sennit", "_SENNIT_COMPLETE").source()
    if session.json:
        output.emit({"shell": shell, "script": script})
    else:
        output.say(script)
