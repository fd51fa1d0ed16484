"""Small windows over the screen: the keys, and the choice of a recipe."""

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

from sennit.apps.tui.lines import Lines
from sennit.apps.tui.text import BOLD, PLACE, PLAIN, brief, fitted

KEYS: Final = (
    ("/", "write a question"),
    ("Enter", "to the results; from a result to its text"),
    ("Esc", "back"),
    ("Tab", "next pane; Shift+Tab the one before"),
    ("↑ ↓  j k", "move or scroll; ↑ ↓ also while writing"),
    ("PgUp PgDn  Space", "a page; g first, G last"),
    ("e", "explain: what every source said about the result"),
    ("r  Ctrl+R", "choose the recipe"),
    ("o  Ctrl+O", "open the file in $EDITOR, at the line"),
    ("y", "copy the citation"),
    ("?  F1", "these keys"),
    ("q  Ctrl+C", "quit"),
)


class Help(ModalScreen[None]):
    """Every key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter", "dismiss", show=False),
    ]

    def compose(self) -> ComposeResult:
        wide = max(len(key) for key, _ in KEYS)
        rows = [Text.assemble((f"{key:<{wide}}", BOLD), "  ", meaning) for key, meaning in KEYS]
        window = Static(Text("\n").join(rows), classes="window", markup=False)
        window.border_title = "keys"
        yield window


class Choices(Lines):
    """Rows to choose one from."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j,tab,r,ctrl+r", "move(1)", show=False),
        Binding("up,k,shift+tab", "move(-1)", show=False),
        Binding("home,g", "go(0)", show=False),
        Binding("end,G", "go(-1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    class Chosen(Message):
        """This row, counted from 0."""

        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

    def __init__(self, choices: Sequence[Text], at: int, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._choices = choices
        self._at = at
        self.styles.width = max(row.cell_len for row in choices) + 6
        self.styles.height = len(choices) + 2

    def laid_out(self, width: int) -> int:  # noqa: ARG002 - a choice is one row at any width
        return len(self._choices)

    def row(self, at: int) -> Text:
        bar = ("▌ ", PLACE) if at == self._at else ("  ", PLAIN)
        return fitted(Text.assemble(bar, self._choices[at], end="", no_wrap=True), self.width)

    def action_move(self, steps: int) -> None:
        self.action_go(self._at + steps)

    def action_go(self, at: int) -> None:
        self._at = at % len(self._choices)
        self.scroll_to_region(Region(0, self._at, self.width, 1), animate=False)
        self.refresh()

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self._at))


class Recipes(ModalScreen[str | None]):
    """The ways to search, to choose from."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,left,h", "dismiss", show=False)]

    def __init__(self, choices: Sequence[tuple[str, str, str]], current: str) -> None:
        """Each choice is a name, its sources and what it is for."""
        super().__init__()
        self._names = [name for name, _, _ in choices]
        self._current = current
        shown = [(brief(name), brief(sources), brief(about)) for name, sources, about in choices]
        wide = max(len(name) for name, _, _ in shown)
        deep = max(len(about) for _, _, about in shown)
        self._rows = [
            Text.assemble((f"{name:<{wide}}  ", BOLD), f"{about:<{deep}}  ", (sources, PLACE))
            for name, sources, about in shown
        ]

    def compose(self) -> ComposeResult:
        window = Choices(self._rows, self._names.index(self._current), id="choices")
        window.add_class("window")
        window.entitle("recipe")
        yield window

    def on_choices_chosen(self, event: Choices.Chosen) -> None:
        self.dismiss(self._names[event.at])
