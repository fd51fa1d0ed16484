"""What holds in every view: no barriers, hostile records as text, no trace of hidden records, and what fails is said."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, Route, expect
from scripts.servers.common import free_port

import sennit
from apps.http.conftest import CALLERS, RunningServer, SampleDatabase, run_server, wait_until
from apps.http.test_degraded import Broken
from apps.web.conftest import Visit, Visits
from apps.web.hostile import PAYLOADS
from apps.web.test_page import assert_accessible
from sennit import Fact, Turn
from sennit.apps.http.app import HttpOptions, make_app
from sennit.apps.sockets import listen

pytestmark = pytest.mark.browser

VIEWS = {
    "search?q=vineyard": ".flow[data-drawn]",
    "search?q=vineyard&limit=1&tab=why&record=harvest": ".outcome .flow-name",
    "search?q=Rajesh+vacation&tab=facts": ".fact",
    "tune?q=vineyard&recipe=rrf": ".ranking li",
    "prompt?q=vacation+in+March": "pre.output",
    "prompt?q=vineyard&kind=plan": ".budget",
    "prompt?episode=of+pictures&turn=1": "[aria-label^='of pictures']",
    "memory?entity=Rajesh&session=s1": ".turn",
    "state": ".chart",
}
"""Each view, and what shows that it has loaded."""


def open_all(visit: Visit) -> Iterator[str]:
    """Go to every view, and yield its address once it has loaded."""
    for address, shown in VIEWS.items():
        visit.open_view(address)
        expect(visit.page.locator(shown).first).to_be_visible()
        yield address


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


OVERFLOWING = """() => [...document.querySelectorAll("body *")].filter((one) => {
  const box = one.getBoundingClientRect();
  if (!box.width || !box.height || box.right <= innerWidth + 1) return false;
  for (let outer = one.parentElement; outer && outer !== document.body; outer = outer.parentElement) {
    if (getComputedStyle(outer).overflowX !== "visible") return false;
  }
  return true;
}).map((one) => one.outerHTML.slice(0, 120))"""
"""What is wider than the window, but for what is cut or scrolled inside another element."""


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
)
def test_views_have_no_barriers_and_fit(owner: Visit, scheme: str, width: int) -> None:
    owner.call("POST", "/v1/plan", {"query": "vineyard", "episode": "of pictures"})
    owner.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    owner.page.set_viewport_size({"width": width, "height": 844})
    for address in open_all(owner):
        assert_accessible(owner.page)
        assert fits(owner.page), address
    owner.go("docs")
    owner.page.locator("details.operation").first.locator("summary").click()
    assert_accessible(owner.page)
    assert fits(owner.page)


@pytest.mark.parametrize("width", [390, 320])
def test_long_words_and_ids_fit_a_narrow_screen_in_every_view(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    word = "Donaudampfschifffahrtsgesellschaftskapitänsmütze" * 3
    path = tmp_path / "long.sennit"
    caller, _ = CALLERS["owner"]
    folder = tmp_path / word[:200]
    folder.mkdir()
    (folder / "orders.py").write_text(f"def {word}():\n    return '{word}'\n")
    with sennit.open(path) as db:
        db.add(
            [
                {
                    "id": f"{word}/{at}",
                    "title": word,
                    "text": f"{word} steamboat {at}",
                    "collection": word,
                    "kind": word,
                    "scope": word,
                    "url": f"https://example.org/{word}",
                }
                for at in range(3)
            ]
        )
        db.add_turns(
            [
                Turn(
                    session=word,
                    speaker=word,
                    text=f"steamboat {word}",
                    timestamp=datetime(2026, 3, 1, tzinfo=UTC),
                )
            ]
        )
        db.add_facts([Fact(subject=word, relation=word, object=f"steamboat {word}")])
        db.index(folder)
        db.plan(f"steamboat {word}", episode=word)
        sample = SampleDatabase(path, {"owner": db.admin.tokens.issue(word[:100], caller, write=True)})
    config = tmp_path / "own.toml"
    config.write_text(f'[recipes."{word[:100]}"]\nbase = "rrf"\n')
    recipe = quote(word[:100])
    views = {
        f"search?q=steamboat&recipe={recipe}": ".flow[data-drawn]",
        f"search?q=steamboat&in={quote(word)}&limit=1&tab=why&record={quote(word)}/0": ".outcome > .flow-name",
        f"search?q=steamboat+{quote(word)}&tab=facts": ".fact",
        f"tune?q=steamboat&recipe={recipe}&with=vector": "[aria-label=After] li",
        "prompt?q=steamboat": "pre.output",
        f"prompt?q={quote(word)}&kind=plan": ".budget",
        f"prompt?episode={quote(word)}&turn=1": ".episode",
        f"memory?entity={quote(word)}&session={quote(word)}": ".turn",
        "state": ".chart",
    }  # fmt: skip
    with (
        run_server(sample, env={"SENNIT_CONFIG": str(config)}) as server,
        contextlib.closing(browser.new_context(viewport={"width": width, "height": 800})) as context,
    ):
        page = context.new_page()
        page.add_init_script(f"sessionStorage.setItem('sennit.token', {sample.tokens['owner']!r})")
        for number, (address, shown) in enumerate(views.items()):
            page.goto(f"{server.url}/?{number}#/{address}")
            expect(page.locator(shown).first).to_be_visible()
            page.wait_for_load_state("networkidle")
            assert page.evaluate(OVERFLOWING) == [], address
            assert fits(page), address
        page.goto(f"{server.url}/docs")
        page.locator("details.operation").first.locator("summary").click()
        assert page.evaluate(OVERFLOWING) == []
        assert fits(page)


def test_hostile_records_are_text_in_every_view(owner: Visit) -> None:
    name = PAYLOADS[0]
    owner.call("POST", "/v1/plan", {"query": name, "episode": name})
    for address, shown in {
        "search?q=hostileturn+Mallory&tab=facts": ".fact",
        "search?q=hostilestring&tab=why&record=%3Cscript%3Ewindow.pwned": ".outcome > *",
        "tune?q=hostilestring&recipe=keyword": ".ranking li",
        f"prompt?q=hostileturn&episode={name}": ".episode",
        "memory": ".fact",
        f"memory?session={PAYLOADS[1]}&entity=Hostileville": ".turn",
        "state": ".chart",
    }.items():
        owner.open_view(address)
        expect(owner.page.locator(shown).first).to_be_visible()
        assert owner.page.evaluate("window.pwned") is None
        outside = (
            "main :is(script, iframe, style, img, a[href^='javascript' i], [onerror], [onload], [onfocus])"
        )
        assert owner.page.locator(outside).count() == 0, address
        assert fits(owner.page), address
    assert owner.page.get_by_text("hostile").first.is_visible()
    owner.open_view(f"memory?session={PAYLOADS[0]}")
    expect(owner.page.locator(".turn strong")).to_have_text(PAYLOADS[0])
    expect(owner.page.locator(".entity", has_text=f"Mallory {PAYLOADS[0]}").first).to_be_visible()


def test_a_caller_finds_no_trace_of_hidden_records_in_any_view(visits: Visits) -> None:
    owner = visits("owner")
    owner.call("POST", "/v1/plan", {"query": "what Zorro plans", "episode": "hidden plan"})
    assert "hidden talk" in str(owner.call("GET", "/v1/sessions"))
    assert "hidden plan" in str(owner.call("GET", "/v1/episodes"))
    visit = visits("reader")
    bodies: list[str] = []

    def record(route: Route) -> None:
        response = route.fetch()
        bodies.append(response.text())
        route.fulfill(response=response)

    visit.page.route(re.compile(r"/(v1|introspect)/"), record)
    for _ in open_all(visit):
        visit.page.wait_for_load_state("networkidle")
    visit.open_view("search?q=zorro+hides&tab=facts")
    expect(visit.page.get_by_role("tabpanel", name="Facts around")).not_to_be_empty()
    visit.page.wait_for_load_state("networkidle")
    assert len(bodies) > 3 * len(VIEWS)
    everything = "".join(bodies)
    for secret in ("secretly for", '"me"', "only-theirs", "Zorro", "unseen words", "hidden"):
        assert secret not in everything, secret


def test_keyboard_alone_reaches_every_view(owner: Visit) -> None:
    keyboard = owner.page.keyboard
    for name, heading in (
        ("Tune", "Tune"),
        ("Prompt", "What enters the prompt"),
        ("Memory", "Memory and graph"),
        ("State", "State"),
        ("Search", "Search"),
    ):
        owner.page.locator(".brand").focus()
        for _ in range(12):
            keyboard.press("Tab")
            if owner.page.evaluate("document.activeElement.textContent") == name:
                break
        keyboard.press("Enter")
        expect(owner.page.get_by_role("heading", name=heading, exact=True, level=1)).to_be_attached()
        expect(owner.page.locator("#main")).to_be_focused()
    keyboard.press("/")
    keyboard.type("vineyard")
    expect(owner.page.locator("article").first).to_be_visible()
    owner.page.get_by_role("tab").first.focus()
    keyboard.press("ArrowRight")
    expect(owner.page.get_by_role("tab", name="Why not?")).to_be_focused()
    keyboard.press("Tab")
    keyboard.type("harvest")
    keyboard.press("Enter")
    expect(owner.page.locator(".verdict")).to_contain_text("in the result")
    owner.page.get_by_role("button", name=re.compile("^Caller")).focus()
    keyboard.press("Enter")
    owner.page.get_by_role("button", name=re.compile("^reader")).focus()
    keyboard.press("Enter")
    expect(owner.page.locator(".chip.acting")).to_have_text("as reader")
    owner.page.get_by_role("button", name=re.compile("^Caller")).focus()
    keyboard.press("Enter")
    owner.page.get_by_role("button", name="Stop seeing as another caller").focus()
    keyboard.press("Enter")
    expect(owner.page.locator(".chip.acting")).to_have_count(0)


# What fails


@contextlib.contextmanager
def run_in_thread(sample: SampleDatabase) -> Iterator[str]:
    """The service in this process, with a vector source that fails."""
    with sennit.open(sample.path, sources={"vector": Broken()}) as db, listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn.Config(make_app(db, HttpOptions()), log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started, "the service")
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def test_degraded_answer_says_what_is_missing(browser: Browser, web_sample: SampleDatabase) -> None:
    with run_in_thread(web_sample) as url, contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        page.add_init_script(f"sessionStorage.setItem('sennit.token', {web_sample.tokens['owner']!r})")
        page.goto(f"{url}/#/search?q=vineyard+harvest")
        notice = page.locator(".notice.bad")
        expect(notice).to_contain_text("Degraded: vector did not answer")
        assert "10.0.0.5" not in notice.inner_text()
        expect(page.locator(".status")).to_contain_text("degraded: vector")
        expect(page.locator("article h2").first).to_have_text("Harvest report")
        assert_accessible(page)
        page.locator("article").first.focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator("article").nth(1)).to_be_focused()
        page.goto(f"{url}/#/state")
        expect(page.get_by_label("Degraded sources over the last hour")).to_contain_text("vector: ")
        row = (
            page.get_by_label("Sources over the last hour", exact=True)
            .get_by_role("row")
            .filter(has_text="vector")
        )
        expect(row.locator(".badge.bad")).to_have_text(re.compile(r"\d+"))
        expect(row).to_contain_text("ms")
        expect(page.locator(".tile.alarm").first).to_contain_text("degraded answers")
        assert_accessible(page)


def test_an_index_on_a_server_that_lags_is_marked_and_searches_find_everything(
    browser: Browser, tmp_path: Path
) -> None:
    """The server does not answer, so its index lags behind what was written, until it does."""
    caller, _ = CALLERS["owner"]
    with socket.socket() as nobody:
        # Bound and not listening: no other process can take the port, and every connection is refused.
        nobody.bind(("127.0.0.1", 0))
        config = tmp_path / "own.toml"
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        config.write_text(f'[roles]\nvector = "qdrant"\n[qdrant]\nurls = ["{address}"]\n')
        path = tmp_path / "lag.sennit"
        with sennit.open(path) as db:
            sample = SampleDatabase(path, {"owner": db.admin.tokens.issue("owner", caller, write=True)})
        with (
            run_server(sample, env={"SENNIT_CONFIG": str(config)}) as server,
            contextlib.closing(browser.new_context()) as context,
        ):
            page = context.new_page()
            page.add_init_script(f"sessionStorage.setItem('sennit.token', {sample.tokens['owner']!r})")
            page.goto(f"{server.url}/#/state")
            page.get_by_label("Roles and servers").wait_for()
            page.evaluate(
                "async () => (await import('/web/api.js')).post('/v1/records', { id: 'a', text: 'The plumber comes' })"
            )
            page.reload()
            row = page.get_by_label("Roles and servers").get_by_role("row").filter(has_text="qdrant")
            expect(row.locator(".badge.bad")).to_contain_text("behind")
            expect(page.locator(".tile").filter(has_text="backlog")).not_to_contain_text(
                " 0 changes to apply"
            )
            assert_accessible(page)
            page.goto(f"{server.url}/#/search?q=plumber")
            expect(page.locator("article")).to_have_count(1)


def test_empty_database_and_a_service_that_stops_are_explained(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "empty.sennit"
    caller, _ = CALLERS["owner"]
    with sennit.open(path) as db:
        sample = SampleDatabase(path, {"owner": db.admin.tokens.issue("owner", caller, write=True)})
    port = str(free_port())
    with contextlib.closing(browser.new_context(viewport={"width": 1280, "height": 800})) as context:
        page = context.new_page()
        page.add_init_script(f"sessionStorage.setItem('sennit.token', {sample.tokens['owner']!r})")
        with run_server(sample, "--port", port) as server:
            page.goto(server.url)
            expect(page.locator(".first-steps")).to_contain_text("sennit index .")
            assert_accessible(page)
            for view, advice in {
                "tune": "Type a query",
                "prompt": "sennit plan TASK --episode NAME",
                "memory": "sennit remember TEXT",
                "state": "sennit index .",
            }.items():
                page.goto(f"{server.url}/#/{view}")
                expect(page.locator("main")).to_contain_text(advice)
                expect(page.locator("main h1")).to_have_count(1)
                expect(page.locator("main .problem:not(:empty)")).to_have_count(0)
            page.goto(f"{server.url}/#/search")
            expect(page.locator(".first-steps")).to_be_visible()
            _stop(server)
            page.get_by_role("searchbox").fill("vineyard")
            expect(page.locator(".offline")).to_contain_text("does not answer")
            expect(page.get_by_role("button", name="Try again")).to_be_visible()
            assert_accessible(page)
        with run_server(sample, "--port", port):
            expect(page.locator(".offline")).to_have_count(0)
            page.get_by_role("button", name="Try again").click()
            expect(page.locator(".status")).to_contain_text("Nothing found")


def _stop(server: RunningServer) -> None:
    assert server.stop() == 0
