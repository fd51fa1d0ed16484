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
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import sennit
from sennit import Caller, Fact, Turn

ROOT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = ROOT / "docs" / "img"
PROGRAM: Final = Path(sys.executable).with_name("sennit")
SIZES: Final = {"wide": (1280, 800), "phone": (390, 844)}
QUESTION: Final = "how are scores of keyword and vector search fused?"
FREQUENT_COLOURS: Final = 176
"""Colours of a picture that are kept exactly."""
JUDGED: Final = ("why is my result empty", "which embedding models are there", "how do I filter by date")


def fact(subject: str, relation: str, object_: str, month: int, id_: str = "", supersedes: str = "") -> Fact:
    """A fact from the first of a month of 2026 on."""
    former = (supersedes,) if supersedes else ()
    return Fact(
        id=id_,
        subject=subject,
        relation=relation,
        object=object_,
        timestamp=datetime(2026, month, 1, tzinfo=UTC),
        supersedes=former,
    )


FACTS: Final = [
    fact("Rajesh", "lives in", "Pune", 2, "f1"),
    fact("Rajesh", "married to", "Priya", 2),
    fact("Priya", "sister of", "Meera", 2),
    fact("Meera", "lives in", "Panaji", 3),
    fact("Rajesh", "works at", "Kiln Labs", 2, "f3"),
    fact("Rajesh", "plans a trip to", "Goa", 3),
    fact("Priya", "works at", "City Hospital", 3),
    fact("Rajesh", "lives in", "Mumbai", 9, "f2", "f1"),
    fact("Rajesh", "works at", "Harbour Studio", 10, "f4", "f3"),
    fact("Harbour Studio", "is in", "Mumbai", 10),
    fact("Panaji", "is in", "Goa", 3),
]

SAID: Final = {
    "2026-03 trip": (3, ["Rajesh: Meera says Panaji is quiet in March", "Priya: Then let us book Goa before the fares rise", "Rajesh: I asked for the second week off"]),
    "2026-06 move": (6, ["Priya: City Hospital can transfer me to Mumbai", "Rajesh: Kiln Labs has no office there, I would have to look around", "Priya: Harbour Studio was hiring, ask Anil"]),
    "2026-09 flat": (9, ["Rajesh: The flat in Mumbai has a study and a balcony", "Priya: Sign it, the lease begins on the first"]),
}  # fmt: skip

FIND_ADMISSIBLE: Final = """async (query) => {
  const { post } = await import('/web/api.js');
  const { trace } = await post('/v1/search', { query, explain: true });
  for (const { id } of trace.candidates.filter((one) => !one.kept)) {
    if ((await post('/v1/why', { query, reference: id })).changes.length >= 3) return id;
  }
}"""
"""The first candidate that was dropped and that several kinds of change admit."""

EPISODES: Final = {
    "fusion constants": [
        "how does rank_fusion.py compute RRF",
        "add a weight to RRF in rank_fusion.py",
        "test the weighted RRF against Weighted",
        "explain mmr in diversity.py",
    ],
    "relevance": ["how is relevance estimated", "what does calibration.py call lift"],
}


def make_turns() -> list[Turn]:
    """What two people said over months."""
    return [
        Turn(
            session=session,
            speaker=line.partition(": ")[0],
            text=line.partition(": ")[2],
            timestamp=datetime(2026, month, 12, 18, minute, tzinfo=UTC),
        )
        for session, (month, lines) in SAID.items()
        for minute, line in enumerate(lines)
    ]


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
        db.add_turns(make_turns())
        for one in FACTS:
            db.add_facts([one])
        for episode, tasks in EPISODES.items():
            for task in tasks:
                db.plan(task, episode=episode, max_tokens=4000)
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
    search(page, QUESTION)
    if (page.viewport_size or {})["width"] > 700:
        page.locator("article").nth(1).hover()


def search(page: Page, query: str) -> None:
    with page.expect_response("**/v1/search"):
        page.get_by_label("Search", exact=True).fill(query)
    page.locator(".flow[data-drawn]").wait_for()
    page.wait_for_timeout(100)


def draw_why(page: Page) -> None:
    record = page.evaluate(FIND_ADMISSIBLE, QUESTION)
    visit(page, f"search?tab=why&q={quote(QUESTION)}&record={quote(record)}")
    page.locator(".changes li").first.wait_for()
    show_panel(page)


def draw_facts(page: Page) -> None:
    visit(page, "search?tab=facts&recipe=memory&q=" + "where+does+Rajesh+live")
    page.locator(".fact").first.wait_for()
    show_panel(page)


def show_panel(page: Page) -> None:
    """On a phone, the panel is below the results."""
    if (page.viewport_size or {})["width"] < 700:
        page.locator(".inside-view").evaluate("(one) => scrollTo(0, one.offsetTop - 96)")


def draw_tune(page: Page) -> None:
    visit(page, "tune?q=" + JUDGED[0].replace(" ", "+"))
    page.locator(".ranking li").first.wait_for()
    page.get_by_label("weight of keyword").fill("1.4")
    page.locator(".badge.good").wait_for()
    page.locator(".ndcg").wait_for()


def draw_prompt(page: Page) -> None:
    visit(page, "prompt?kind=plan&q=" + "how+does+rank_fusion.py+compute+RRF")
    page.locator(".budget, .problem").first.wait_for()


def draw_episodes(page: Page) -> None:
    visit(page, "prompt?episode=fusion+constants&turn=3")
    page.locator(".budget").wait_for()


def draw_memory(page: Page) -> None:
    visit(page, "memory?entity=Rajesh&session=2026-06+move")
    page.locator(".fact").first.wait_for()
    page.locator(".turn").first.wait_for()


def draw_state(page: Page) -> None:
    visit(page, "state")
    page.locator(".chart").first.wait_for()


def visit(page: Page, address: str) -> None:
    """Go to a view of the page."""
    page.goto(f"{page.url.partition('#')[0]}#/{address}")


def judge(page: Page) -> None:
    """Grade the first results of some queries, so that there is something to measure."""
    for query in JUDGED:
        search(page, query)
        for at, grade in enumerate("310"):
            article = page.locator("article").nth(at)
            article.focus()
            page.keyboard.press(grade)
            article.locator("[aria-pressed=true]").wait_for()


SCREENS: Final = {
    "search": draw_search,
    "why": draw_why,
    "facts": draw_facts,
    "tune": draw_tune,
    "prompt": draw_prompt,
    "episodes": draw_episodes,
    "memory": draw_memory,
    "state": draw_state,
}


def weigh_colour(counted: tuple[int, tuple[int, int, int]]) -> int:
    """How much a colour counts: a vivid one more, because the dots that tell the sources apart are small."""
    pixels, channels = counted
    return pixels * (1 + max(channels) - min(channels))


def reduce_colours(picture: Image.Image) -> Image.Image:
    """Return the picture with 256 colours: those that count most as they are, so that no surface is tinted."""
    counted: Any = picture.getcolors(1 << 24)
    frequent = [colour for _, colour in sorted(counted, key=weigh_colour, reverse=True)[:FREQUENT_COLOURS]]
    others = [colour for _, colour in counted if colour not in set(frequent)]
    palette = Image.new("P", (1, 1))
    if others:
        rare = Image.new("RGB", (len(others), 1))
        rare.putdata(others)
        spread = rare.quantize(256 - FREQUENT_COLOURS, Image.Quantize.MEDIANCUT).getpalette() or []
    else:
        spread = []
    palette.putpalette([channel for colour in frequent for channel in colour] + spread)
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


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
            judge(page)
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
                        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
                        reduce_colours(picture).save(
                            options.out / f"web-{name}-{size}-{theme}.png", optimize=True
                        )
            browser.close()


if __name__ == "__main__":
    main()
