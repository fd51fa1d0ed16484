"""A real Chromium on a real service, once for all tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, expect, sync_playwright

from apps.http.conftest import RunningServer, SampleDatabase, make_sample, run_server
from apps.web.hostile import hostile_records

# As long as an action waits: 5 seconds, the default, are few on a busy machine.
WAIT_MILLISECONDS = 20_000
expect.set_options(timeout=WAIT_MILLISECONDS)

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser(leave_out: Callable[[str], NoReturn]) -> Iterator[Browser]:
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        leave_out("no Chromium: scripts/tools.sh chromium installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def web_sample(tmp_path_factory: pytest.TempPathFactory) -> SampleDatabase:
    folder = tmp_path_factory.mktemp("web")
    notes = folder / "notes"
    notes.mkdir()
    (notes / "cellar.md").write_text(
        "# Cellar\n\nThe cellar is cool.\n\n## Barrels\n\nEach barrel of the vineyard holds 225 litres.\n"
    )
    sample = make_sample(folder)
    hostile_records(sample.path, notes)
    return sample


@pytest.fixture(scope="session")
def server(web_sample: SampleDatabase) -> Iterator[RunningServer]:
    config = web_sample.path.parent / "sennit.toml"
    config.write_text('[recipes."<img src=x onerror=alert(1)>"]\nbase = "default"\n')
    # A file that the environment names is the user's own, so that recipes may be saved there.
    with run_server(web_sample, "--save-recipes", env={"SENNIT_CONFIG": str(config)}) as server:
        yield server


@dataclass
class Visit:
    """A tab that is signed in, and what must not happen in it."""

    page: Page
    server: RunningServer
    console: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    answers: list[Response] = field(default_factory=list)
    """Every response of the API since the last navigation that a test made."""
    loads: int = 0

    @property
    def bodies(self) -> list[str]:
        """The texts of the answers."""
        return [answer.text() for answer in self.answers if not answer.request.failure]

    def go(self, address: str = "") -> None:
        self.page.goto(f"{self.server.url}/{address}")

    def open_view(self, address: str) -> None:
        """Load a view anew: another query makes it another document."""
        self.loads += 1
        self.go(f"?{self.loads}#/{address}")

    def search(self, query: str) -> None:
        box = self.page.get_by_role("searchbox")
        box.wait_for()
        box.fill(query)
        self.page.locator(".flow[data-drawn]").wait_for()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call the service with the token of the tab."""
        return self.page.evaluate(
            "async ([method, path, body]) => (await import('/web/api.js')).call(method, path, { body: body ?? undefined })",
            [method, path, body],
        )


class Visits(Protocol):
    def __call__(self, who: str, time_zone: str = "UTC") -> Visit: ...


@pytest.fixture
def visits(browser: Browser, server: RunningServer, web_sample: SampleDatabase) -> Iterator[Visits]:
    """Opens tabs with the token of a name. Afterwards: no error in the console, and no request to another host."""
    opened: list[Visit] = []

    def visit(who: str, time_zone: str = "UTC") -> Visit:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, timezone_id=time_zone)
        page = context.new_page()
        page.set_default_timeout(WAIT_MILLISECONDS)
        one = Visit(page, server)

        def note_console(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                one.console.append(message.text)

        def note_request(request: Request) -> None:
            if not request.url.startswith(server.url + "/"):
                one.foreign.append(request.url)

        def note_response(response: Response) -> None:
            if ("/v1/" in response.url or "/introspect/" in response.url) and response.status == 200:
                one.answers.append(response)

        page.on("console", note_console)
        page.on("pageerror", lambda error: one.console.append(str(error)))
        page.on("request", note_request)
        page.on("response", note_response)
        page.add_init_script(f"sessionStorage.setItem('sennit.token', {web_sample.tokens[who]!r})")
        opened.append(one)
        one.go()
        page.get_by_role("searchbox").wait_for()
        return one

    yield visit
    for one in opened:
        one.page.context.close()
        assert one.console == []
        assert one.foreign == []


@pytest.fixture
def owner(visits: Visits) -> Visit:
    return visits("owner")
