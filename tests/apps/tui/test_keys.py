"""Everything by the keyboard: moving, reading, explaining, opening, copying, leaving."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot

import sennit
from sennit.apps.tui.app import Query, SennitApp

from .stage import SIZE, WIDE, answered, app_of, panes, play, status_of, text_of, until, write


def chosen(pilot: Pilot[None]) -> int:
    results, _, _ = panes(pilot)
    return results.item.rank if results.item else 0


@pytest.mark.parametrize(
    ("keys", "rank"),
    [
        (["j"], 2),
        (["down", "down"], 3),
        (["j", "j", "k"], 2),
        (["k"], 1),
        (["G"], 6),
        (["end", "home"], 1),
        (["G", "g"], 1),
        (["pagedown"], 5),
        (["space", "pageup"], 1),
        (["G", "down"], 6),
    ],
)
def test_results_are_moved_through(library: sennit.Database, keys: list[str], rank: int) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "copy")
        await pilot.press(*keys)
        assert chosen(pilot) == rank
        await answered(pilot, "copy")
        results, preview, _ = panes(pilot)
        assert preview.page is not None
        assert preview.page.item is results.item
        assert f"{rank} of 6" in text_of(pilot)
        assert f"▌  {rank} " in text_of(pilot), "the chosen result is in sight"

    play(SennitApp(library, recipe="both", query="copy"), script)


def test_results_are_moved_through_while_one_writes(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await write(pilot, "copy")
        await answered(pilot)
        await pilot.press("down", "down", "up")
        assert chosen(pilot) == 2
        assert app_of(pilot).query_one(Query).has_focus

    play(SennitApp(library, recipe="both"), script)


def test_enter_reads_and_escape_goes_back(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        query = app_of(pilot).query_one(Query)
        results, preview, _ = panes(pilot)
        await write(pilot, "copy")
        await pilot.press("enter")
        assert results.has_focus
        await answered(pilot, "copy")
        await pilot.press("enter")
        assert preview.has_focus
        await pilot.press("escape")
        assert results.has_focus
        await pilot.press("escape")
        assert query.has_focus
        await pilot.press("escape", "slash")
        assert query.has_focus
        assert query.value == "copy"

    play(SennitApp(library, recipe="both"), script)


def test_tab_goes_round_the_panes(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "copy")
        seen = []
        for _ in range(4):
            await pilot.press("tab")
            assert pilot.app.focused is not None
            seen.append(pilot.app.focused.id)
        assert seen == ["preview", "query", "results", "preview"]
        await pilot.press("shift+tab")
        results, _, _ = panes(pilot)
        assert results.has_focus

    play(SennitApp(library, recipe="both", query="copy"), script)


def test_the_preview_begins_at_the_result_and_scrolls(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "calendar")
        _, preview, _ = panes(pilot)
        await until(pilot, lambda: "19 ▌ ## Restore a file" in text_of(pilot))
        before = preview.scroll_offset.y
        assert before > 0
        await pilot.press("enter", "g")
        await until(pilot, lambda: preview.scroll_offset.y == 0)
        await pilot.press("j")
        await until(pilot, lambda: preview.scroll_offset.y == 1)
        await pilot.press("G")
        await until(pilot, lambda: preview.scroll_offset.y == preview.max_scroll_y)

    play(SennitApp(library, recipe="keyword", query="calendar"), script)


def test_of_a_long_result_the_part_that_answers_is_in_sight(library: sennit.Database, folder: Path) -> None:
    lines = [f"    step_{number} = {number}" for number in range(50)]
    lines[45] = "    ring = xylophone(xylophone)"
    (folder / "src" / "long.py").write_text("\n".join(["def play():", *lines]) + "\n")
    library.index(folder / "src")

    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "xylophone")
        await until(pilot, lambda: "47 ▌     ring = xylophone(xylophone)" in text_of(pilot))

    play(SennitApp(library, recipe="keyword", query="xylophone"), script)


@pytest.mark.parametrize("size", [SIZE, WIDE])
def test_explain_says_what_every_source_said(library: sennit.Database, size: tuple[int, int]) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "calendar")
        assert "why rank" not in text_of(pilot)
        await pilot.press("e")
        await until(pilot, lambda: "why rank 1" in text_of(pilot))
        hit = library.search("calendar", recipe="both", explain=True)[0]
        assert hit.explanation is not None
        rows = text_of(pilot).splitlines()
        for standing in hit.explanation.standings:
            row = next(row for row in rows if f" {standing.source} " in row)
            assert f"{standing.share:.4f}" in row
            assert f"{standing.score:.4f}" in row
        assert any("fused" in row and f"{hit.explanation.fused:.4f}" in row for row in rows)
        await pilot.press("j")
        assert "why rank 2" in text_of(pilot)
        await pilot.press("e")
        await until(pilot, lambda: "why rank" not in text_of(pilot))

    play(SennitApp(library, recipe="both", query="calendar"), script, size)


def test_the_citation_is_copied_as_it_is(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "calendar")
        await pilot.press("y")
        citation = library.search("calendar", recipe="both")[0].citation
        assert pilot.app.clipboard == citation
        assert status_of(pilot) == f"Copied {citation}"

    play(SennitApp(library, recipe="both", query="calendar"), script)


def test_opening_says_why_it_cannot(library: sennit.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    library.add([sennit.Record(id="note", text="a xylophone")])
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)

    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "xylophone")
        await pilot.press("o")
        assert "There is no file to open for note." in status_of(pilot)
        await pilot.press("slash", "ctrl+u")
        await write(pilot, "calendar")
        await answered(pilot)
        await pilot.press("escape", "o")
        assert "No editor is set. Say which one: export EDITOR=vim" in status_of(pilot)

    play(SennitApp(library, recipe="keyword", query="xylophone"), script)


@pytest.mark.parametrize("key", ["question_mark", "f1"])
def test_help_lists_the_keys_and_goes_away(library: sennit.Database, key: str) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "copy")
        await pilot.press(key)
        assert "open the file in $EDITOR" in text_of(pilot)
        await pilot.press("escape")
        assert "open the file in $EDITOR" not in text_of(pilot)
        results, _, _ = panes(pilot)
        assert results.has_focus

    play(SennitApp(library, recipe="both", query="copy"), script)


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
def test_a_key_leaves(library: sennit.Database, key: str) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "copy")
        await pilot.press(key)
        await until(pilot, lambda: not pilot.app.is_running)

    app = SennitApp(library, recipe="both", query="copy")
    play(app, script)
    assert app.return_code == 0


def test_letters_are_letters_while_one_writes(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await write(pilot, "query jokers")
        await pilot.press("question_mark", "slash")
        assert app_of(pilot).query_one(Query).value == "query jokers?/"

    play(SennitApp(library, recipe="both"), script)


@pytest.mark.parametrize("size", [(40, 10), (20, 6), (200, 60), (99, 24), (100, 24)])
def test_the_screen_takes_any_size(library: sennit.Database, size: tuple[int, int]) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "calendar")
        await pilot.resize_terminal(*size)
        await until(pilot, lambda: len(text_of(pilot).splitlines()) <= size[1])
        await pilot.press("e", "j", "enter", "escape", "r", "escape", "question_mark", "escape")
        await pilot.resize_terminal(*SIZE)
        await pilot.press("e", "g")
        await until(pilot, lambda: "19 ▌ ## Restore a file" in text_of(pilot))
        assert chosen(pilot) == 1

    play(SennitApp(library, recipe="both", query="calendar"), script)


def test_keys_typed_ahead_go_where_they_were_meant_to(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await answered(pilot, "copy")
        query = app_of(pilot).query_one(Query)
        # All at once, as a slow line delivers them.
        for key in ("slash", *"xyz", "ctrl+u", *"quarry", *["backspace"] * 4, *"ery", "enter", "j"):
            character = key if len(key) == 1 else None
            pilot.app.post_message(Key(key, character))
        await until(pilot, lambda: query.value == "query" and not query.has_focus)
        await answered(pilot, "query")
        assert pilot.app.is_running, "the q of the query has not ended it"

    play(SennitApp(library, recipe="both", query="copy"), script)


def test_leaving_in_the_middle_of_a_question_is_quiet(library: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        for key in ("c", "o", "p", "y", "ctrl+c"):
            pilot.app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: not pilot.app.is_running)

    for _ in range(5):
        app = SennitApp(library, recipe="both")
        play(app, script)
        assert app.return_code == 0
