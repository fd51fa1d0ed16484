"""The application: query, results, preview and explanation."""

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

from sennit.apps.cli.exit_codes import describe_error
from sennit.apps.tui.dialogs import KeyHelp, ProjectDialog, RecipeDialog
from sennit.apps.tui.editor import editor_command
from sennit.apps.tui.explain import ExplainPane
from sennit.apps.tui.items import (
    GREP,
    ResultList,
    ResultRow,
    list_projects,
    list_recipes,
    run_query,
)
from sennit.apps.tui.preview import PreviewPane
from sennit.apps.tui.preview_content import PreviewContent, load_preview, record_preview
from sennit.apps.tui.results import ResultsPane
from sennit.apps.tui.text import BOLD, DIM, ERROR, PLAIN, sanitize_title
from sennit.engine.projects import NO_PROJECT
from sennit.errors import InvalidInput, SennitError
from sennit.filters import parse_filter
from sennit.places import ALL_PROJECTS, shown_path

if TYPE_CHECKING:
    from sennit.engine import Database

DEBOUNCE_SECONDS: Final = 0.12
"""Seconds without a key before a search starts: more than the time between keys, less than one notices."""

SLOW_SEARCH_SECONDS: Final = 0.3
"""Seconds after which the status line says that a search is running."""

QUERY_KEY_HINTS: Final = (
    ("Enter", "results"), ("↑↓", "move"), ("Tab", "next pane"), ("^R", "recipe"), ("^F", "filter"), ("F1", "keys"), ("^C", "quit"),
)  # fmt: skip
RESULT_KEY_HINTS: Final = (
    ("/", "search"), ("f", "filter"), ("Enter", "read"), ("e", "explain"), ("r", "recipe"), ("o", "open"),
    ("?", "keys"), ("q", "quit"),
)  # fmt: skip

WELCOME: Final = (
    Text("Type a question, a few words or a name.", BOLD),
    Text(),
    Text("Results appear while you type.", DIM),
    Text("Enter goes to the results, F1 shows all keys.", DIM),
)


class QueryInput(Input):
    """The query; the arrow keys move through the results while it is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.move(1)", show=False),
        Binding("up", "app.move(-1)", show=False),
        # Keys that move the focus have priority, as in MainPane.
        Binding("enter", "app.results", show=False, priority=True),
        Binding("escape", "app.go_back", show=False, priority=True),
        Binding("ctrl+f", "app.edit_filter", show=False, priority=True),
        Binding("tab", "app.focus_next", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", show=False, priority=True),
    ]

    async def _on_key(self, event: Key) -> None:
        """Run bindings in the order of the keys; otherwise Ctrl+U would also delete what is typed after it."""
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            event.stop()
            event.prevent_default()
            await self.run_action(binding.action)


class FilterInput(QueryInput):
    """The filter, in its text form."""


class SearchFinished(Message):
    """A search has returned results or an error."""

    def __init__(self, search_number: int, outcome: ResultList | Exception) -> None:
        super().__init__()
        self.search_number = search_number
        self.outcome = outcome


class PreviewLoaded(Message):
    """The preview of a result has been loaded."""

    def __init__(self, content: PreviewContent, query: str) -> None:
        super().__init__()
        self.content = content
        self.query = query


class SennitApp(App[None]):
    """The terminal interface of sennit."""

    TITLE = "sennit"
    CSS_PATH = "sennit.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "recipe", show=False),
        Binding("ctrl+p", "project", show=False),
        Binding("ctrl+o", "open", show=False),
        Binding("ctrl+f", "edit_filter", show=False),
        Binding("f1", "keys", show=False),
        Binding("ctrl+c,ctrl+q", "quit", show=False, priority=True),
    ]

    def __init__(self, db: Database, *, recipe: str, project: str | None = None, query: str = "") -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        # Over a slow connection, the user would wait for every frame.
        self.animation_level = "none"
        self._db = db
        self.recipe = recipe
        self.project = project
        """The project that searches are limited to; None for all."""
        self._initial_query = query
        self._search_number = 0
        self._is_searching = False
        self._debounce_timer: Timer | None = None
        self.result_list: ResultList | None = None

    def _database_name(self) -> str:
        path = self._db.path
        return self._db.admin.location if path is None else shown_path(str(path))

    def compose(self) -> ComposeResult:
        # Kept as attributes, because a timer or a search may end after the screen has been removed.
        self._prompt = Static(id="recipe", markup=False)
        self._query = QueryInput(placeholder="Search", id="query", compact=True, select_on_focus=False)
        self._filter = FilterInput(
            placeholder="kind = 'note' and timestamp >= 2026-01-01",
            id="filter",
            compact=True,
            select_on_focus=False,
        )
        self._filter_error = Static(id="filter-error", markup=False)
        self._results = ResultsPane(id="results")
        self._preview = PreviewPane(id="preview")
        self._explain = ExplainPane(id="explain")
        self._status = Static(id="status", markup=False)
        self._key_hints = Static(id="keys", markup=False)
        with Horizontal(id="top"):
            yield self._prompt
            yield self._query
            yield Static(sanitize_title(self._database_name()), id="database", markup=False)
        with Horizontal(id="filters"):
            yield Static("filter ❯ ", id="filter-label", markup=False)
            yield self._filter
            yield self._filter_error
        with Container(id="body"):
            yield self._results
            with Vertical(id="side"):
                yield self._preview
                yield self._explain
        yield self._status
        yield self._key_hints

    def on_mount(self) -> None:
        self._query.cursor_blink = self._filter.cursor_blink = False
        self._query.focus()
        self._show_recipe()
        self._show(None, WELCOME)
        if self._initial_query.strip():
            with self._query.prevent(Input.Changed):
                self._query.value = self._initial_query
            self._query.action_end()
            self._start_search()
            self._results.focus()

    # Search.

    @on(Input.Changed, "#query,#filter")
    def _query_changed(self) -> None:
        self._cancel_pending()
        self._debounce_timer = self.set_timer(DEBOUNCE_SECONDS, self._start_search)

    def _cancel_pending(self) -> None:
        """Forget the pending or running search; its result will be ignored."""
        self._search_number += 1
        self._is_searching = False
        if self._debounce_timer is not None:
            self._debounce_timer.stop()
            self._debounce_timer = None

    def _start_search(self) -> None:
        self._cancel_pending()
        query = self._query.value.strip()
        if not query:
            self._show(None, WELCOME)
            return
        filters = self._filter.value.strip()
        problem = self._filter_problem(filters)
        self._filter_error.update(Text(problem, no_wrap=True, overflow="ellipsis"))
        if problem:
            return
        self._is_searching = True
        self.set_timer(SLOW_SEARCH_SECONDS, partial(self._show_searching, self._search_number))
        self._search(self._search_number, query, self.recipe, filters, self.project)

    def _show_searching(self, search_number: int) -> None:
        if search_number == self._search_number and self._is_searching:
            self._set_status("searching…", DIM)

    @work(thread=True, group="search", exit_on_error=False)
    def _search(self, search_number: int, query: str, recipe: str, filters: str, project: str | None) -> None:
        outcome: ResultList | Exception
        try:
            outcome = run_query(self._db, query, recipe, filters, project)
        except Exception as error:  # noqa: BLE001 - every error is shown on the screen
            outcome = error
        self.post_message(SearchFinished(search_number, outcome))

    @on(SearchFinished)
    def _search_finished(self, event: SearchFinished) -> None:
        if event.search_number != self._search_number:
            return
        self._is_searching = False
        if isinstance(event.outcome, Exception):
            self._show(None, hint=())
            self._set_status(f"Error: {describe_error(event.outcome).message}", ERROR)
        else:
            self._show(event.outcome, hint=_no_results_hint(self.recipe, event.outcome.hints))

    def _filter_problem(self, filters: str) -> str:
        """Return what is wrong with the filter, or an empty text. The results stay until it is right."""
        if not filters:
            return ""
        if self.recipe == GREP and GREP not in self._db.recipes:
            return "grep takes no filter"
        try:
            parse_filter(filters)
        except InvalidInput as error:
            return sanitize_title(str(error).partition("\n")[0])
        return ""

    # Display.

    def _show(self, result_list: ResultList | None, hint: Sequence[Text]) -> None:
        self.result_list = result_list
        self._results.show(result_list, hint)
        if result_list is None:
            self._set_status("", PLAIN)
        else:
            self._set_status(result_list.status, PLAIN, result_list.warnings)

    def _set_status(self, text: str, style: Style, warnings: tuple[str, ...] = ()) -> None:
        line = Text(sanitize_title(text), style)
        for warning in warnings:
            line.append("\n! ", ERROR).append(sanitize_title(warning), BOLD)
        self._status.update(line)

    def _show_recipe(self) -> None:
        limited = "" if self.project in NO_PROJECT else f" in {sanitize_title(str(self.project))}"
        self._prompt.update(Text(f"{sanitize_title(self.recipe)}{limited} ❯ "))

    @on(ResultsPane.SelectionChanged)
    def _selection_changed(self, event: ResultsPane.SelectionChanged) -> None:
        self._explain.show(self.result_list, event.item)
        if event.item is None or self.result_list is None:
            self._preview.show(None, "")
        else:
            self._load_preview(event.item, self.result_list.query)

    @work(thread=True, group="read", exit_on_error=False)
    def _load_preview(self, item: ResultRow, query: str) -> None:
        try:
            content = load_preview(self._db, item)
        except Exception as error:  # noqa: BLE001 - the record's text can be shown whatever happened to the file
            content = record_preview(item, describe_error(error).message)
        self.post_message(PreviewLoaded(content, query))

    @on(PreviewLoaded)
    def _preview_loaded(self, event: PreviewLoaded) -> None:
        if event.content.item is self._results.item:
            self._preview.show(event.content, event.query)

    @on(DescendantFocus)
    def _show_key_hints(self) -> None:
        keys = QUERY_KEY_HINTS if isinstance(self.focused, QueryInput) else RESULT_KEY_HINTS
        self.screen.set_class(self.focused is self._filter or bool(self._filter.value), "-filtering")
        line = Text(no_wrap=True, overflow="ellipsis")
        for key, meaning in keys:
            line.append(key, BOLD).append(f" {meaning}  ", DIM)
        self._key_hints.update(line)

    # Keys.

    def action_edit_query(self) -> None:
        self.screen.set_focus(self._query)

    def action_results(self) -> None:
        # The screen already shows the results of the query, unless a key has just been pressed.
        if self._debounce_timer is not None:
            self._start_search()
        self.screen.set_focus(self._results)

    def action_read(self) -> None:
        if self._results.item is not None:
            self.screen.set_focus(self._preview if self._preview.display else self._explain)

    def action_move(self, steps: int) -> None:
        self._results.action_move(steps)

    def action_go_back(self) -> None:
        """Go back by one step: to the results, to the query, then remove the filter, then the query."""
        if self._results.has_focus:
            self.screen.set_focus(self._query)
        elif not isinstance(self.focused, QueryInput):
            self.screen.set_focus(self._results)
        elif self.screen.has_class("-filtering"):
            self._filter.value = ""
            self.screen.set_focus(self._query)
            self.screen.remove_class("-filtering")
        else:
            self._query.value = ""

    def action_edit_filter(self) -> None:
        self.screen.add_class("-filtering")
        self.screen.set_focus(self._filter)

    def action_explain(self) -> None:
        self.screen.toggle_class("-explaining")
        if self._explain.has_focus or self._preview.has_focus:
            self.screen.set_focus(self._results)

    def action_recipe(self) -> None:
        self.push_screen(RecipeDialog(list_recipes(self._db, self.project), self.recipe), self._use_recipe)

    def _use_recipe(self, recipe: str | None) -> None:
        if recipe is not None and recipe != self.recipe:
            self.recipe = recipe
            self._show_recipe()
            self._start_search()

    def action_project(self) -> None:
        choices = list_projects(self._db)
        if len(choices) == 1:
            self._set_status("There are no projects: no folder is indexed.", PLAIN)
            return
        self.push_screen(ProjectDialog(choices, self.project or ALL_PROJECTS), self._use_project)

    def _use_project(self, project: str | None) -> None:
        if project is not None and project != (self.project or ALL_PROJECTS):
            self.project = None if project == ALL_PROJECTS else project
            self._show_recipe()
            self._start_search()

    def action_keys(self) -> None:
        self.push_screen(KeyHelp())

    def action_copy(self) -> None:
        item = self._results.item
        if item is not None:
            self.copy_to_clipboard(item.citation)
            self._set_status(f"Copied {item.citation}", PLAIN)

    def action_feedback(self, action: str) -> None:
        """Record that the selected result helped, or that it is wrong."""
        item = self._results.item
        if item is None:
            return
        if not item.query_id:
            self._set_status("Feedback is about the result of a search, not of a grep.", ERROR)
            return
        try:
            self._db.feedback.add(item.query_id, action, item.id, application="tui")
        except SennitError as error:
            self._set_status(str(error), ERROR)
            return
        said = "helped" if action == "click" else "is wrong"
        self._set_status(f"Recorded that {item.citation} {said}", PLAIN)

    def action_open(self) -> None:
        content = self._preview.content
        if content is None:
            return
        if content.file is None:
            self._set_status(f"There is no file to open for {content.item.citation}. {content.note}", ERROR)
            return
        try:
            editor = editor_command(content.file, content.start)
            with self.suspend():
                subprocess.run(editor, check=False)
        except SuspendNotSupported:
            self._set_status("An editor cannot be started from this terminal.", ERROR)
        except (InvalidInput, OSError) as error:
            self._set_status(f"Error: {describe_error(error).message}", ERROR)


def _no_results_hint(recipe: str, reasons: Sequence[str]) -> Sequence[Text]:
    return (
        Text("Nothing found.", BOLD),
        Text(),
        *(Text(sanitize_title(reason)) for reason in reasons),
        *([Text()] if reasons else []),
        Text(f"r  choose another recipe than {sanitize_title(recipe)}", DIM),
        Text("f  filter", DIM),
        Text("/  change the query", DIM),
    )
