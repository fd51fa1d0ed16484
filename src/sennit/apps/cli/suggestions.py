"""What somebody may have meant by a command that does not exist."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import click

WORDS_OF_OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "add": ("index", "import", "remember"),
    "backup": ("export",),
    "benchmark": ("eval",),
    "build": ("index",),
    "cat": ("read", "get"),
    "chat": ("ask",),
    "check": ("doctor",),
    "clear": ("remove", "forget"),
    "collections": ("status",),
    "compact": ("optimise",),
    "create": ("add",),
    "del": ("remove",),
    "delete": ("remove",),
    "drop": ("remove",),
    "dump": ("export",),
    "evaluate": ("eval",),
    "explain": ("why",),
    "fetch": ("get",),
    "files": ("list --files",),
    "find": ("search",),
    "info": ("status",),
    "ingest": ("index",),
    "init": ("index",),
    "insert": ("import", "remember", "add"),
    "issue": ("add",),
    "load": ("import",),
    "ls": ("list",),
    "new": ("add",),
    "optimize": ("optimise",),
    "put": ("import", "remember", "add"),
    "query": ("search",),
    "recall": ("search", "context"),
    "records": ("list",),
    "reindex": ("index",),
    "reset": ("remove",),
    "restore": ("import",),
    "revoke": ("remove",),
    "rm": ("remove",),
    "save": ("remember", "import"),
    "sessions": ("list --sessions",),
    "settings": ("config",),
    "show": ("get", "list"),
    "start": ("serve",),
    "stats": ("status",),
    "sync": ("index",),
    "train": ("learn",),
    "ui": ("tui", "open"),
    "uninstall": ("install --undo",),
    "update": ("index",),
    "upload": ("index", "import"),
    "vacuum": ("optimise",),
    "verify": ("doctor",),
    "watch": ("index --watch",),
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

    def __init__(self, *args: Any, advice: str = "", **options: Any) -> None:
        """`advice` is added when there is no command of a name: what to do instead."""
        super().__init__(*args, **options)
        self.advice = advice

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        commands = self.list_commands(ctx)
        if args and args[0] not in commands and not args[0].startswith("-"):
            advice = suggest_command(args[0], commands, f"'{ctx.command_path} --help'")
            ctx.fail(f"There is no command {args[0]!r}. {advice} {self.advice}".rstrip())
        return super().resolve_command(ctx, args)
