"""The page on databases of one kind: pages with code and tables, conversations alone, many records, none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser, Page, expect

import sennit
from apps.http.conftest import CALLERS, SampleDatabase, run_server
from apps.web.test_page import assert_accessible
from sennit import Database, Turn

pytestmark = pytest.mark.browser


RECORD_CANVAS_TEXT = """
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const width = this.measureText(text).width;
  const left = { left: x, center: x - width / 2, right: x - width }[this.textAlign];
  (this.canvas.texts ??= new Map()).set(`${text} ${x} ${y}`, { text, left, right: left + width, y });
  write.call(this, text, x, y);
};
const clear = CanvasRenderingContext2D.prototype.clearRect;
CanvasRenderingContext2D.prototype.clearRect = function (...box) {
  this.canvas.texts = new Map();
  clear.apply(this, box);
};
"""
"""Keeps with each canvas the texts that were written on it since it was cleared, and where."""


class Tab(Protocol):
    """Opens the page of a database that a function fills."""

    def __call__(self, fill: Callable[[Database], object], address: str = "") -> Page: ...


@pytest.fixture
def open_tab(browser: Browser, tmp_path: Path) -> Iterator[Tab]:
    path = tmp_path / "own.sennit"
    caller, _ = CALLERS["owner"]
    console: list[str] = []
    with contextlib.ExitStack() as stack:

        def open_page(fill: Callable[[Database], object], address: str = "") -> Page:
            with sennit.open(path) as db:
                fill(db)
                token = db.admin.tokens.issue("owner", caller, write=True)
            server = stack.enter_context(run_server(SampleDatabase(path, {})))
            context = stack.enter_context(contextlib.closing(browser.new_context()))
            page = context.new_page()
            page.on("console", lambda message: console.append(message.text))
            page.on("pageerror", lambda error: console.append(str(error)))
            page.add_init_script(RECORD_CANVAS_TEXT)
            page.add_init_script(f"sessionStorage.setItem('sennit.token', {token!r})")
            page.goto(f"{server.url}/#/{address}")
            page.locator("nav").wait_for()
            return page

        yield open_page
    assert console == []


PAGE = """# Retries

**A call** of the quince is repeated, see [the rules](rules.md).

```sh
run --quince
    --twice
```

| quince | repeated | what a \\| b means |
|---|---|---|
| 404 | no | <img src=x onerror=alert(1)> |
"""


def add_pages(db: Database) -> None:
    db.add(
        [
            {"id": "page", "title": "Retries", "text": PAGE},
            {
                "id": "code",
                "title": "quince.py",
                "text": "def quince():\n    return 1",
                "path": "quince.py",
                "lines": [7, 8],
                "metadata": {"language": "python"},
            },
        ]
    )


def test_an_excerpt_has_sentences_code_and_rows_of_tables(open_tab: Tab) -> None:
    page = open_tab(add_pages, "search?q=quince")
    excerpt = page.locator("article[data-id=page] .excerpt")
    expect(excerpt.locator("p")).to_have_text("A call of the quince is repeated, see the rules.")
    expect(excerpt.locator(".lines li")).to_have_text(["run --quince", "--twice"])
    assert excerpt.locator(".lines").inner_text() == "run --quince\n    --twice"
    expect(excerpt.locator(".table-rows li").nth(0).locator("span")).to_have_text(
        ["quince", "repeated", "what a | b means"]
    )
    expect(excerpt.locator(".table-rows li").nth(1).locator("span")).to_have_text(
        ["404", "no", "<img src=x onerror=alert(1)>"]
    )
    expect(excerpt.locator("mark")).to_have_text(["quince"] * 3)
    lines = page.locator("article[data-id=code] .lines")
    expect(lines).to_have_attribute("start", "7")
    assert lines.locator("li").nth(1).evaluate("(one) => getComputedStyle(one).counterIncrement") == "line 1"
    expect(lines.locator("mark")).to_have_text("quince")
    assert_accessible(page)


@pytest.mark.parametrize("query", ["***", "( OR - )", "\u202equince\u200b"])
def test_a_query_without_plain_words_is_answered(open_tab: Tab, query: str) -> None:
    page = open_tab(add_pages)
    page.get_by_role("searchbox").fill(query)
    page.keyboard.press("Enter")
    expect(page.locator("article .excerpt").first).to_contain_text("quince")
    expect(page.locator(".problem")).to_have_count(0)


def add_conversation(db: Database) -> None:
    db.add_turns(
        [
            Turn(
                session="trip / 1",
                speaker="Priya",
                text="Then let us book Goa before the fares rise",
                timestamp=datetime(2026, 3, 12, 18, 1, tzinfo=UTC),
            ),
            Turn(
                session="trip / 1", speaker="Rajesh", text="Goa it is. " + "I asked for the second week. " * 9
            ),
        ]
    )


def test_a_conversation_alone_is_found_and_enters_the_prompt(open_tab: Tab) -> None:
    page = open_tab(add_conversation, "search?q=book+Goa")
    said = page.locator("article", has_text="Priya")
    expect(said.locator("h2")).to_have_text("Priya: Then let us book Goa before the fares rise")
    expect(said.locator("mark")).to_have_text(["book", "Goa"])
    # A short text is its own heading.
    assert said.inner_text().count("fares rise") == 1
    expect(page.locator("article", has_text="Rajesh").locator(".excerpt")).to_contain_text("Goa it is.")
    assert_accessible(page)
    said.get_by_role("link", name="trip / 1").click()
    expect(page.locator(".turn")).to_have_count(2)
    page.get_by_role("link", name="Prompt").click()
    page.get_by_label("Task").fill("what about Goa?")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_label("Memory block", exact=True)).to_contain_text('Priya said: "Then let us book Goa')
    page.get_by_label("What").select_option("code plan")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_label("Plan", exact=True)).to_contain_text("No code belongs to this task.")
    assert_accessible(page)


def test_an_empty_database_says_what_to_do_in_every_view(open_tab: Tab) -> None:
    page = open_tab(lambda _: None, "search?q=Goa")
    expect(page.locator(".status")).to_have_text("Nothing found")
    expect(page.locator(".results")).to_contain_text("sennit index .")
    page.get_by_role("link", name="Tune").click()
    page.get_by_role("searchbox").fill("Goa")
    expect(page.locator(".badge.good")).to_have_text("confirmed by the engine")
    expect(page.locator("li.none")).to_have_text(["Nothing is found."] * 2)
    expect(page.locator("main")).not_to_contain_text("The order is the same")
    assert_accessible(page)
    page.get_by_role("link", name="Prompt").click()
    page.get_by_label("Task").fill("Goa")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_label("Block", exact=True)).to_contain_text("Nothing is remembered about that.")
    page.get_by_role("link", name="Memory").click()
    expect(page.get_by_label("Sessions", exact=True)).to_contain_text(
        "sennit index FILE --collection history"
    )
    expect(page.get_by_label("Facts", exact=True)).to_contain_text("sennit facts add")
    page.get_by_role("link", name="State").click()
    expect(page.locator(".tile").first).to_contain_text("0 collections")
    assert_accessible(page)


def add_many(db: Database) -> None:
    db.add(
        [
            {
                "id": f"note {n}",
                "title": f"Note {n}",
                "text": f"The vineyard {n}" + " and the cellar" * (n % 7),
            }
            for n in range(1_000)
        ]
    )


def test_no_two_words_of_the_figure_overlap(open_tab: Tab) -> None:
    page = open_tab(add_many)
    for recipe, width in (("default", 1280), ("memory", 1280), ("memory", 390)):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(
            f"{page.url.partition('#')[0].partition('?')[0]}?{recipe}{width}#/search?q=vineyard&limit=1000&recipe={recipe}"
        )
        page.locator(".flow[data-drawn]").wait_for()
        written = page.locator(".flow canvas").first.evaluate("(one) => [...one.texts.values()]")
        height = page.locator(".flow-box").evaluate("(one) => one.clientHeight")
        assert {"sources", "fusion"} <= {one["text"] for one in written}
        assert all(one["left"] >= 0 and one["y"] <= height - 2 for one in written)
        for one, other in combinations(written, 2):
            is_apart = one["right"] <= other["left"] or other["right"] <= one["left"]
            assert is_apart or abs(one["y"] - other["y"]) >= 10, (one, other)


def test_a_thousand_candidates_are_drawn_and_walked_through(open_tab: Tab) -> None:
    page = open_tab(add_many, "search?q=vineyard+cellar&limit=1000")
    expect(page.locator(".flow")).to_have_attribute("data-drawn", "1000")
    expect(page.locator("article")).to_have_count(1_000)
    page.get_by_role("listbox", name="The way of").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".flow-detail .flow-name")).to_contain_text("Note")
