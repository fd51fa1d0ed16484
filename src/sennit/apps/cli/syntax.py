"""Syntax colours of code, in the sixteen colours of the terminal's theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text

from sennit.apps.cli.output import make_console
from sennit.apps.excerpts import Span

# By the names of the kinds of tokens. Only colours that are readable on a dark and on a light background.
THEME: Final = ANSISyntaxTheme(
    {
        ("Comment",): Style(dim=True),
        ("Keyword",): Style(color="magenta"),
        ("Operator", "Word"): Style(color="magenta"),
        ("Literal", "String"): Style(color="green"),
        ("Literal", "Number"): Style(color="green"),
        ("Name", "Function"): Style(bold=True),
        ("Name", "Class"): Style(bold=True),
    }
)

MATCH: Final = Style(color="yellow", bold=True, underline=True)


def highlight_code(lines: Sequence[str], language: str) -> list[Text]:
    """Return lines of code in colours; without colours if the language is unknown."""
    text = Syntax("", language, theme=THEME).highlight("\n".join(lines))
    found = list(text.split("\n", allow_blank=True))
    # A lexer may drop or add an empty line at the end.
    if [line.plain for line in found[: len(lines)]] != list(lines):
        return [Text(line) for line in lines]
    return found[: len(lines)]


def colour_lines(lines: Sequence[str], language: str, spans: Sequence[Sequence[Span]]) -> list[str]:
    """Return lines of code with escape sequences for colours, and with the matches marked."""
    console = make_console()
    out = []
    for text, marked in zip(highlight_code(lines, language), spans, strict=True):
        for first, last in marked:
            text.stylize(MATCH, first, last)
        text.no_wrap = True
        with console.capture() as captured:
            console.print(text, end="", soft_wrap=True)
        out.append(captured.get())
    return out
