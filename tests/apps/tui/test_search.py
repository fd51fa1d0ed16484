"""Search: while typing, with other recipes, and with errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import sennit
from sennit.apps.tui.app import QueryInput, SennitApp
from sennit.apps.tui.items import run_query
from sennit.apps.tui.preview_content import load_preview
from sennit.context.status import ONLY_NEAREST

from .fake_sources import BlockingSource, FailingSource, open_with_source
from .harness import (
    get_app,
    get_panes,
    get_status,
    get_text,
    run_app,
    type_text,
    wait_for_results,
    wait_until,
)


def test_results_appear_while_typing_and_the_status_counts_them(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await type_text(pilot, "restore a file")
        await wait_for_results(pilot)
        found = database.search("restore a file", recipe="both")
        characters = sum(len(hit.text) for hit in found)
        assert get_status(pilot).startswith(f"{characters:,} characters, {len(found)} chunks found, ")
        assert get_status(pilot).endswith(" ms")
        screen = get_text(pilot)
        assert "docs/backup.md:19-24" in screen
        assert "Backups > Restore a file" in screen

    run_app(SennitApp(database, recipe="both"), script)


def test_initial_query_is_searched_at_once(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "installer")
        results, _, _ = get_panes(pilot)
        assert results.has_focus
        assert results.item is not None
        assert results.item.citation.endswith("docs/setup.md:1-8")

    run_app(SennitApp(database, recipe="keyword", query="installer"), script)


def test_initial_query_is_searched_only_once(
    database: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    search = database.search

    def counting(query: str, **options: Any) -> sennit.SearchResult:
        asked.append(query)
        return search(query, **options)

    monkeypatch.setattr(database, "search", counting)

    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "installer")
        await type_text(pilot, "/s")
        await wait_for_results(pilot, "installers")
        assert asked == ["installer", "installers"]

    run_app(SennitApp(database, recipe="keyword", query="installer"), script)


def test_grep_is_one_of_the_recipes_and_counts_files(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        await pilot.press("r", "G", "enter")
        await wait_until(pilot, lambda: get_app(pilot).recipe == "grep")
        await wait_for_results(pilot, "copy")
        assert ", 2 files matched, " in get_status(pilot)
        results, preview, _ = get_panes(pilot)
        assert results.item is not None
        assert results.item.citation.endswith("src/copy.py:1-14")
        assert "def copy_tree(source, target):" in get_text(pilot)
        assert preview.content is not None
        assert preview.content.file is not None

    run_app(SennitApp(database, recipe="both", query="copy"), script)


def test_switching_the_recipe_repeats_the_search(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "installer")
        assert ", 1 chunk found, " in get_status(pilot)
        await pilot.press("r")
        await wait_until(pilot, lambda: "Meaning only." in get_text(pilot))
        await pilot.press("j", "enter")
        await wait_until(pilot, lambda: get_app(pilot).recipe == "vector")
        await wait_for_results(pilot, "installer")
        assert f", {len(database.search('installer', recipe='vector'))} chunks found, " in get_status(pilot)
        assert get_text(pilot).startswith(" vector ❯ installer")

    run_app(SennitApp(database, recipe="keyword", query="installer"), script)


def test_nothing_found_message_and_clearing_the_query(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await type_text(pilot, "xylophone")
        await wait_for_results(pilot)
        assert "Nothing found." in get_text(pilot)
        assert get_status(pilot).startswith("0 characters, 0 chunks found, ")
        await pilot.press("ctrl+u")
        await wait_until(pilot, lambda: get_app(pilot).result_list is None)
        assert "Type a question" in get_text(pilot)
        assert get_status(pilot) == ""

    run_app(SennitApp(database, recipe="keyword"), script)


def test_the_results_say_when_none_of_them_fits_the_query(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "quantum chromodynamics lecture")
        result_list = get_app(pilot).result_list
        assert result_list is not None
        assert result_list.items, "the nearest are still shown"
        assert f"─ {ONLY_NEAREST} ─" in get_text(pilot)
        get_app(pilot).query_one(QueryInput).value = "restore a file"
        await wait_for_results(pilot, "restore a file")
        assert ONLY_NEAREST not in get_text(pilot)
        assert "─ results ─" in get_text(pilot)

    run_app(SennitApp(database, recipe="both", query="quantum chromodynamics lecture"), script)


@pytest.mark.parametrize("recipe", ["both", "files", "grep"])
def test_every_result_shows_its_file_from_any_current_folder(
    folder: Path, database: sennit.Database, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    for current in (folder, folder / "docs", folder.parent):
        monkeypatch.chdir(current)
        items = run_query(database, "copy", recipe).items
        assert items
        for item in items:
            content = load_preview(database, item)
            assert content.note == ""
            assert content.file is not None
            assert Path(content.file).resolve().is_relative_to(folder)
            assert Path(content.file).is_file()


def test_result_of_an_older_query_is_ignored(folder: Path) -> None:
    source = BlockingSource()
    with open_with_source(folder, source) as db:

        async def script(pilot: Pilot[None]) -> None:
            await type_text(pilot, "slow installer")
            await wait_until(pilot, source.started.is_set)
            await wait_until(pilot, lambda: "searching…" in get_text(pilot))
            await pilot.press("ctrl+u")
            await type_text(pilot, "calendar")
            await wait_for_results(pilot, "calendar")
            newer = get_text(pilot)
            source.release.set()
            await wait_until(pilot, source.done.is_set)
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
            assert get_text(pilot) == newer

        run_app(SennitApp(db, recipe="custom"), script)


def test_failed_source_is_reported_and_the_others_answer(folder: Path) -> None:
    with open_with_source(folder, FailingSource()) as db:

        async def script(pilot: Pilot[None]) -> None:
            await wait_for_results(pilot, "installer")
            assert ", 1 chunk found, " in get_status(pilot)
            assert "! custom did not answer: the cable is cut [bold]here[/bold] \ufffd[31m" in get_status(
                pilot
            )
            await pilot.press("e")
            assert "the cable is cut" in get_text(pilot)

        run_app(SennitApp(db, recipe="custom", query="installer"), script)


def test_error_is_shown_in_the_status_line_and_the_next_query_works(
    database: sennit.Database,
) -> None:
    async def script(pilot: Pilot[None]) -> None:
        get_app(pilot).query_one(QueryInput).value = "w" * 100_001
        await wait_until(pilot, lambda: "Error:" in get_status(pilot))
        assert "Error: The query has 100,001 characters" in get_status(pilot)
        assert "Traceback" not in get_text(pilot)
        get_app(pilot).query_one(QueryInput).value = "installer"
        await wait_for_results(pilot)
        assert "Error" not in get_text(pilot)

    run_app(SennitApp(database, recipe="keyword"), script)


def test_unexpected_error_is_shown_in_the_status_line(
    database: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(database, "search", broken)

    async def script(pilot: Pilot[None]) -> None:
        await wait_until(pilot, lambda: "KeyError: 'oops'" in get_status(pilot))
        assert "Traceback" not in get_text(pilot)

    run_app(SennitApp(database, recipe="keyword", query="installer"), script)
