"""The choice of a project in the terminal interface."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

import sennit
from sennit.apps.tui.app import SennitApp
from sennit.apps.tui.dialogs import ProjectDialog

from .harness import get_app, get_status, get_text, run_app, wait_for_results, wait_until, write_files


def test_a_project_is_chosen_with_a_key_and_limits_searches(tmp_path: Path) -> None:
    for name in ("bank", "shop"):
        write_files(tmp_path / name, {"notes.md": f"# Shipping\n\nThe {name} ships on Fridays.\n"})

    async def script(pilot: Pilot[None]) -> None:
        app = get_app(pilot)
        await wait_for_results(pilot, "ships")

        def shown() -> set[str]:
            assert app.result_list is not None
            return {Path(str(item.path)).parent.name for item in app.result_list.items}

        assert shown() == {"bank"}
        assert "default in bank ❯" in get_text(pilot)
        await pilot.press("p")
        await wait_until(pilot, lambda: isinstance(app.screen, ProjectDialog))
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: shown() == {"shop"})
        assert "default in shop ❯" in get_text(pilot)
        await pilot.press("ctrl+p")
        await wait_until(pilot, lambda: isinstance(app.screen, ProjectDialog))
        await pilot.press("g", "enter")
        await wait_until(pilot, lambda: shown() == {"bank", "shop"})
        assert "default ❯" in get_text(pilot)

    with sennit.open(tmp_path / "db") as db:
        db.index([tmp_path / "bank", tmp_path / "shop"])
        run_app(SennitApp(db, recipe="default", project="bank", query="ships"), script)


def test_without_indexed_folders_there_is_no_project_to_choose() -> None:
    async def script(pilot: Pilot[None]) -> None:
        await pilot.press("ctrl+p")
        await wait_until(pilot, lambda: "no folder is indexed" in get_status(pilot))

    with sennit.open(":memory:") as db:
        run_app(SennitApp(db, recipe="default"), script)
