"""The page in a real Chromium: search, the way of candidates, why not, and seeing as another caller."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from apps.http.conftest import PROGRAM, RunningServer, SampleDatabase
from apps.web.conftest import Visit, Visits
from apps.web.hostile import naughty_strings

pytestmark = pytest.mark.browser


def assert_accessible(page: Page) -> None:
    """No violation in axe-core."""
    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []


# Signing in


def test_a_token_signs_in_and_an_unknown_one_does_not(
    browser: Browser, server: RunningServer, web_sample: SampleDatabase
) -> None:
    page = browser.new_page()
    page.goto(server.url)
    page.get_by_label("Token").fill("sennit_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not know this token")
    assert_accessible(page)
    page.get_by_label("Token").fill(web_sample.tokens["reader"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("searchbox")).to_be_visible()
    assert "sennit_" not in page.url
    page.context.close()


def test_open_signs_in_once_and_leaves_no_code_in_the_history(
    browser: Browser, web_sample: SampleDatabase
) -> None:
    command = [PROGRAM, "open", "--no-browser", "--json", "--port", "0", "--db", str(web_sample.path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=web_sample.path.parent
    ) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["url"]
            page = browser.new_page()
            page.goto(address)
            expect(page.get_by_role("searchbox")).to_be_visible()
            assert "code" not in page.url
            assert page.evaluate("history.length") <= 2
            page.reload()
            expect(page.get_by_role("searchbox")).to_be_visible()
            again = browser.new_page()
            again.goto(address)
            expect(again.get_by_role("alert")).to_contain_text("used before")
            page.context.close()
            again.context.close()
        finally:
            process.terminate()
    assert process.returncode == 0


# Search


def test_search_shows_results_with_relevance_shares_and_highlights(owner: Visit) -> None:
    owner.search("vineyard harvest")
    first = owner.page.locator("article").first
    expect(first.locator("h2")).to_have_text("Harvest report")
    expect(first.locator("mark").first).to_be_visible()
    expect(first.locator(".relevance")).to_contain_text("%")
    assert "keyword" in (first.locator(".shares").get_attribute("aria-label") or "")
    expect(owner.page.locator(".status")).to_contain_text("fits")
    expect(first.locator(".relevance.low")).to_have_count(0)


def test_a_result_that_does_not_fit_looks_so(owner: Visit) -> None:
    owner.search("quantum chromodynamics")
    expect(owner.page.locator(".status")).to_contain_text("nothing fits")
    expect(owner.page.locator("article").first.locator(".relevance.low")).to_contain_text("%")


def test_address_is_a_permalink(owner: Visit) -> None:
    owner.search("vineyard")
    owner.page.get_by_label("Recipe").select_option("keyword")
    expect(owner.page).to_have_url(re.compile("recipe=keyword"))
    address = owner.page.url
    owner.go("docs")
    owner.page.goto(address)
    expect(owner.page.get_by_role("searchbox")).to_have_value("vineyard")
    expect(owner.page.get_by_label("Recipe")).to_have_value("keyword")
    expect(owner.page.locator("article").first).to_be_visible()


def test_latest_answer_wins_over_a_slower_earlier_one(owner: Visit) -> None:
    held: list[Route] = []

    def handle(route: Route) -> None:
        if '"query":"vineyard"' in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    owner.page.route("**/v1/search", handle)
    box = owner.page.get_by_role("searchbox")
    with owner.page.expect_request("**/v1/search"):
        box.fill("vineyard")
    box.fill("vacation")
    expect(owner.page.locator("article mark").first).to_have_text(re.compile("vacation", re.I))
    for route in held:
        route.abort()
    expect(owner.page.locator("article mark").first).to_have_text(re.compile("vacation", re.I))
    expect(owner.page.locator(".status .problem")).to_have_count(0)
    assert held


def test_filter_completes_fields_and_values_by_keyboard(owner: Visit) -> None:
    owner.search("vineyard")
    box = owner.page.get_by_role("combobox", name="Filter")
    box.press_sequentially("artifact_t")
    expect(owner.page.get_by_role("option", name="artifact_type")).to_be_visible()
    for option in ("artifact_type", "="):
        expect(owner.page.get_by_role("option", name=option, exact=True)).to_be_visible()
        box.press("ArrowDown")
        box.press("Enter")
    expect(owner.page.get_by_role("option", name='"report"')).to_be_visible()
    box.press("ArrowDown")
    box.press("Enter")
    expect(box).to_have_value('artifact_type = "report" ')
    expect(owner.page.locator("article")).to_have_count(1)


def test_citation_opens_the_file_at_its_line(owner: Visit) -> None:
    owner.search("barrel litres")
    owner.page.get_by_role("button", name=re.compile(r"cellar\.md")).first.click()
    line = owner.page.locator("dialog li.inside", has_text="225 litres")
    expect(line).to_be_visible()
    assert line.get_attribute("data-line") == "7"
    owner.page.keyboard.press("Escape")
    expect(owner.page.locator("dialog")).to_have_count(0)


def test_nothing_fits_is_shown(owner: Visit) -> None:
    owner.search("quantum chromodynamics lattice")
    expect(owner.page.locator(".status .badge.bad")).to_have_text("nothing fits")


# The way of every candidate


def test_every_candidate_is_drawn_and_reached_by_the_keyboard(owner: Visit) -> None:
    owner.search("vineyard hostilestring")
    drawn = int(owner.page.locator(".flow").get_attribute("data-drawn") or "0")
    candidates = json.loads(owner.bodies[-1])["trace"]["candidates"]
    assert drawn == len(candidates) > 20
    owner.page.locator(".flow-box").focus()
    owner.page.keyboard.press("Home")
    detail = owner.page.locator(".flow-detail")
    expect(detail).to_contain_text("fusion")
    owner.page.keyboard.press("End")
    expect(detail).to_contain_text("dropped by")
    expect(detail).to_contain_text("needed")


def test_pointing_at_a_result_shows_its_way(owner: Visit) -> None:
    owner.search("vineyard harvest")
    owner.page.locator("article").first.hover()
    expect(owner.page.locator(".flow-detail")).to_contain_text("Harvest report")
    expect(owner.page.locator(".flow-detail")).to_contain_text("above background")


# Why not?


def test_why_not_says_where_it_was_lost_and_what_admits_it(owner: Visit) -> None:
    owner.search("vineyard")
    owner.page.get_by_role("spinbutton", name="Results").fill("1")
    expect(owner.page.locator("article")).to_have_count(1)
    owner.page.get_by_role("tab", name="Why not?").click()
    owner.page.get_by_label("Which record did you expect?").fill("more grapes than last year")
    owner.page.get_by_role("button", name="Explain").click()
    expect(owner.page.locator(".outcome")).to_contain_text("Lost at")
    expect(owner.page.locator(".changes")).to_contain_text("Raise the limit from 1 to")
    assert_accessible(owner.page)


# See as


def test_see_as_another_caller_shows_no_trace_of_hidden_records(owner: Visit) -> None:
    owner.search("vineyard secretly")
    expect(owner.page.locator("article", has_text="secretly for sale")).to_have_count(1)
    owner.page.get_by_role("button", name=re.compile("^Caller")).click()
    owner.page.get_by_role("button", name=re.compile("^reader")).click()
    expect(owner.page.locator(".chip.acting")).to_have_text("as reader")
    expect(owner.page.locator("article").first).to_be_visible()
    owner.answers.clear()
    with owner.page.expect_response("**/v1/search"):
        owner.page.get_by_role("searchbox").fill("the vineyard")
    expect(owner.page.locator("article", has_text="Harvest report")).to_be_visible()
    assert owner.bodies
    assert not any("secretly for" in body or '"diary"' in body for body in owner.bodies)
    owner.page.get_by_role("tab", name="Why not?").click()
    owner.page.get_by_label("Which record did you expect?").fill("diary")
    owner.page.get_by_role("button", name="Explain").click()
    expect(owner.page.locator(".outcome")).to_contain_text("the caller may not see it")
    expect(owner.page.locator(".changes")).to_contain_text("clearance")


def test_a_caller_finds_no_trace_of_a_record_it_may_not_see(visits: Visits) -> None:
    visit = visits("reader")
    visit.search("vineyard sale")
    visit.page.get_by_role("tab", name="Why not?").click()
    visit.page.get_by_label("Which record did you expect?").fill("diary")
    visit.page.get_by_role("button", name="Explain").click()
    expect(visit.page.locator(".outcome .problem")).to_be_visible()
    visit.console.clear()  # the browser reports the 404
    visit.page.get_by_role("combobox", name="Filter").fill("scope = ")
    expect(visit.page.get_by_role("option", name="public")).to_be_visible()
    visit.page.get_by_role("button", name=re.compile("^Caller")).click()
    expect(visit.page.locator("dialog")).to_contain_text("Only a token that sees everything")
    everything = "".join(visit.bodies)
    assert "secretly for" not in everything
    assert '"me"' not in everything
    assert "only-theirs" not in everything


# Hostile records


def test_hostile_records_are_rendered_as_text(owner: Visit) -> None:
    owner.go("#/search?q=hostilestring&recipe=keyword&limit=1000")
    expect(owner.page.locator("article")).to_have_count(len(naughty_strings()))
    titles = owner.page.locator("article h2").all_text_contents()
    assert "<script>window.pwned = 1</script>" in titles
    assert owner.page.evaluate("window.pwned") is None
    outside = owner.page.evaluate(
        "[...document.querySelectorAll('main script, main iframe, main style, main svg, main a[href^=javascript]')].length"
    )
    assert outside == 0
    options = owner.page.get_by_label("Recipe").locator("option").all_text_contents()
    assert "<img src=x onerror=alert(1)>" in options
    owner.page.locator("article .citation").first.click()
    expect(owner.page.locator("dialog")).to_be_visible()


# The whole


def test_keyboard_alone_searches_reads_and_goes_back(owner: Visit) -> None:
    keyboard = owner.page.keyboard
    keyboard.type("barrel litres")
    expect(owner.page.locator("article").first).to_be_visible()
    keyboard.press("Enter")
    expect(owner.page.locator("article").first).to_be_focused()
    keyboard.press("Enter")
    expect(owner.page.locator("dialog")).to_be_visible()
    keyboard.press("Escape")
    expect(owner.page.locator("article").first).to_be_focused()
    keyboard.press("ArrowDown")
    expect(owner.page.locator("article").nth(1)).to_be_focused()
    keyboard.press("/")
    expect(owner.page.get_by_role("searchbox")).to_be_focused()


def test_closing_a_dialog_leaves_the_focus_that_moved_meanwhile(owner: Visit) -> None:
    owner.go("#/search?q=barrel")
    owner.page.locator("article .citation").first.click()
    expect(owner.page.locator("dialog")).to_be_visible()
    focused = owner.page.evaluate("""async () => {
        const dialog = document.querySelector("dialog");
        const closed = new Promise((resolve) => dialog.addEventListener("close", resolve));
        dialog.close();
        document.querySelector("input[type=search]").focus();
        await closed;
        return document.activeElement.type;
    }""")
    assert focused == "search"


def test_theme_is_remembered(owner: Visit) -> None:
    owner.page.get_by_role("button", name=re.compile("^Theme")).click()
    assert owner.page.evaluate("document.documentElement.dataset.theme") == "light"
    owner.page.reload()
    assert owner.page.evaluate("document.documentElement.dataset.theme") == "light"


def test_api_page_tries_a_route(owner: Visit) -> None:
    owner.go("docs")
    entry = owner.page.locator("details", has_text="/v1/collections").first
    entry.locator("summary").click()
    entry.get_by_role("button", name="Send").click()
    expect(entry.locator(".output")).to_contain_text("artifacts")
    assert_accessible(owner.page)
