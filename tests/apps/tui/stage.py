"""A database with a few files, the interface on it, and a way to play and to look."""

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

from sennit.apps.tui.app import Query, SennitApp
from sennit.apps.tui.explain import Explain
from sennit.apps.tui.preview import Preview
from sennit.apps.tui.results import Results

from .library import FILES

SIZE: Final = (80, 24)
WIDE: Final = (120, 40)
SECONDS: Final = 30.0
"""Until a test gives up on something that should have happened."""

SCREENS: Final = Path(__file__).with_name("screens")
WRITE: Final = "SENNIT_TEST_WRITE_SCREENS"

TIME: Final = re.compile(r"(?:<1|[\d,]+(?:\.\d)?) ms *")
SCORE: Final = re.compile(r"\d\.\d{4}")
"""What differs from run to run, or from processor to processor."""

Play = Callable[[Pilot[None]], Awaitable[None]]

COLORS: Final = {1: "red", 2: "green", 3: "yellow", 5: "magenta", 8: "bright_black"}

LETTERS: Final = {
    "": " ", "bold": "b", "dim": "d", "bold red": "!", "magenta": "m", "bold magenta": "M", "green": "g",
    "dim green": "g", "red": "e", "reverse": "r", "dim reverse": "r",
    "bright_black": "-", "bright_black reverse": "|",
}  # fmt: skip
"""How a cell is drawn, in one letter. What is not listed here is not meant to be on the screen."""


def write_files(folder: Path, files: dict[str, str] = FILES) -> None:
    """The files, in a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def play(app: SennitApp, script: Play, size: tuple[int, int] = SIZE) -> None:
    """Run the interface without a terminal, and play a script on it."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await script(pilot)

    asyncio.run(run())


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Wait until something holds and all is drawn."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not happen; the screen is\n" + text_of(pilot)
        await pilot.pause(0.01)
    await pilot.pause()
    await pilot.pause()


async def answered(pilot: Pilot[None], query: str | None = None) -> None:
    """Wait for the answer to the question on the screen, and for the preview of its first result."""
    app = app_of(pilot)

    def there() -> bool:
        answer, page = app.answer, app.query_one(Preview).page
        asked = app.query_one(Query).value.strip() if query is None else query
        if answer is None or answer.query != asked or answer.recipe != app.recipe:
            return False
        return not answer.items or (page is not None and page.item is app.query_one(Results).item)

    await until(pilot, there)


async def write(pilot: Pilot[None], text: str) -> None:
    """Type into the search box."""
    await pilot.press(*("space" if letter == " " else letter for letter in text))


def app_of(pilot: Pilot[None]) -> SennitApp:
    assert isinstance(pilot.app, SennitApp)
    return pilot.app


def status_of(pilot: Pilot[None]) -> str:
    """The status line."""
    return str(app_of(pilot).query_one("#status", Static).render())


def rows_of(pilot: Pilot[None]) -> list[list[tuple[str, str]]]:
    """Each row of the screen in pieces: text, and how it is drawn."""
    return [
        [(segment.text, _name(segment.style)) for segment in strip if not segment.control]
        for strip in pilot.app.screen._compositor.render_strips()
    ]


def text_of(pilot: Pilot[None]) -> str:
    """The screen as it reads."""
    return "\n".join("".join(text for text, _ in row).rstrip() for row in rows_of(pilot))


def screen_of(pilot: Pilot[None]) -> str:
    """The screen as it reads, and below it how each cell is drawn; without what differs from run to run."""
    text, drawn = [], []
    for row in rows_of(pilot):
        line = "".join(part for part, _ in row)
        # A wide character has two cells and one letter; none of the snapshots has any.
        style = "".join(LETTERS.get(name, f"<{name}>") * len(part) for part, name in row)
        for time_taken in TIME.finditer(line):
            first, last = time_taken.span()
            line = f"{line[:first]}{'N ms':<{last - first}}{line[last:]}"
            style = f"{style[:first]}{' ' * (last - first)}{style[last:]}"
        text.append(SCORE.sub("N.NNNN", line).rstrip())
        drawn.append(style.rstrip())
    return "\n".join([*text, "=" * 20, *drawn]) + "\n"


async def compare(pilot: Pilot[None], name: str) -> None:
    """The screen becomes as it was when a person looked at it; SENNIT_TEST_WRITE_SCREENS=1 keeps what it is now."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get(WRITE):
        await pilot.pause(1.0)
        SCREENS.mkdir(exist_ok=True)
        path.write_text(screen_of(pilot), encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    end = time.monotonic() + SECONDS / 3
    while (found := screen_of(pilot)) != expected and time.monotonic() < end:
        await pilot.pause(0.01)
    assert found == expected, f"{name}: look at it, and then {WRITE}=1"


def panes(pilot: Pilot[None]) -> tuple[Results, Preview, Explain]:
    app = app_of(pilot)
    return app.query_one(Results), app.query_one(Preview), app.query_one(Explain)


def _name(style: Style | None) -> str:
    if style is None:
        return ""
    color = _color(style.color)
    backed = f"on {_color(style.bgcolor)}" if _color(style.bgcolor) else ""
    flags = [flag for flag in ("bold", "dim", "italic", "underline") if getattr(style, flag)]
    return " ".join(filter(None, [*flags, color, backed, "reverse" if style.reverse else ""]))


def _color(color: Color | None) -> str:
    """One of the sixteen by its name, the same however it was written."""
    if color is None or color.is_default:
        return ""
    return COLORS.get(color.number, color.name) if color.number is not None else color.name
