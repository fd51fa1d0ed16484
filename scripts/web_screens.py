"""Draw the screens of docs/reference/web.md: the documentation and some code of sennit, and a conversation with facts.

python scripts/web_screens.py [NAME …] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import sennit
from sennit import Caller, Fact

ROOT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = ROOT / "docs" / "img"
PROGRAM: Final = Path(sys.executable).with_name("sennit")
SIZES: Final = {"wide": (1280, 800), "phone": (390, 844)}
QUESTION: Final = "how are scores of keyword and vector search fused?"


def make_database(folder: Path) -> Path:
    """Index the documentation and a part of the code, and add what two people said and what is known from it."""
    ignore = shutil.ignore_patterns("img", "_static", "*.py")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=ignore)
    shutil.copytree(
        ROOT / "src" / "sennit" / "ranking", folder / "ranking", ignore=shutil.ignore_patterns("__pycache__")
    )
    samples = ROOT / "src" / "sennit" / "samples"
    shutil.copy(samples / "conversation.txt", folder)
    path = folder / ".sennit"
    with contextlib.chdir(folder), sennit.open(path, privacy__open=True) as db:
        db.index(["docs", "ranking"])
        db.add([json.loads(line) for line in (samples / "demo.jsonl").read_text().splitlines()])
        db.index("conversation.txt", collection="history")
        at = datetime(2026, 3, 1, tzinfo=UTC)
        db.add_facts(
            [
                Fact(id="f1", subject="Rajesh", relation="lives in", object="Pune", timestamp=at),
                Fact(subject="Rajesh", relation="married to", object="Priya", timestamp=at),
                Fact(subject="Priya", relation="has a sister", object="Meera", timestamp=at),
                Fact(
                    subject="Rajesh", relation="planning", object="Goa", text="a trip in March", timestamp=at
                ),
            ]
        )
        moved = datetime(2026, 9, 1, tzinfo=UTC)
        db.add_facts(
            [
                Fact(
                    id="f2",
                    subject="Rajesh",
                    relation="lives in",
                    object="Mumbai",
                    timestamp=moved,
                    supersedes=["f1"],
                )
            ]
        )
        db.admin.tokens.issue("assistant", Caller(name="assistant"))
        db.admin.tokens.issue("family", Caller(clearance="private", scopes={"family"}, name="family"))
        db.wait()
    return path


@contextlib.contextmanager
def run_page(database: Path, *options: str) -> Iterator[str]:
    """Run `sennit open`, and yield the address with the one-time code."""
    command = [str(PROGRAM), "open", "--no-browser", "--json", "--port", "0", "--db", str(database), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=database.parent) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def open_browser(playwright: Any) -> Browser:
    """Start the Chromium of the system."""
    path = next(
        found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))
    )
    return playwright.chromium.launch(
        executable_path=path, args=["--no-sandbox", "--force-color-profile=srgb"]
    )


def draw_search(page: Page) -> None:
    page.get_by_label("Search", exact=True).fill(QUESTION)
    page.locator("article").first.wait_for()
    page.locator(".flow[data-drawn]").wait_for()
    page.locator("article").nth(1).hover()


def draw_why(page: Page) -> None:
    draw_search(page)
    page.locator(".flow-box").focus()
    for key in ("Home", "PageDown", "ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.locator(".changes li").first.wait_for()


def draw_tune(page: Page) -> None:
    visit(page, "tune?recipe=memory&q=" + "what+does+Priya+say+about+Goa")
    page.locator(".ranking li").first.wait_for()
    page.get_by_label("weight of vector").fill("0.4")
    page.locator(".badge.good").wait_for()


def draw_prompt(page: Page) -> None:
    visit(page, "prompt?kind=plan&q=" + "how+does+rank_fusion.py+compute+RRF")
    page.locator(".budget, .problem").first.wait_for()


def draw_memory(page: Page) -> None:
    visit(page, "memory?entity=Rajesh")
    page.locator(".fact").first.wait_for()
    page.locator(".row-line button").first.click()
    page.locator(".turn").first.wait_for()


def draw_state(page: Page) -> None:
    visit(page, "state")
    page.locator(".chart").wait_for()


def visit(page: Page, address: str) -> None:
    """Go to a view of the page."""
    page.goto(f"{page.url.partition('#')[0]}#/{address}")


SCREENS: Final = {
    "search": draw_search,
    "why": draw_why,
    "tune": draw_tune,
    "prompt": draw_prompt,
    "memory": draw_memory,
    "state": draw_state,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SCREENS))
    parser.add_argument("--out", type=Path, default=IMAGES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        database = make_database(Path(folder))
        with run_page(database, "--owner") as address:
            browser = open_browser(playwright)
            context = browser.new_context()
            page = context.new_page()
            page.on("console", lambda message: print(f"console: {message.text}"))
            page.on("pageerror", lambda error: print(f"error: {error}"))
            page.goto(address)
            page.get_by_role("searchbox").wait_for()
            for name in options.names:
                for size, (width, height) in SIZES.items():
                    page.set_viewport_size({"width": width, "height": height})
                    for theme in ("light", "dark"):
                        page.emulate_media(color_scheme=theme)
                        page.goto(address.partition("#")[0] + "#/search")
                        page.reload()
                        page.locator("nav").wait_for()
                        SCREENS[name](page)
                        page.wait_for_timeout(150)
                        picture = Image.open(io.BytesIO(page.screenshot()))
                        target = options.out / f"web-{name}-{size}-{theme}.png"
                        picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
                            target, optimize=True
                        )
            browser.close()


if __name__ == "__main__":
    main()
