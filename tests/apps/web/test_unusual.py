"""What a stranger runs into: blocked storage, no JavaScript, an ended token, the back button, paper, and long queries."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import sennit
from apps.http.conftest import CALLERS, RunningServer, SampleDatabase, run_server
from apps.web.conftest import Visit
from apps.web.test_page import assert_accessible

pytestmark = pytest.mark.browser


def test_a_token_that_ends_while_the_page_is_open_is_asked_for_again_in_the_same_view(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "own.sennit"
    caller, _ = CALLERS["owner"]
    with sennit.open(path) as db:
        db.add([{"id": "a", "text": "The plumber comes on Tuesday."}])
        old, new = (db.admin.tokens.issue(name, caller, write=True) for name in ("old", "new"))
    with (
        run_server(SampleDatabase(path, {})) as server,
        contextlib.closing(browser.new_context()) as context,
    ):
        page = context.new_page()
        page.goto(f"{server.url}/#/search?q=plumber&recipe=keyword")
        page.get_by_label("Token").fill(old)
        page.keyboard.press("Enter")
        expect(page.locator("article")).to_have_count(1)
        with sennit.open(path) as db:
            db.admin.tokens.revoke("old")
        page.get_by_role("searchbox").fill("plumber Tuesday")
        expect(page.get_by_role("alert")).to_contain_text("no longer valid")
        expect(page.get_by_label("Token")).to_be_focused()
        assert_accessible(page)
        page.get_by_label("Token").fill(new)
        page.keyboard.press("Enter")
        expect(page.get_by_role("searchbox")).to_have_value("plumber Tuesday")
        expect(page.get_by_label("Recipe")).to_have_value("keyword")
        expect(page.locator("article")).to_have_count(1)


def test_a_service_that_is_busy_at_first_asks_for_no_token(owner: Visit) -> None:
    refusal = {"error": {"code": "busy", "message": "Too many requests at once."}}
    owner.page.route("**/v1/caller", lambda route: route.fulfill(status=503, json=refusal))
    owner.open_view("search?q=vineyard")
    expect(owner.page.get_by_role("alert")).to_contain_text("Too many requests at once.")
    expect(owner.page.get_by_label("Token")).to_have_count(0)
    owner.page.unroute("**/v1/caller")
    owner.page.get_by_role("button", name="Try again").click()
    expect(owner.page.locator("article").first).to_be_visible()
    owner.console.clear()  # the browser reports the 503


def test_back_and_forward_return_to_what_was_seen(owner: Visit) -> None:
    owner.search("vineyard harvest")
    owner.page.get_by_label("Recipe").select_option("keyword")
    owner.page.get_by_role("link", name="State").click()
    expect(owner.page.locator(".chart").first).to_be_visible()
    owner.page.go_back()
    expect(owner.page.get_by_role("searchbox")).to_have_value("vineyard harvest")
    expect(owner.page.get_by_label("Recipe")).to_have_value("keyword")
    expect(owner.page.locator("article").first).to_be_visible()
    owner.page.go_forward()
    expect(owner.page.locator(".chart").first).to_be_visible()


def test_a_very_long_query_is_answered_or_refused_in_words(owner: Visit) -> None:
    query = "vineyard " * 1300
    owner.search(query)
    expect(owner.page.locator("article").first).to_be_visible()
    owner.page.get_by_role("link", name="Prompt").click()
    owner.page.get_by_label("Task").fill(query)
    owner.page.get_by_role("button", name="Show").click()
    expect(owner.page.locator("main .problem")).to_contain_text("the limit is 10,000")
    owner.console.clear()  # the browser reports the 422


def test_an_unknown_recipe_and_view_of_an_address_are_named(owner: Visit) -> None:
    owner.open_view("search?q=vineyard&recipe=nope")
    expect(owner.page.locator(".status .problem")).to_contain_text("There is no recipe 'nope'")
    expect(owner.page.get_by_label("Recipe")).to_have_value("nope")
    expect(owner.page.get_by_role("button", name="Try again")).to_have_count(0)
    owner.open_view("constructor?q=vineyard")
    expect(owner.page.locator("article").first).to_be_visible()
    owner.console.clear()  # the browser reports the 404


def test_an_answer_without_candidates_draws_no_figure(owner: Visit) -> None:
    owner.open_view("search?q=zzzzqqqq&recipe=keyword")
    expect(owner.page.get_by_role("tabpanel", name="Every candidate")).to_contain_text("No source found")
    expect(owner.page.locator(".flow")).to_have_count(0)


def block_storage(page: Page) -> None:
    page.add_init_script("""for (const name of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(window, name, { get() { throw new DOMException("blocked", "SecurityError"); } });
    }""")


def test_a_browser_that_blocks_storage_shows_the_page(
    browser: Browser, server: RunningServer, web_sample: SampleDatabase
) -> None:
    with contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        block_storage(page)
        page.goto(f"{server.url}/#/search?q=vineyard")
        page.get_by_label("Token").fill(web_sample.tokens["reader"])
        page.keyboard.press("Enter")
        expect(page.locator("article").first).to_be_visible()
        page.get_by_role("button", name=re.compile("^Theme")).click()
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        page.goto(f"{server.url}/docs")
        expect(page.locator("details.operation").first).to_be_visible()


def test_without_javascript_the_page_says_what_else_there_is(browser: Browser, server: RunningServer) -> None:
    with contextlib.closing(browser.new_context(java_script_enabled=False)) as context:
        page = context.new_page()
        page.goto(server.url)
        expect(page.get_by_role("heading", level=1)).to_have_text("This page needs JavaScript")
        expect(page.locator("main code").first).to_have_text("sennit search QUERY")
        page.goto(f"{server.url}/docs")
        expect(page.get_by_role("link", name="openapi.json")).to_be_visible()


def test_paper_shows_the_content_without_controls_in_light_colours(owner: Visit) -> None:
    owner.page.emulate_media(media="print", color_scheme="dark")
    owner.open_view("search?q=vineyard")
    expect(owner.page.locator("article").first).to_be_visible()
    expect(owner.page.get_by_role("searchbox")).to_be_visible()
    for control in (".top", ".options", ".grades", ".inside-view", "button.primary"):
        expect(owner.page.locator(control).first).to_be_hidden()
    assert owner.page.evaluate("getComputedStyle(document.documentElement).color") == "rgb(28, 29, 31)"
    owner.open_view("prompt?q=vacation+in+March")
    expect(owner.page.get_by_label("Memory block", exact=True)).to_be_visible()


def test_the_page_of_the_api_says_that_the_service_stopped(owner: Visit) -> None:
    owner.go("docs")
    entry = owner.page.locator("details", has_text="/v1/collections").first
    entry.locator("summary").click()
    owner.page.route("**/v1/collections", lambda route: route.abort())
    entry.get_by_role("button", name="Send").click()
    expect(entry.locator(".output")).to_contain_text("does not answer")
    owner.page.get_by_role("link", name="Memory").click()
    expect(owner.page.get_by_role("heading", name="Memory and graph")).to_be_visible()
    owner.console.clear()  # the browser reports the request that failed
