"""The main screens, compared cell by cell with recorded ones that a person has looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import sennit
from sennit.apps.tui.app import FilterInput, QueryInput, SennitApp
from sennit.apps.tui.dialogs import RecipeDialog
from sennit.apps.tui.items import RecipeChoice

from .fake_sources import FailingSource, open_with_source
from .harness import (
    SMALL,
    WIDE,
    assert_screen,
    get_app,
    get_rows,
    get_status,
    get_text,
    run_app,
    wait_for_results,
    wait_until,
)

QUERY = "how do I restore a file"


@pytest.mark.parametrize(("size", "form"), [(SMALL, "80x24"), (WIDE, "120x40")])
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("results", []),
        ("reading", ["enter"]),
        ("explain", ["j", "e"]),
        ("keys", ["question_mark"]),
    ],
)
def test_results_screen(
    database: sennit.Database, name: str, keys: list[str], size: tuple[int, int], form: str
) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, QUERY)
        await pilot.press(*keys)
        await wait_for_results(pilot, QUERY)
        await assert_screen(pilot, f"{name}-{form}")

    run_app(SennitApp(database, recipe="both", query=QUERY), script, size)


@pytest.mark.parametrize(("size", "form"), [(SMALL, "80x24"), (WIDE, "120x40")])
def test_recipe_dialog_screen(database: sennit.Database, size: tuple[int, int], form: str) -> None:
    choices = [
        RecipeChoice("default", "1,234", "keyword + vector", "Keyword and meaning together, for anything."),
        RecipeChoice("keyword", "1,234", "keyword", "Exact words only."),
        RecipeChoice(
            "own",
            "0",
            "keyword + vector + a source of a deployment's own",
            "Recipes of sennit.toml stand here too.",
        ),
    ]

    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, QUERY)
        pilot.app.push_screen(RecipeDialog(choices, "keyword"))
        await assert_screen(pilot, f"recipes-{form}")

    run_app(SennitApp(database, recipe="both", query=QUERY), script, size)


@pytest.mark.parametrize(("size", "form"), [(SMALL, "80x24"), (WIDE, "120x40")])
def test_code_screen_with_a_filter(database: sennit.Database, size: tuple[int, int], form: str) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        get_app(pilot).query_one("#filter", FilterInput).value = "collection = 'code'"
        await pilot.press("f")
        await wait_until(pilot, lambda: "1 of 3" in get_text(pilot))
        await assert_screen(pilot, f"code-{form}")

    run_app(SennitApp(database, recipe="both", query="copy"), script, size)


@pytest.mark.parametrize(("size", "form"), [(SMALL, "80x24"), (WIDE, "120x40")])
def test_grep_screen(database: sennit.Database, size: tuple[int, int], form: str) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        await assert_screen(pilot, f"grep-{form}")

    run_app(SennitApp(database, recipe="grep", query="copy"), script, size)


def test_initial_screen(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await pilot.pause()
        await assert_screen(pilot, "empty-80x24")

    run_app(SennitApp(database, recipe="both"), script)


def test_nothing_found_screen(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "xylophone")
        await assert_screen(pilot, "nothing-80x24")

    run_app(SennitApp(database, recipe="keyword", query="xylophone"), script)


def test_error_screen(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        query = get_app(pilot).query_one(QueryInput)
        query.value = "w" * 100_001
        await wait_until(pilot, lambda: "Error" in get_status(pilot))
        await assert_screen(pilot, "error-80x24")

    run_app(SennitApp(database, recipe="both"), script)


def test_degraded_search_screen(folder: Path) -> None:
    with open_with_source(folder, FailingSource()) as db:

        async def script(pilot: Pilot[None]) -> None:
            await wait_for_results(pilot, QUERY)
            await pilot.press("e")
            await pilot.pause()
            await assert_screen(pilot, "degraded-80x24")

        run_app(SennitApp(db, recipe="custom", query=QUERY), script)


def test_screen_without_colours_uses_other_marks(
    database: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, QUERY)
        drawn = {style for row in get_rows(pilot) for _, style in row}
        assert drawn <= {"", "bold", "dim", "reverse", "dim reverse"}
        bold = [part for row in get_rows(pilot) for part, style in row if style == "bold"]
        assert {"Restore", "restored", "file"} <= set(bold), "matches are bold"
        assert any("▌" in part for row in get_rows(pilot) for part, _ in row), "a bar marks the selection"

    run_app(SennitApp(database, recipe="both", query=QUERY), script)
