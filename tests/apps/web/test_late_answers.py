"""What a person does while an answer is on its way stays: the focus, what is typed, and the address."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from apps.web.conftest import Visit

pytestmark = pytest.mark.browser


class Held:
    """Requests to a path that are held back, until a test lets their answers come."""

    def __init__(self, visit: Visit, path: str, wanted: Callable[[str], bool] = lambda _: True) -> None:
        self._visit = visit
        self._routes: list[Route] = []
        self._is_held = True

        def handle(route: Route) -> None:
            if self._is_held and wanted(f"{route.request.url} {route.request.post_data or ''}"):
                self._routes.append(route)
            else:
                route.continue_()

        visit.page.route(re.compile(re.escape(path) + r"(\?|$)"), handle)

    def wait(self, count: int = 1) -> None:
        """Wait until so many requests were made."""
        for _ in range(400):
            if len(self._routes) >= count:
                return
            self._visit.page.wait_for_timeout(25)
        raise AssertionError(f"{len(self._routes)} of {count} requests were made")

    def release(self) -> None:
        """Let all answers come, in their order, and wait until the page has had them."""
        self._is_held = False
        for route in self._routes:
            route.continue_()
        self._visit.page.wait_for_load_state("networkidle")
        self._visit.page.wait_for_timeout(300)


def active(visit: Visit) -> Any:
    """What has the focus: its tag and its name."""
    return visit.page.evaluate(
        "[document.activeElement.localName, document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent]"
    )


def test_focus_stays_with_who_goes_on_typing_after_enter(owner: Visit) -> None:
    held = Held(owner, "/v1/search", lambda text: '"query":"vineyard"' in text)
    box = owner.page.get_by_role("searchbox")
    box.fill("vineyard")
    box.press("Enter")
    held.wait()
    box.press_sequentially(" harvest")
    expect(owner.page.locator("article").first).to_be_visible()
    held.release()
    expect(box).to_be_focused()
    expect(box).to_have_value("vineyard harvest")
    expect(owner.page).to_have_url(re.compile(r"q=vineyard\+harvest"))


def test_focus_stays_with_who_left_the_box_before_the_answer(owner: Visit) -> None:
    held = Held(owner, "/v1/search")
    box = owner.page.get_by_role("searchbox")
    box.fill("vineyard")
    box.press("Enter")
    held.wait()
    owner.page.get_by_label("Recipe").focus()
    held.release()
    expect(owner.page.locator("article").first).to_be_visible()
    expect(owner.page.get_by_label("Recipe")).to_be_focused()


def test_focused_result_keeps_the_focus_when_another_answer_comes(owner: Visit) -> None:
    owner.open_view("search?q=vineyard+harvest&recipe=keyword")
    expect(owner.page.locator("article").first).to_be_visible()
    held = Held(owner, "/v1/search")
    owner.page.get_by_label("Recipe").select_option("vector")
    held.wait()
    article = owner.page.locator("article[data-id=harvest]")
    article.focus()
    held.release()
    expect(owner.page).to_have_url(re.compile("recipe=vector"))
    expect(article).to_be_focused()


def test_text_typed_into_why_not_stays_when_another_answer_comes(owner: Visit) -> None:
    owner.open_view("search?q=vineyard&tab=why")
    field = owner.page.get_by_label("Which record did you expect?")
    expect(field).to_be_visible()
    held = Held(owner, "/v1/search")
    owner.page.get_by_role("searchbox").fill("vineyard harvest")
    held.wait()
    field.press_sequentially("diary of the")
    held.release()
    expect(owner.page.locator(".results")).to_have_attribute("aria-busy", "false")
    expect(field).to_be_focused()
    expect(field).to_have_value("diary of the")


def test_later_explanation_wins_over_an_earlier_one(owner: Visit) -> None:
    owner.open_view("search?q=vineyard&tab=why")
    field = owner.page.get_by_label("Which record did you expect?")
    held = Held(owner, "/v1/why", lambda text: "diary" in text)
    field.fill("diary")
    field.press("Enter")
    held.wait()
    field.fill("harvest")
    field.press("Enter")
    expect(owner.page.locator(".outcome .flow-name")).to_contain_text("Harvest report")
    held.release()
    expect(owner.page.locator(".outcome .flow-name")).to_contain_text("Harvest report")
    expect(owner.page).to_have_url(re.compile("record=harvest"))


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("search?q=vineyard", "/v1/search"),
        ("search?q=Rajesh+vacation&tab=facts", "/v1/records"),
        ("tune?q=vineyard", "/v1/trial"),
        ("prompt?q=vacation&episode=late&turn=1", "/introspect/hydration/late"),
        ("memory?entity=Rajesh", "/v1/records"),
    ],
)
def test_a_view_that_was_left_changes_neither_address_nor_focus(
    owner: Visit, address: str, path: str
) -> None:
    owner.call("POST", "/v1/plan", {"query": "vacation", "episode": "late"})
    held = Held(owner, path)
    owner.open_view(address)
    held.wait()
    owner.page.get_by_role("link", name="State").click()
    expect(owner.page.locator(".chart").first).to_be_visible()
    owner.page.get_by_role("link", name="API").focus()
    held.release()
    expect(owner.page).to_have_url(re.compile("#/state$"))
    expect(owner.page.get_by_role("link", name="API")).to_be_focused()


def test_typing_right_before_another_view_leaves_its_address(owner: Visit) -> None:
    owner.page.evaluate("""() => {
        const box = document.querySelector("input[type=search]");
        box.value = "vineyard";
        box.dispatchEvent(new Event("input"));
        location.hash = "#/state";
    }""")
    expect(owner.page.locator(".chart").first).to_be_visible()
    owner.page.wait_for_timeout(300)
    expect(owner.page).to_have_url(re.compile("#/state$"))


def test_focus_chosen_while_a_view_loads_stays(owner: Visit) -> None:
    held = Held(owner, "/v1/sessions")
    owner.page.get_by_role("link", name="Memory").press("Enter")
    held.wait()
    expect(owner.page.locator("#main")).to_be_focused()
    theme = owner.page.get_by_role("button", name=re.compile("^Theme"))
    theme.focus()
    held.release()
    expect(owner.page.locator(".fact").first).to_be_visible()
    expect(theme).to_be_focused()


def test_slash_goes_to_the_search_box_from_every_view(owner: Visit) -> None:
    owner.open_view("state")
    expect(owner.page.locator(".chart").first).to_be_visible()
    owner.page.keyboard.press("/")
    expect(owner.page.get_by_role("searchbox")).to_be_focused()
    owner.open_view("prompt")
    expect(owner.page.get_by_role("heading", name="Episodes")).to_be_visible()
    owner.page.keyboard.press("/")
    expect(owner.page.get_by_role("searchbox", name="Search", exact=True)).to_be_focused()


def test_sliders_keep_focus_and_value_while_the_query_changes(owner: Visit) -> None:
    owner.open_view("tune?q=vineyard&recipe=rrf")
    expect(owner.page.locator("[aria-label=After] li").first).to_be_visible()
    held = Held(owner, "/v1/trial")
    owner.page.get_by_role("searchbox").fill("vineyard harvest")
    held.wait()
    slider = owner.page.get_by_label("weight of keyword")
    slider.focus()
    slider.press("End")
    held.release()
    expect(slider).to_be_focused()
    expect(slider).to_have_value("2")
    expect(owner.page).to_have_url(re.compile("settings=.*q=|q=.*settings="))
    expect(owner.page.locator(".badge.good")).to_have_text(re.compile("by the engine"))


def test_a_comparison_is_shown_although_a_slider_moved_just_before(owner: Visit) -> None:
    owner.open_view("tune?q=vineyard&recipe=keyword")
    expect(owner.page.locator(".badge.good")).to_be_visible()
    owner.page.get_by_label("least relevance").press("ArrowRight")
    held = Held(owner, "/v1/trial", lambda text: '"recipe":"vector"' in text)
    owner.page.get_by_label("Compare with").select_option("vector")
    held.wait()
    owner.page.get_by_label("least relevance").press("ArrowRight")
    owner.page.wait_for_timeout(400)
    held.release()
    expect(owner.page.locator(".status")).to_contain_text("keyword beside vector")


def test_the_latest_session_and_the_latest_block_win(owner: Visit) -> None:
    turns = [{"session": name, "speaker": "Anil", "text": f"Word of {name}"} for name in ("slow", "quick")]
    owner.call("POST", "/v1/turns", turns)
    owner.open_view("memory")
    held = Held(owner, "/v1/records", lambda text: "slow" in text)
    owner.page.get_by_role("button", name=re.compile("^slow")).click()
    held.wait()
    owner.page.get_by_role("button", name=re.compile("^quick")).click()
    expect(owner.page.locator(".turn")).to_contain_text("Word of quick")
    held.release()
    expect(owner.page.locator(".turn")).to_contain_text("Word of quick")
    owner.open_view("prompt?q=quick")
    expect(owner.page.get_by_label("Block", exact=True)).to_be_visible()
    held = Held(owner, "/v1/context", lambda text: "slow" in text)
    owner.page.get_by_label("Task").fill("slow")
    owner.page.get_by_role("button", name="Show").click()
    held.wait()
    owner.page.get_by_label("Task").fill("vacation in March")
    owner.page.get_by_role("button", name="Show").click()
    block = owner.page.get_by_label("Memory block", exact=True)
    expect(block).to_contain_text("March for vacation")
    held.release()
    expect(block).to_contain_text("March for vacation")


def test_a_correction_that_is_saved_late_leaves_the_session_chosen_meanwhile(owner: Visit) -> None:
    turns = [{"session": name, "speaker": "Anil", "text": f"Word of {name}"} for name in ("first", "second")]
    owner.call("POST", "/v1/turns", turns)
    owner.open_view("memory?session=first")
    owner.page.locator(".turn").get_by_role("button", name="Correct").click()
    owner.page.get_by_label("Text", exact=True).fill("Another word of first")
    held = Held(owner, "/v1/records", lambda text: "Another word" in text)
    owner.page.get_by_role("button", name="Save").click()
    held.wait()
    owner.page.keyboard.press("Escape")
    owner.page.get_by_role("button", name=re.compile("^second")).click()
    expect(owner.page.locator(".turn")).to_contain_text("Word of second")
    held.release()
    expect(owner.page.locator(".turn")).to_contain_text("Word of second")
    expect(owner.page).to_have_url(re.compile("session=second"))


def test_completions_are_those_of_the_present_text(owner: Visit) -> None:
    held = Held(owner, "/v1/fields")
    box = owner.page.get_by_role("combobox", name="Filter")
    box.fill("kind")
    held.wait()
    box.press_sequentially(" ")
    expect(owner.page.get_by_role("option", name="starts_with")).to_be_visible()
    held.release()
    expect(owner.page.get_by_role("option", name="starts_with")).to_be_visible()
    expect(owner.page.get_by_role("option", name="kind")).to_have_count(0)


def test_state_is_read_again_without_taking_the_focus(owner: Visit) -> None:
    owner.page.clock.install()
    owner.open_view("state")
    link = owner.page.get_by_label("Collections").get_by_role("link", name="history")
    link.focus()
    with owner.page.expect_response("**/v1/state"):
        owner.page.clock.run_for(11_000)
    owner.page.wait_for_load_state("networkidle")
    expect(link).to_be_focused()


def test_pressed_buttons_that_are_drawn_anew_keep_the_focus(owner: Visit) -> None:
    owner.open_view("memory")
    session = owner.page.get_by_role("button", name=re.compile("^s1"))
    session.focus()
    owner.page.keyboard.press("Enter")
    expect(owner.page.locator(".turn").first).to_be_visible()
    expect(session).to_be_focused()
    entity = owner.page.locator(".entity", has_text="Priya").first
    entity.focus()
    owner.page.keyboard.press("Enter")
    expect(owner.page).to_have_url(re.compile("entity=Priya"))
    assert active(owner) == ["button", "Priya"]


def test_a_double_click_changes_once(owner: Visit) -> None:
    owner.open_view("prompt?q=vacation&kind=plan")
    owner.page.get_by_label("Store in the episode").fill("clicked twice")
    owner.page.get_by_role("button", name="Show").dblclick()
    expect(
        owner.page.get_by_role("group", name="Turns of clicked twice").get_by_role("button")
    ).to_have_count(1)
    owner.page.get_by_role("button", name=re.compile("^Caller")).dblclick()
    expect(owner.page.locator("dialog")).to_have_count(1)
    owner.page.keyboard.press("Escape")
    owner.open_view("search?q=barrel")
    owner.page.locator("article .citation").first.dblclick()
    expect(owner.page.locator("dialog")).to_have_count(1)
    owner.page.wait_for_timeout(200)
    expect(owner.page.locator("dialog")).to_be_visible()


def test_what_fails_after_a_click_is_said(owner: Visit) -> None:
    owner.open_view("memory")
    expect(owner.page.locator(".fact").first).to_be_visible()
    owner.page.route(
        "**/v1/records?*",
        lambda route: route.fulfill(status=503, json={"error": {"code": "busy", "message": "Too busy now."}}),
    )
    owner.page.get_by_role("button", name=re.compile("^s1")).click()
    expect(owner.page.locator(".toast")).to_have_text("Too busy now.")
    owner.console.clear()  # the browser reports the 503
