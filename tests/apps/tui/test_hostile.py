"""Records with text that tries to control the screen."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

import sennit
from sennit.apps.tui.app import SennitApp

from .harness import SMALL, WIDE, get_panes, get_rows, get_text, run_app, wait_for_results

HOSTILE = {
    "markup": "xylophone [bold red]not bold[/] [link=http://example.com]x[/link] [@click=app.quit]q[/]",
    "escape": "xylophone \x1b[2J\x1b[31mred\x1b]0;title\x07 \x9b31m \x08\x08\x00",
    "bidi": "xylophone \u202egnp.exe \u2066x\u2069 \u200f\u061c",
    "lines": "xylophone\u2028two\u2029three\x0bfour\x0cfive\rsix",
    "wide": "xylophone 漢字 👩\u200d👩\u200d👧 e\u0301\u0301\u0301 \U000e0041\U000e0042 \ufe0f" * 20,
    "long": "xylophone " + "y" * 1_000_000,
    "tabs": "xylophone\t\t\tx\n\tx",
}


@pytest.mark.parametrize("size", [SMALL, WIDE])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_record_is_sanitized(database: sennit.Database, name: str, size: tuple[int, int]) -> None:
    text = HOSTILE[name]
    field = text[:200]
    database.add(
        [sennit.Record(id=field, text=text, title=field, path=field, lines=(1, 2), collection=field)],
    )

    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "xylophone")
        await pilot.press("e")
        await pilot.press("e", "enter", "G", "y", "escape", "o")
        rows = get_rows(pilot)
        for row in rows:
            for part, style in row:
                assert {letter for letter in part if not letter.isprintable()} <= {"\u200d"}, part
                assert "on red" not in style
        assert len(get_text(pilot).splitlines()) <= size[1]
        results, preview, _ = get_panes(pilot)
        assert results.item is not None
        assert preview.rows < 100
        assert pilot.app.is_running

    run_app(SennitApp(database, recipe="keyword", query="xylophone"), script, size)


def test_markup_is_shown_as_text(database: sennit.Database) -> None:
    database.add([sennit.Record(id="[bold]id[/]", text="xylophone [bold]x[/bold]", title="[red]t[/red]")])

    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "xylophone")
        screen = get_text(pilot)
        assert "[red]t[/red]" in screen
        assert "[bold]x[/bold]" in screen
        assert "─ [bold]id[/] ─" in screen
        await pilot.press("y")
        assert "Copied [bold]id[/]" in get_text(pilot)

    run_app(SennitApp(database, recipe="keyword", query="xylophone"), script)


def test_query_may_contain_markup_and_escapes(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "[bold]calendar[/] \\x1b[31m")
        assert "[bold]calendar[/]" in get_text(pilot)

    run_app(SennitApp(database, recipe="keyword", query="[bold]calendar[/] \\x1b[31m"), script)
