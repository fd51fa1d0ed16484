"""Syntax colours of code, in the sixteen colours of the terminal's theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text

from sennit.apps.cli.output import make_console
from sennit.apps.cli.snippets import Span

THEME: Final = "ansi_dark"
"""Uses only the colours of the terminal's own theme."""

MATCH: Final = Style(color="yellow", bold=True, underline=True)


def highlight_code(lines: Sequence[str], language: object, path: str | None) -> list[Text]:
    """Return lines of code in colours; without colours if the language is unknown."""
    code = "\n".join(lines)
    lexer = str(language) if isinstance(language, str) and language else Syntax.guess_lexer(path or "", code)
    text = Syntax("", lexer, theme=THEME).highlight(code)
    found = list(text.split("\n", allow_blank=True))
    # A lexer may drop or add an empty line at the end.
    if [line.plain for line in found[: len(lines)]] != list(lines):
        return [Text(line) for line in lines]
    return found[: len(lines)]


def colour_lines(
    lines: Sequence[str], language: object, path: str | None, spans: Sequence[Sequence[Span]]
) -> list[str]:
    """Return lines of code with escape sequences for colours, and with the matches marked."""
    console = make_console()
    out = []
    for text, marked in zip(highlight_code(lines, language, path), spans, strict=True):
        for first, last in marked:
            text.stylize(MATCH, first, last)
        text.no_wrap = True
        with console.capture() as captured:
            console.print(text, end="", soft_wrap=True)
        out.append(captured.get())
    return out
