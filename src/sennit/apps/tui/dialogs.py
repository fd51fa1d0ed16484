"""Dialogs: the list of keys, and the choice of a recipe or a project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from sennit.apps.tui.items import ProjectChoice, RecipeChoice
from sennit.apps.tui.pane import ScrollPane
from sennit.apps.tui.text import ACCENT, BOLD, DIM, NUMBER, PLAIN, sanitize_title, truncate

KEYS: Final = (
    ("/", "edit the query"),
    ("Enter", "go to the results; in the results, read the text"),
    ("Esc", "back; then it removes the filter, then the query"),
    ("Tab", "next pane; Shift+Tab: previous pane"),
    ("↑ ↓  j k", "move or scroll; ↑ ↓ work in the query too"),
    ("PgUp PgDn  Space", "one page; g: first, G: last"),
    ("f  Ctrl+F", "filter the results, such as kind = 'note'"),
    ("e", "explain: rank and score in every source"),
    ("r  Ctrl+R", "choose the recipe"),
    ("p  Ctrl+P", "choose the project"),
    ("o  Ctrl+O", "open the file in $EDITOR, at the line"),
    ("y", "copy the citation"),
    ("+  -", "record that the result helped, or is wrong"),
    ("?  F1", "these keys"),
    ("q  Ctrl+C", "quit"),
)


class KeyHelp(ModalScreen[None]):
    """Lists every key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter", "dismiss", show=False),
    ]

    def compose(self) -> ComposeResult:
        key_width = max(len(key) for key, _ in KEYS)
        rows = [Text.assemble((f"{key:<{key_width}}", BOLD), "  ", meaning) for key, meaning in KEYS]
        window = Static(Text("\n").join(rows), classes="window", markup=False)
        window.border_title = "keys"
        yield window


class ChoiceList(ScrollPane):
    """Rows, one of which can be chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j,tab,r,ctrl+r,p,ctrl+p", "move(1)", show=False),
        Binding("up,k,shift+tab", "move(-1)", show=False),
        Binding("home,g", "go(0)", show=False),
        Binding("end,G", "go(-1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    class Chosen(Message):
        """A row was chosen; `index` counts from 0."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, choices: Sequence[Text], selected: int, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._choices = choices
        self._selected = selected
        self.styles.width = max(row.cell_len for row in choices) + 6
        self.styles.height = len(choices) + 2

    def layout_rows(self, width: int) -> int:  # noqa: ARG002 - a choice is one row at any width
        return len(self._choices)

    def row(self, index: int) -> Text:
        bar = ("▌ ", ACCENT) if index == self._selected else ("  ", PLAIN)
        return truncate(Text.assemble(bar, self._choices[index], end="", no_wrap=True), self.width)

    def action_move(self, steps: int) -> None:
        self.action_go(self._selected + steps)

    def action_go(self, index: int) -> None:
        self._selected = index % len(self._choices)
        self.scroll_to_region(Region(0, self._selected, self.width, 1), animate=False)
        self.refresh()

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self._selected))


class ChoiceDialog(ModalScreen[str | None]):
    """A list of names to choose from."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,left,h", "dismiss", show=False)]

    def __init__(
        self, title: tuple[str, str], names: Sequence[str], rows: Sequence[Text], current: str
    ) -> None:
        super().__init__()
        self._title = title
        self._names = names
        self._rows = rows
        self._current = current

    def compose(self) -> ComposeResult:
        selected = self._names.index(self._current) if self._current in self._names else 0
        window = ChoiceList(self._rows, selected, id="choices")
        window.add_class("window")
        window.set_title(*self._title)
        yield window

    def on_choice_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(self._names[event.index])


class RecipeDialog(ChoiceDialog):
    """A list of recipes to choose from."""

    def __init__(self, choices: Sequence[RecipeChoice], current: str) -> None:
        shown = [RecipeChoice(*map(sanitize_title, choice)) for choice in choices]
        name_width = max(len(choice.name) for choice in shown)
        count_width = max(len(choice.records) for choice in shown)
        about_width = max(len(choice.about) for choice in shown)
        rows = [
            Text.assemble(
                (f"{choice.name:<{name_width}}  ", BOLD),
                (f"{choice.records:>{count_width}}  ", DIM if choice.records == "0" else NUMBER),
                f"{choice.about:<{about_width}}  ",
                (choice.sources, ACCENT),
            )
            for choice in shown
        ]
        names = [choice.name for choice in choices]
        super().__init__(("recipe", "with the number of records it searches"), names, rows, current)


class ProjectDialog(ChoiceDialog):
    """A list of projects to choose from."""

    def __init__(self, choices: Sequence[ProjectChoice], current: str) -> None:
        shown = [ProjectChoice(*map(sanitize_title, choice)) for choice in choices]
        name_width = max(len(choice.name) for choice in shown)
        rows = [
            Text.assemble(
                (f"{choice.name:<{name_width}}  ", BOLD),
                f"{choice.folder}  ",
                (choice.revision, ACCENT),
            )
            for choice in shown
        ]
        super().__init__(("project", ""), [choice.name for choice in choices], rows, current)
