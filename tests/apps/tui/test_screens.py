"""The main screens, cell by cell, as they were when a person looked at them."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import sennit
from sennit.apps.tui.app import Query, SennitApp
from sennit.apps.tui.windows import Recipes

from .gates import Broken, gated
from .stage import SIZE, WIDE, answered, app_of, compare, play, rows_of, status_of, until

QUESTION = "how do I restore a file"


@pytest.mark.parametrize(("size", "form"), [(SIZE, "80x24"), (WIDE, "120x40")])
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("results", []),
        ("reading", ["enter"]),
        ("explain", ["j", "e"]),
        ("keys", ["question_mark"]),
    ],
)
def test_an_answer_looks_as_it_did(
    library: sennit.Database, name: str, keys: list[str], size: tuple[int, int], form: str
) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, QUESTION)
        await pilot.press(*keys)
        await answered(pilot, QUESTION)
        await compare(pilot, f"{name}-{form}")

    play(SennitApp(library, recipe="both", query=QUESTION), script, size)


@pytest.mark.parametrize(("size", "form"), [(SIZE, "80x24"), (WIDE, "120x40")])
def test_the_choice_of_a_recipe_looks_as_it_did(
    library: sennit.Database, size: tuple[int, int], form: str
) -> None:
    choices = [
        ("default", "keyword + vector", "Keyword and meaning together, for anything."),
        ("keyword", "keyword", "Exact words only."),
        (
            "own",
            "keyword + vector + a source of a deployment's own",
            "Recipes of sennit.toml stand here too.",
        ),
    ]

    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, QUESTION)
        pilot.app.push_screen(Recipes(choices, "keyword"))
        await compare(pilot, f"recipes-{form}")

    play(SennitApp(library, recipe="both", query=QUESTION), script, size)


@pytest.mark.parametrize(("size", "form"), [(SIZE, "80x24"), (WIDE, "120x40")])
def test_a_grep_looks_as_it_did(library: sennit.Database, size: tuple[int, int], form: str) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "copy")
        await compare(pilot, f"grep-{form}")

    play(SennitApp(library, recipe="grep", query="copy"), script, size)


def test_the_first_screen_looks_as_it_did(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await pilot.pause()
        await compare(pilot, "empty-80x24")

    play(SennitApp(library, recipe="both"), script)


def test_nothing_found_looks_as_it_did(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "xylophone")
        await compare(pilot, "nothing-80x24")

    play(SennitApp(library, recipe="keyword", query="xylophone"), script)


def test_an_error_looks_as_it_did(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        query = app_of(pilot).query_one(Query)
        query.value = "w" * 100_001
        await until(pilot, lambda: "Error" in status_of(pilot))
        await compare(pilot, "error-80x24")

    play(SennitApp(library, recipe="both"), script)


def test_a_degraded_answer_looks_as_it_did(folder: Path) -> None:
    with gated(folder, Broken()) as db:

        async def script(pilot: Pilot[None]) -> None:
            await answered(pilot, QUESTION)
            await pilot.press("e")
            await pilot.pause()
            await compare(pilot, "degraded-80x24")

        play(SennitApp(db, recipe="gated", query=QUESTION), script)


def test_without_colours_all_is_told_by_other_means(
    library: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, QUESTION)
        drawn = {style for row in rows_of(pilot) for _, style in row}
        assert drawn <= {"", "bold", "dim", "reverse", "dim reverse"}
        bold = [part for row in rows_of(pilot) for part, style in row if style == "bold"]
        assert {"Restore", "restored", "file"} <= set(bold), "what was asked for is bold"
        assert any("▌" in part for row in rows_of(pilot) for part, _ in row), "a bar marks what is chosen"

    play(SennitApp(library, recipe="both", query=QUESTION), script)
