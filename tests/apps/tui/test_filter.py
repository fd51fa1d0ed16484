"""The filter: typed in its text form, checked at once, and removed by Esc."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Static

import sennit
from sennit.apps.tui.app import FilterInput, QueryInput, SennitApp
from sennit.apps.tui.dialogs import RecipeDialog
from sennit.apps.tui.items import list_recipes

from .harness import get_app, get_text, run_app, type_text, wait_for_results, wait_until


def filter_error(pilot: Pilot[None]) -> str:
    return str(get_app(pilot).query_one("#filter-error", Static).render())


def test_a_filter_narrows_the_results_and_escape_removes_it(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        app = get_app(pilot)
        await wait_for_results(pilot, "copy")
        assert app.result_list is not None
        before = len(app.result_list.items)
        await pilot.press("f")
        assert app.query_one(FilterInput).has_focus
        await type_text(pilot, "collection='code'")
        await wait_until(
            pilot, lambda: app.result_list is not None and len(app.result_list.items) == 3 < before
        )
        assert all(item.language == "python" for item in app.result_list.items)
        await pilot.press("escape")
        assert app.query_one("#query", QueryInput).has_focus
        assert app.query_one(FilterInput).value == ""
        await wait_until(pilot, lambda: app.result_list is not None and len(app.result_list.items) == before)
        assert "filter ❯" not in get_text(pilot)
        await pilot.press("escape")
        assert app.query_one("#query", QueryInput).value == ""
        await pilot.press("escape", "escape")
        assert app.is_running

    run_app(SennitApp(database, recipe="both", query="copy"), script)


def test_a_wrong_filter_is_explained_beside_it_and_the_results_stay(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        app = get_app(pilot)
        await wait_for_results(pilot, "copy")
        shown = app.result_list
        await pilot.press("f")
        await type_text(pilot, "kind =")
        await wait_until(pilot, lambda: filter_error(pilot) != "")
        assert app.result_list is shown
        await type_text(pilot, "'code'")
        await wait_until(pilot, lambda: filter_error(pilot) == "")
        await wait_until(pilot, lambda: app.result_list is not shown)

    run_app(SennitApp(database, recipe="both", query="copy"), script)


def test_grep_says_that_it_takes_no_filter(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        await pilot.press("f")
        await type_text(pilot, "kind='x'")
        await wait_until(pilot, lambda: filter_error(pilot) == "grep takes no filter")

    run_app(SennitApp(database, recipe="grep", query="copy"), script)


def test_an_empty_result_says_why(folder: Path) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        await wait_until(pilot, lambda: "Nothing found." in get_text(pilot))
        assert "The recipe 'code' searches code, code_files" in get_text(pilot)
        assert "docs (5)" in get_text(pilot)

    with sennit.open(folder / ".sennit") as db:
        db.index(folder / "docs")
        run_app(SennitApp(db, recipe="code", query="copy"), script)


def test_the_list_of_recipes_counts_what_each_can_search(database: sennit.Database) -> None:
    counts = {choice.name: choice.records for choice in list_recipes(database)}
    assert counts["default"] == f"{len(database):,}"
    assert counts["code"] == f"{database.count('collection in (code, code_files)'):,}" != "0"
    assert counts["docs"] == f"{database.count('collection = docs'):,}" != "0"
    assert counts["memory"] == "0"

    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        await pilot.press("r")
        assert isinstance(pilot.app.screen, RecipeDialog)
        await pilot.press("escape")
        assert not isinstance(pilot.app.screen, RecipeDialog)

    run_app(SennitApp(database, recipe="both", query="copy"), script)
