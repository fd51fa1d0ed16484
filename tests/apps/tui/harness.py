"""Runs the interface without a terminal, types keys, and reads the screen."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from rich.color import Color
from rich.style import Style
from textual.pilot import Pilot
from textual.widgets import Static

from sennit.apps.tui.app import QueryInput, SennitApp
from sennit.apps.tui.explain import ExplainPane
from sennit.apps.tui.preview import PreviewPane
from sennit.apps.tui.results import ResultsPane

from .sample_files import SAMPLE_FILES

SMALL: Final = (80, 24)
WIDE: Final = (120, 40)
TIMEOUT_SECONDS: Final = 30.0
"""How long a test waits for an event before it fails."""

SCREENS: Final = Path(__file__).with_name("screens")
WRITE_SCREENS_VARIABLE: Final = "SENNIT_TEST_WRITE_SCREENS"

TIME: Final = re.compile(r"(?:<1|[\d,]+(?:\.\d)?) ms *")
SCORE: Final = re.compile(r"-?\d\.\d\d(?:\d\d)?\b")
"""Values that differ between runs or processors."""

Script = Callable[[Pilot[None]], Awaitable[None]]

COLORS: Final = {1: "red", 2: "green", 3: "yellow", 5: "magenta", 8: "bright_black"}

STYLE_LETTERS: Final = {
    "": " ", "bold": "b", "dim": "d", "bold red": "!", "magenta": "m", "bold magenta": "M", "green": "g",
    "dim green": "g", "red": "e", "reverse": "r", "dim reverse": "r",
    "bright_black": "-", "bright_black reverse": "|",
}  # fmt: skip
"""One letter for each style of a cell. A style that is not listed must not appear on the screen."""


def write_files(folder: Path, files: dict[str, str] = SAMPLE_FILES) -> None:
    """Write the files into a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run_app(app: SennitApp, script: Script, size: tuple[int, int] = SMALL) -> None:
    """Run the interface without a terminal, with a script that uses it."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await script(pilot)

    asyncio.run(run())


async def wait_until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait until a condition holds and the screen is drawn."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < end, "timed out; the screen is\n" + get_text(pilot)
        await pilot.pause(0.01)
    await pilot.pause()
    await pilot.pause()


async def wait_for_results(pilot: Pilot[None], query: str | None = None) -> None:
    """Wait for the results of the query on the screen, and for the preview of the first one."""
    app = get_app(pilot)

    def is_shown() -> bool:
        results, content = app.result_list, app.query_one(PreviewPane).content
        expected = app.query_one(QueryInput).value.strip() if query is None else query
        if results is None or results.query != expected or results.recipe != app.recipe:
            return False
        return not results.items or (content is not None and content.item is app.query_one(ResultsPane).item)

    await wait_until(pilot, is_shown)


async def type_text(pilot: Pilot[None], text: str) -> None:
    """Type into the query input."""
    await pilot.press(*("space" if letter == " " else letter for letter in text))


def get_app(pilot: Pilot[None]) -> SennitApp:
    assert isinstance(pilot.app, SennitApp)
    return pilot.app


def get_status(pilot: Pilot[None]) -> str:
    """Return the status line."""
    return str(get_app(pilot).query_one("#status", Static).render())


def get_rows(pilot: Pilot[None]) -> list[list[tuple[str, str]]]:
    """Return each row of the screen as pieces of text with their style."""
    return [
        [(segment.text, _name(segment.style)) for segment in strip if not segment.control]
        for strip in pilot.app.screen._compositor.render_strips()
    ]


def get_text(pilot: Pilot[None]) -> str:
    """Return the text of the screen."""
    return "\n".join("".join(text for text, _ in row).rstrip() for row in get_rows(pilot))


def get_screen(pilot: Pilot[None]) -> str:
    """Return the text of the screen and below it the style of each cell, without values that differ between runs."""
    text, drawn = [], []
    for row in get_rows(pilot):
        line = "".join(part for part, _ in row)
        # A wide character has two cells but one letter; no recorded screen has any.
        style = "".join(STYLE_LETTERS.get(name, f"<{name}>") * len(part) for part, name in row)
        for time_taken in TIME.finditer(line):
            first, last = time_taken.span()
            line = f"{line[:first]}{'N ms':<{last - first}}{line[last:]}"
            style = f"{style[:first]}{' ' * (last - first)}{style[last:]}"
        text.append(SCORE.sub(lambda score: re.sub(r"\d", "N", score[0]), line).rstrip())
        drawn.append(style.rstrip())
    return "\n".join([*text, "=" * 20, *drawn]) + "\n"


async def assert_screen(pilot: Pilot[None], name: str) -> None:
    """Wait until the screen equals the recorded one; SENNIT_TEST_WRITE_SCREENS=1 records it instead."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get(WRITE_SCREENS_VARIABLE):
        await pilot.pause(1.0)
        SCREENS.mkdir(exist_ok=True)
        path.write_text(get_screen(pilot), encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    end = time.monotonic() + TIMEOUT_SECONDS / 3
    while (found := get_screen(pilot)) != expected and time.monotonic() < end:
        await pilot.pause(0.01)
    assert found == expected, (
        f"{name} has changed; look at it, then record it with {WRITE_SCREENS_VARIABLE}=1"
    )


def get_panes(pilot: Pilot[None]) -> tuple[ResultsPane, PreviewPane, ExplainPane]:
    app = get_app(pilot)
    return app.query_one(ResultsPane), app.query_one(PreviewPane), app.query_one(ExplainPane)


def _name(style: Style | None) -> str:
    if style is None:
        return ""
    color = _color(style.color)
    backed = f"on {_color(style.bgcolor)}" if _color(style.bgcolor) else ""
    flags = [flag for flag in ("bold", "dim", "italic", "underline") if getattr(style, flag)]
    return " ".join(filter(None, [*flags, color, backed, "reverse" if style.reverse else ""]))


def _color(color: Color | None) -> str:
    """Return the name of one of the sixteen colours, however it was specified."""
    if color is None or color.is_default:
        return ""
    return COLORS.get(color.number, color.name) if color.number is not None else color.name
