"""Asking: while one writes, with other recipes, and when something goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import sennit
from sennit.apps.tui.app import Query, SennitApp

from .gates import Broken, Gate, gated
from .stage import answered, app_of, panes, play, status_of, text_of, until, write


def test_results_come_while_one_writes_and_the_status_says_what_came(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await write(pilot, "restore a file")
        await answered(pilot)
        found = library.search("restore a file", recipe="both")
        characters = sum(len(hit.text) for hit in found)
        assert status_of(pilot).startswith(f"{characters:,} characters, {len(found)} chunks found, ")
        assert status_of(pilot).endswith(" ms")
        screen = text_of(pilot)
        assert "docs/backup.md:19-24" in screen
        assert "Backups > Restore a file" in screen

    play(SennitApp(library, recipe="both"), script)


def test_a_question_from_the_command_line_is_asked_at_once(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "installer")
        results, _, _ = panes(pilot)
        assert results.has_focus
        assert results.item is not None
        assert results.item.citation.endswith("docs/setup.md:1-8")

    play(SennitApp(library, recipe="keyword", query="installer"), script)


def test_a_question_from_the_command_line_is_asked_once(
    library: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    search = library.search

    def counting(query: str, **options: Any) -> sennit.Result:
        asked.append(query)
        return search(query, **options)

    monkeypatch.setattr(library, "search", counting)

    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "installer")
        await write(pilot, "/s")
        await answered(pilot, "installers")
        assert asked == ["installer", "installers"]

    play(SennitApp(library, recipe="keyword", query="installer"), script)


def test_grep_is_one_of_the_recipes_and_counts_files(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "copy")
        await pilot.press("r", "G", "enter")
        await until(pilot, lambda: app_of(pilot).recipe == "grep")
        await answered(pilot, "copy")
        assert ", 2 files matched, " in status_of(pilot)
        results, preview, _ = panes(pilot)
        assert results.item is not None
        assert results.item.citation.endswith("src/copy.py:1-14")
        assert "def copy_tree(source, target):" in text_of(pilot)
        assert preview.page is not None
        assert preview.page.file is not None

    play(SennitApp(library, recipe="both", query="copy"), script)


def test_another_recipe_answers_the_same_question(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "installer")
        assert ", 1 chunk found, " in status_of(pilot)
        await pilot.press("r")
        await until(pilot, lambda: "Meaning only." in text_of(pilot))
        await pilot.press("j", "enter")
        await until(pilot, lambda: app_of(pilot).recipe == "vector")
        await answered(pilot, "installer")
        assert f", {len(library.search('installer', recipe='vector'))} chunks found, " in status_of(pilot)
        assert text_of(pilot).startswith(" vector ❯ installer")

    play(SennitApp(library, recipe="keyword", query="installer"), script)


def test_nothing_found_is_said_and_clearing_the_question_begins_anew(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await write(pilot, "xylophone")
        await answered(pilot)
        assert "Nothing found." in text_of(pilot)
        assert status_of(pilot).startswith("0 characters, 0 chunks found, ")
        await pilot.press("ctrl+u")
        await until(pilot, lambda: app_of(pilot).answer is None)
        assert "Ask anything" in text_of(pilot)
        assert status_of(pilot) == ""

    play(SennitApp(library, recipe="keyword"), script)


def test_the_answer_to_an_older_question_is_ignored(folder: Path) -> None:
    gate = Gate()
    with gated(folder, gate) as db:

        async def script(pilot: Pilot[None]) -> None:
            await write(pilot, "slow installer")
            await until(pilot, gate.asked.is_set)
            await until(pilot, lambda: "searching…" in text_of(pilot))
            await pilot.press("ctrl+u")
            await write(pilot, "calendar")
            await answered(pilot, "calendar")
            newer = text_of(pilot)
            gate.open.set()
            await until(pilot, gate.done.is_set)
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
            assert text_of(pilot) == newer

        play(SennitApp(db, recipe="gated"), script)


def test_a_source_that_does_not_answer_is_named_and_the_others_answer(folder: Path) -> None:
    with gated(folder, Broken()) as db:

        async def script(pilot: Pilot[None]) -> None:
            await answered(pilot, "installer")
            assert ", 1 chunk found, " in status_of(pilot)
            assert "! gate did not answer: the cable is cut [bold]here[/bold] \ufffd[31m" in status_of(pilot)
            await pilot.press("e")
            assert "the cable is cut" in text_of(pilot)

        play(SennitApp(db, recipe="gated", query="installer"), script)


def test_an_error_is_a_sentence_in_the_status_line_and_the_next_question_works(
    library: sennit.Database,
) -> None:
    async def script(pilot: Pilot[None]) -> None:
        app_of(pilot).query_one(Query).value = "w" * 100_001
        await until(pilot, lambda: "Error:" in status_of(pilot))
        assert "Error: The query has 100,001 characters" in status_of(pilot)
        assert "Traceback" not in text_of(pilot)
        app_of(pilot).query_one(Query).value = "installer"
        await answered(pilot)
        assert "Error" not in text_of(pilot)

    play(SennitApp(library, recipe="keyword"), script)


def test_what_should_not_happen_is_a_sentence_too(
    library: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(library, "search", broken)

    async def script(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "KeyError: 'oops'" in status_of(pilot))
        assert "Traceback" not in text_of(pilot)

    play(SennitApp(library, recipe="keyword", query="installer"), script)
