"""The keys: move, read, explain, open, copy and quit."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot

import sennit
from sennit.apps.tui.app import QueryInput, SennitApp

from .harness import (
    SMALL,
    WIDE,
    get_app,
    get_panes,
    get_status,
    get_text,
    run_app,
    type_text,
    wait_for_results,
    wait_until,
)


def selected_rank(pilot: Pilot[None]) -> int:
    results, _, _ = get_panes(pilot)
    return results.item.rank if results.item else 0


@pytest.mark.parametrize(
    ("keys", "rank"),
    [
        (["j"], 2),
        (["down", "down"], 3),
        (["j", "j", "k"], 2),
        (["k"], 1),
        (["G"], 9),
        (["end", "home"], 1),
        (["G", "g"], 1),
        (["pagedown"], 5),
        (["space", "pageup"], 1),
        (["G", "down"], 9),
    ],
)
def test_keys_move_through_results(database: sennit.Database, keys: list[str], rank: int) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        await pilot.press(*keys)
        assert selected_rank(pilot) == rank
        await wait_for_results(pilot, "copy")
        results, preview, _ = get_panes(pilot)
        assert preview.content is not None
        assert preview.content.item is results.item
        assert f"{rank} of 9" in get_text(pilot)
        assert f"▌  {rank} " in get_text(pilot), "the selected result is visible"

    run_app(SennitApp(database, recipe="both", query="copy"), script)


def test_arrow_keys_move_through_results_while_typing(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await type_text(pilot, "copy")
        await wait_for_results(pilot)
        await pilot.press("down", "down", "up")
        assert selected_rank(pilot) == 2
        assert get_app(pilot).query_one(QueryInput).has_focus

    run_app(SennitApp(database, recipe="both"), script)


def test_enter_opens_the_preview_and_escape_goes_back(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        query = get_app(pilot).query_one(QueryInput)
        results, preview, _ = get_panes(pilot)
        await type_text(pilot, "copy")
        await pilot.press("enter")
        assert results.has_focus
        await wait_for_results(pilot, "copy")
        await pilot.press("enter")
        assert preview.has_focus
        await pilot.press("escape")
        assert results.has_focus
        await pilot.press("escape")
        assert query.has_focus
        assert query.value == "copy"
        await pilot.press("escape")
        assert query.has_focus
        assert query.value == ""
        await pilot.press("escape", "escape")
        assert get_app(pilot).is_running, "no number of escapes quits"

    run_app(SennitApp(database, recipe="both"), script)


def test_tab_cycles_through_the_panes(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        focused = []
        for _ in range(4):
            await pilot.press("tab")
            assert pilot.app.focused is not None
            focused.append(pilot.app.focused.id)
        assert focused == ["preview", "query", "results", "preview"]
        await pilot.press("shift+tab")
        results, _, _ = get_panes(pilot)
        assert results.has_focus

    run_app(SennitApp(database, recipe="both", query="copy"), script)


def test_preview_starts_at_the_result_and_scrolls(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "calendar")
        _, preview, _ = get_panes(pilot)
        await wait_until(pilot, lambda: "19 ▌ ## Restore a file" in get_text(pilot))
        before = preview.scroll_offset.y
        assert before > 0
        await pilot.press("enter", "g")
        await wait_until(pilot, lambda: preview.scroll_offset.y == 0)
        await pilot.press("j")
        await wait_until(pilot, lambda: preview.scroll_offset.y == 1)
        await pilot.press("G")
        await wait_until(pilot, lambda: preview.scroll_offset.y == preview.max_scroll_y)

    run_app(SennitApp(database, recipe="keyword", query="calendar"), script)


def test_preview_of_a_long_result_shows_the_matching_part(database: sennit.Database, folder: Path) -> None:
    lines = [f"    step_{number} = {number}" for number in range(50)]
    lines[45] = "    ring = xylophone(xylophone)"
    (folder / "src" / "long.py").write_text("\n".join(["def run_app():", *lines]) + "\n")
    database.index(folder / "src")

    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "xylophone")
        await wait_until(pilot, lambda: "47 ▌     ring = xylophone(xylophone)" in get_text(pilot))

    run_app(SennitApp(database, recipe="keyword", query="xylophone"), script)


@pytest.mark.parametrize("size", [SMALL, WIDE])
def test_explain_shows_scores_of_every_source(database: sennit.Database, size: tuple[int, int]) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "calendar")
        assert "why rank" not in get_text(pilot)
        await pilot.press("e")
        await wait_until(pilot, lambda: "why rank 1" in get_text(pilot))
        hit = database.search("calendar", recipe="both", explain=True)[0]
        assert hit.explanation is not None
        rows = get_text(pilot).splitlines()
        for source_score in hit.explanation.source_scores:
            row = next(row for row in rows if f" {source_score.source} " in row)
            assert f"{source_score.share:.4f}" in row
            assert f"{source_score.score:.4f}" in row
        assert any("fused" in row and f"{hit.explanation.fused:.4f}" in row for row in rows)
        await pilot.press("j")
        assert "why rank 2" in get_text(pilot)
        await pilot.press("e")
        await wait_until(pilot, lambda: "why rank" not in get_text(pilot))

    run_app(SennitApp(database, recipe="both", query="calendar"), script, size)


def test_copy_puts_the_citation_on_the_clipboard(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "calendar")
        await pilot.press("y")
        citation = database.search("calendar", recipe="both")[0].citation
        assert pilot.app.clipboard == citation
        assert get_status(pilot) == f"Copied {citation}"

    run_app(SennitApp(database, recipe="both", query="calendar"), script)


def test_open_explains_why_it_cannot(database: sennit.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.add([sennit.Record(id="note", text="a xylophone")])
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)

    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "xylophone")
        await pilot.press("o")
        assert "There is no file to open for note." in get_status(pilot)
        await pilot.press("slash", "ctrl+u")
        await type_text(pilot, "calendar")
        await wait_for_results(pilot)
        await pilot.press("enter", "o")
        assert "No editor is set. Set one, for example: export EDITOR=vim" in get_status(pilot)

    run_app(SennitApp(database, recipe="keyword", query="xylophone"), script)


@pytest.mark.parametrize("key", ["question_mark", "f1"])
def test_key_help_opens_and_closes(database: sennit.Database, key: str) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        await pilot.press(key)
        assert "open the file in $EDITOR" in get_text(pilot)
        await pilot.press("escape")
        assert "open the file in $EDITOR" not in get_text(pilot)
        results, _, _ = get_panes(pilot)
        assert results.has_focus

    run_app(SennitApp(database, recipe="both", query="copy"), script)


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
def test_quit_keys(database: sennit.Database, key: str) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        await pilot.press(key)
        await wait_until(pilot, lambda: not pilot.app.is_running)

    app = SennitApp(database, recipe="both", query="copy")
    run_app(app, script)
    assert app.return_code == 0


def test_letter_keys_are_text_while_typing(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await type_text(pilot, "query jokers")
        await pilot.press("question_mark", "slash")
        assert get_app(pilot).query_one(QueryInput).value == "query jokers?/"

    run_app(SennitApp(database, recipe="both"), script)


@pytest.mark.parametrize("size", [(40, 10), (20, 6), (200, 60), (99, 24), (100, 24)])
def test_screen_works_at_any_size(database: sennit.Database, size: tuple[int, int]) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "calendar")
        await pilot.resize_terminal(*size)
        await wait_until(pilot, lambda: len(get_text(pilot).splitlines()) <= size[1])
        await pilot.press("e", "j", "enter", "escape", "r", "escape", "question_mark", "escape")
        await pilot.resize_terminal(*SMALL)
        await pilot.press("e", "g")
        await wait_until(pilot, lambda: "19 ▌ ## Restore a file" in get_text(pilot))
        assert selected_rank(pilot) == 1

    run_app(SennitApp(database, recipe="both", query="calendar"), script)


def test_keys_typed_ahead_reach_the_right_pane(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        query = get_app(pilot).query_one(QueryInput)
        # All at once, as a slow connection delivers them.
        for key in ("slash", *"xyz", "ctrl+u", *"quarry", *["backspace"] * 4, *"ery", "enter", "j"):
            character = key if len(key) == 1 else None
            pilot.app.post_message(Key(key, character))
        await wait_until(pilot, lambda: query.value == "query" and not query.has_focus)
        await wait_for_results(pilot, "query")
        assert pilot.app.is_running, "the q of the query has not quit the app"

    run_app(SennitApp(database, recipe="both", query="copy"), script)


def test_quitting_while_typing_causes_no_error(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        for key in ("c", "o", "p", "y", "ctrl+c"):
            pilot.app.post_message(Key(key, key if len(key) == 1 else None))
        await wait_until(pilot, lambda: not pilot.app.is_running)

    for _ in range(5):
        app = SennitApp(database, recipe="both")
        run_app(app, script)
        assert app.return_code == 0


def test_plus_and_minus_record_feedback(database: sennit.Database) -> None:
    async def script(pilot: Pilot[None]) -> None:
        await wait_for_results(pilot, "copy")
        await pilot.press("j", "plus")
        await wait_until(pilot, lambda: "helped" in get_status(pilot))
        await pilot.press("k", "minus")
        await wait_until(pilot, lambda: "is wrong" in get_status(pilot))

    database.feedback.forget()
    run_app(SennitApp(database, recipe="both", query="copy"), script)
    (found,) = database.feedback.read()
    assert found.query.query == "copy"
    assert [(event.action_name, event.position) for event in found.events] == [("click", 2), ("reject", 1)]
    assert database.feedback.forget() == 1
