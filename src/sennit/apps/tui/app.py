"""The program: a question, its results, the text around one of them, and why it is there."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.style import Style
from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.events import DescendantFocus, Key
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from sennit.apps.cli.exits import describe_error
from sennit.apps.tui.editor import command
from sennit.apps.tui.explain import Explain
from sennit.apps.tui.items import Answer, Item, ask, recipes_of, shortened
from sennit.apps.tui.pages import Page, own_page, page_of
from sennit.apps.tui.preview import Preview
from sennit.apps.tui.results import Results
from sennit.apps.tui.text import BOLD, DIM, ERROR, PLAIN, brief
from sennit.apps.tui.windows import Help, Recipes
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from sennit.engine import Database

PAUSE: Final = 0.12
"""Seconds without a key after which a question is asked: less than a reader notices, more than a typist's beat."""

LONG: Final = 0.3
"""Seconds after which a search that has not answered is said to be running."""

WRITING: Final = (
    ("Enter", "results"), ("↑↓", "move"), ("Tab", "next pane"), ("^R", "recipe"), ("F1", "keys"), ("^C", "quit"),
)  # fmt: skip
READING: Final = (
    ("/", "search"), ("Enter", "read"), ("e", "explain"), ("r", "recipe"), ("o", "open"), ("y", "copy"),
    ("?", "keys"), ("q", "quit"),
)  # fmt: skip

WELCOME: Final = (
    Text("  Ask anything: a question, a few words, a name.", BOLD),
    Text(),
    Text("  Results come while you write.", DIM),
    Text("  Enter goes to them, F1 shows all keys.", DIM),
)


class Query(Input):
    """The question; the results can be moved through while it is written."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.move(1)", show=False),
        Binding("up", "app.move(-1)", show=False),
        # Those that lead away have priority, as in Pane.
        Binding("enter", "app.results", show=False, priority=True),
        Binding("escape", "app.leave", show=False, priority=True),
        Binding("tab", "app.focus_next", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", show=False, priority=True),
    ]

    async def _on_key(self, event: Key) -> None:
        """Edit in the order of the keys: left to the screen, Ctrl+U would also take what was typed after it."""
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            event.stop()
            event.prevent_default()
            await self.run_action(binding.action)


class Answered(Message):
    """A search has ended."""

    def __init__(self, ticket: int, outcome: Answer | Exception) -> None:
        super().__init__()
        self.ticket = ticket
        self.outcome = outcome


class Read(Message):
    """The text of a result is there."""

    def __init__(self, page: Page, query: str) -> None:
        super().__init__()
        self.page = page
        self.asked = query


class SennitApp(App[None]):
    """sennit in a terminal."""

    TITLE = "sennit"
    CSS_PATH = "sennit.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "recipe", show=False),
        Binding("ctrl+o", "open", show=False),
        Binding("f1", "keys", show=False),
        Binding("ctrl+c,ctrl+q", "quit", show=False, priority=True),
    ]

    def __init__(self, db: Database, *, recipe: str, query: str = "") -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        # Over a slow line every frame is waited for.
        self.animation_level = "none"
        self._db = db
        self.recipe = recipe
        self._first = query
        self._ticket = 0
        self._waiting = False
        self._pause: Timer | None = None
        self.answer: Answer | None = None

    def compose(self) -> ComposeResult:
        # Kept by name: a timer or an answer may still come when the screen is already taken down.
        self._prompt = Static(id="recipe", markup=False)
        self._query = Query(placeholder="Search", id="query", compact=True, select_on_focus=False)
        self._results = Results(id="results")
        self._preview = Preview(id="preview")
        self._explain = Explain(id="explain")
        self._status = Static(id="status", markup=False)
        self._hints = Static(id="keys", markup=False)
        with Horizontal(id="top"):
            yield self._prompt
            yield self._query
            yield Static(brief(shortened(str(self._db.path or ""))), id="database", markup=False)
        with Container(id="body"):
            yield self._results
            with Vertical(id="side"):
                yield self._preview
                yield self._explain
        yield self._status
        yield self._hints

    def on_mount(self) -> None:
        self._query.cursor_blink = False
        self._query.focus()
        self._show_recipe()
        self._show(None, WELCOME)
        if self._first.strip():
            with self._query.prevent(Input.Changed):
                self._query.value = self._first
            self._query.action_end()
            self._ask()
            self._results.focus()

    # Asking.

    @on(Input.Changed, "#query")
    def _typed(self) -> None:
        self._hold()
        self._pause = self.set_timer(PAUSE, self._ask)

    def _hold(self) -> None:
        """Let what was asked be forgotten."""
        self._ticket += 1
        self._waiting = False
        if self._pause is not None:
            self._pause.stop()
            self._pause = None

    def _ask(self) -> None:
        self._hold()
        query = self._query.value.strip()
        if not query:
            self._show(None, WELCOME)
            return
        self._waiting = True
        self.set_timer(LONG, partial(self._still_waiting, self._ticket))
        self._search(self._ticket, query, self.recipe)

    def _still_waiting(self, ticket: int) -> None:
        if ticket == self._ticket and self._waiting:
            self._say("searching…", DIM)

    @work(thread=True, group="search", exit_on_error=False)
    def _search(self, ticket: int, query: str, recipe: str) -> None:
        outcome: Answer | Exception
        try:
            outcome = ask(self._db, query, recipe)
        except Exception as error:  # noqa: BLE001 - whatever happens in a search, the screen says it
            outcome = error
        self.post_message(Answered(ticket, outcome))

    @on(Answered)
    def _answered(self, event: Answered) -> None:
        if event.ticket != self._ticket:
            return
        self._waiting = False
        if isinstance(event.outcome, Exception):
            self._show(None, hint=())
            self._say(f"Error: {describe_error(event.outcome).message}", ERROR)
        else:
            self._show(event.outcome, hint=_nothing(self.recipe))

    # Showing.

    def _show(self, answer: Answer | None, hint: Sequence[Text]) -> None:
        self.answer = answer
        self._results.show(answer, hint)
        if answer is None:
            self._say("", PLAIN)
        else:
            self._say(answer.status, PLAIN, answer.warnings)

    def _say(self, text: str, style: Style, warnings: tuple[str, ...] = ()) -> None:
        line = Text(brief(text), style)
        for warning in warnings:
            line.append("\n! ", ERROR).append(brief(warning), BOLD)
        self._status.update(line)

    def _show_recipe(self) -> None:
        self._prompt.update(Text(f"{brief(self.recipe)} ❯ "))

    @on(Results.Moved)
    def _moved(self, event: Results.Moved) -> None:
        self._explain.show(self.answer, event.item)
        if event.item is None or self.answer is None:
            self._preview.show(None, "")
        else:
            self._read(event.item, self.answer.query)

    @work(thread=True, group="read", exit_on_error=False)
    def _read(self, item: Item, query: str) -> None:
        try:
            page = page_of(self._db, item)
        except Exception as error:  # noqa: BLE001 - the record is there to be read, whatever became of the file
            page = own_page(item, describe_error(error).message)
        self.post_message(Read(page, query))

    @on(Read)
    def _has_read(self, event: Read) -> None:
        if event.page.item is self._results.item:
            self._preview.show(event.page, event.asked)

    @on(DescendantFocus)
    def _show_keys(self) -> None:
        keys = WRITING if isinstance(self.focused, Query) else READING
        line = Text(no_wrap=True, overflow="ellipsis")
        for key, meaning in keys:
            line.append(key, BOLD).append(f" {meaning}  ", DIM)
        self._hints.update(line)

    # Keys.

    def action_write(self) -> None:
        self.screen.set_focus(self._query)

    def action_results(self) -> None:
        # What is on the screen answers the question already, unless a key has just been pressed.
        if self._pause is not None:
            self._ask()
        self.screen.set_focus(self._results)

    def action_read(self) -> None:
        if self._results.item is not None:
            self.screen.set_focus(self._preview if self._preview.display else self._explain)

    def action_move(self, steps: int) -> None:
        self._results.action_move(steps)

    def action_leave(self) -> None:
        self.screen.set_focus(self._query if self._results.has_focus else self._results)

    def action_explain(self) -> None:
        self.screen.toggle_class("-explaining")
        if self._explain.has_focus or self._preview.has_focus:
            self.screen.set_focus(self._results)

    def action_recipe(self) -> None:
        self.push_screen(Recipes(recipes_of(self._db), self.recipe), self._switch)

    def _switch(self, recipe: str | None) -> None:
        if recipe is not None and recipe != self.recipe:
            self.recipe = recipe
            self._show_recipe()
            self._ask()

    def action_keys(self) -> None:
        self.push_screen(Help())

    def action_copy(self) -> None:
        item = self._results.item
        if item is not None:
            self.copy_to_clipboard(item.citation)
            self._say(f"Copied {item.citation}", PLAIN)

    def action_open(self) -> None:
        page = self._preview.page
        if page is None:
            return
        if page.file is None:
            self._say(f"There is no file to open for {page.item.citation}. {page.note}", ERROR)
            return
        try:
            editor = command(page.file, page.start)
            with self.suspend():
                subprocess.run(editor, check=False)
        except SuspendNotSupported:
            self._say("This terminal cannot be handed to an editor.", ERROR)
        except (InvalidInput, OSError) as error:
            self._say(f"Error: {describe_error(error).message}", ERROR)


def _nothing(recipe: str) -> Sequence[Text]:
    return (
        Text("  Nothing found.", BOLD),
        Text(),
        Text(f"  r  try another recipe than {brief(recipe)}", DIM),
        Text("  /  ask in other words", DIM),
    )
