"""Draw the screens of docs/reference/tui.md: the documentation of sennit, searched in the terminal interface.

python scripts/tui_screens.py
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

import sennit
from sennit.apps.tui.app import SennitApp
from sennit.apps.tui.preview import PreviewPane

ROOT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = ROOT / "docs" / "img"

SCREENS: Final = {
    "results": ((120, 36), "default", "how are vectors stored", []),
    "explain": ((120, 36), "default", "how are vectors stored", ["j", "e"]),
    "grep": ((120, 36), "grep", "bm25", ["j", "e"]),
    "narrow": ((80, 24), "default", "how are vectors stored", []),
}
"""Size, recipe, query, and the keys to press."""

_WEB_FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", re.S)


async def draw(db: sennit.Database, name: str) -> None:
    """Draw one screen as an SVG file that loads nothing from the network."""
    size, recipe, query, keys = SCREENS[name]
    app = SennitApp(db, recipe=recipe, query=query)
    async with app.run_test(size=size) as pilot:
        while app.query_one(PreviewPane).content is None:
            await pilot.pause(0.05)
        await pilot.press(*keys)
        await app.workers.wait_for_complete()
        await pilot.pause(0.2)
        picture = _WEB_FONTS.sub("", app.export_screenshot(title="sennit tui"))
    picture = picture.replace("Fira Code", "ui-monospace, DejaVu Sans Mono, Menlo, Consolas")
    picture = re.sub(r"terminal-\d+-", "t-", picture)
    (IMAGES / f"tui-{name}.svg").write_text(picture, encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            ROOT / "docs", Path(folder) / "docs", ignore=shutil.ignore_patterns("img", "_static", "*.py")
        )
        os.chdir(folder)
        draw_all(sennit.open(".sennit"))


def draw_all(database: sennit.Database) -> None:
    """Draw every screen, from the files in the current folder."""
    with database as db:
        db.index("docs")
        db.search("vectors")  # load the model first, so that the status line shows a usual duration
        for name in SCREENS:
            asyncio.run(draw(db, name))


if __name__ == "__main__":
    main()
