"""The page on databases of one kind: pages with code and tables, conversations alone, many records, none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser, Page, expect

import sennit
from apps.http.conftest import CALLERS, SampleDatabase, run_server
from apps.web.test_page import assert_accessible
from sennit import Database

pytestmark = pytest.mark.browser


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
    expect(excerpt.locator("tr").nth(0).locator("td")).to_have_text(
        ["quince", "repeated", "what a | b means"]
    )
    expect(excerpt.locator("tr").nth(1).locator("td")).to_have_text(
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
