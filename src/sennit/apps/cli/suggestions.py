"""What somebody may have meant by a command that does not exist."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import click

WORDS_OF_OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "add": ("index", "import", "remember"),
    "benchmark": ("eval",),
    "create": ("add",),
    "del": ("remove",),
    "delete": ("remove",),
    "evaluate": ("eval",),
    "find": ("search",),
    "info": ("status",),
    "ingest": ("index",),
    "init": ("index",),
    "issue": ("add",),
    "load": ("import",),
    "ls": ("list",),
    "new": ("add",),
    "optimize": ("optimise",),
    "query": ("search",),
    "revoke": ("remove",),
    "rm": ("remove",),
    "settings": ("config",),
    "show": ("get", "list"),
    "stats": ("status",),
    "train": ("learn",),
    "ui": ("tui", "open"),
    "uninstall": ("install --undo",),
    "web": ("open",),
}
"""What other programs call a command; of the names, those that exist are suggested."""


def suggest_command(name: str, commands: Collection[str], all_commands: str) -> str:
    """Return a sentence that names the commands that may be meant, or where to find all of them."""
    from difflib import get_close_matches

    meant = [one for one in WORDS_OF_OTHERS.get(name, ()) if one.partition(" ")[0] in commands]
    found = meant or get_close_matches(name, commands, n=1)
    if not found:
        return f"{all_commands} lists the commands."
    names = [repr(one) for one in found]
    return f"Did you mean {', '.join(names[:-1])}{' or ' if names[:-1] else ''}{names[-1]}?"


class CommandGroup(click.Group):
    """A command with commands of its own, which says what a misspelt one may mean."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        commands = self.list_commands(ctx)
        if args and args[0] not in commands and not args[0].startswith("-"):
            advice = suggest_command(args[0], commands, f"'{ctx.command_path} --help'")
            ctx.fail(f"There is no command {args[0]!r}. {advice}")
        return super().resolve_command(ctx, args)
