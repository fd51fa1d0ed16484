"""The list of results: a title with its score, where it is, and the words around what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region
from textual.message import Message

from sennit.apps.tui.items import Answer, Item
from sennit.apps.tui.lines import Pane
from sennit.apps.tui.text import (
    BOLD,
    DIM,
    NUMBER,
    PLACE,
    PLAIN,
    around,
    beside,
    brief,
    excerpt,
    fitted,
    safe,
    spans_of,
    tail,
)

NARROW: Final = 70
"""Cells below which a place needs a row of its own."""


class Results(Pane):
    """The results, one of them chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown,space,ctrl+d,ctrl+f", "page(1)", show=False),
        Binding("pageup,ctrl+u,ctrl+b", "page(-1)", show=False),
        Binding("home,g", "first", show=False),
        Binding("end,G", "last", show=False),
        Binding("enter,right,l", "app.read", show=False, priority=True),
    ]

    class Moved(Message):
        """Another result is chosen, or none."""

        def __init__(self, item: Item | None) -> None:
            super().__init__()
            self.item = item

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._answer: Answer | None = None
        self._at = 0
        self._drawn: dict[int, list[Text]] = {}
        self._hint: Sequence[Text] = ()

    @property
    def item(self) -> Item | None:
        """The chosen result."""
        return self._answer.items[self._at] if self._answer and self._answer.items else None

    def show(self, answer: Answer | None, hint: Sequence[Text]) -> None:
        """Show another answer from its first result on; where it has none, the hint."""
        self._answer = answer
        self._hint = hint
        self._at = 0
        self.scroll_to(y=0, animate=False)
        self.redraw()
        self._tell()

    def laid_out(self, width: int) -> int:
        self._drawn.clear()
        if self._answer is None or not self._answer.items:
            return len(self._hint)
        return len(self._answer.items) * _height(width)

    def row(self, at: int) -> Text:
        if self._answer is None or not self._answer.items:
            return fitted(self._hint[at], self.width)
        number, row = divmod(at, _height(self.width))
        if number not in self._drawn:
            item = self._answer.items[number]
            self._drawn[number] = _rows(item, self._answer.query, self.width - 2)
        bar = ("▌ ", PLACE) if number == self._at else ("  ", PLAIN)
        return Text.assemble(bar, self._drawn[number][row], end="", no_wrap=True)

    def action_move(self, steps: int) -> None:
        self._choose(self._at + steps)

    def action_page(self, pages: int) -> None:
        self._choose(self._at + pages * max(1, self.scrollable_content_region.height // _height(self.width)))

    def action_first(self) -> None:
        self._choose(0)

    def action_last(self) -> None:
        self._choose(len(self._answer.items) - 1 if self._answer else 0)

    def on_click(self, event: Click) -> None:
        self._choose((self.scroll_offset.y + event.y - 1) // _height(self.width))

    def _choose(self, at: int) -> None:
        if self._answer is None or not self._answer.items:
            return
        self._at = max(0, min(at, len(self._answer.items) - 1))
        self.keep_in_sight()
        self.refresh()
        self._tell()

    def keep_in_sight(self) -> None:
        height = _height(self.width)
        self.scroll_to_region(Region(0, self._at * height, self.width, height), animate=False)

    def _tell(self) -> None:
        count = len(self._answer.items) if self._answer else 0
        self.entitle("results", f"{self._at + 1} of {count}" if count else "")
        self.post_message(self.Moved(self.item))


def _height(width: int) -> int:
    """Rows of one result."""
    return 2 if width >= NARROW else 3


def _rows(item: Item, query: str, width: int) -> list[Text]:
    """A result: its heading, where it is, and as much of its text as there are rows for."""
    height = _height(width + 2)
    title, place, about = brief(item.title), brief(item.place), brief(item.about)
    score = Text(item.score, NUMBER)
    rank = Text(f"{item.rank:>2} ", DIM)
    if title and height == 2:
        room = max(width - cell_len(title) - len(item.score) - 8, width // 2)
        behind = Text.assemble((tail(place, room), PLACE), "  ", score)
        rows = [beside(Text.assemble(rank, (title, BOLD)), behind, width)]
    elif title:
        rows = [beside(Text.assemble(rank, (title, BOLD)), score, width)]
        rows.append(_joined((tail(place, width - 3), PLACE), (about, DIM), width))
    else:
        rows = [beside(Text.assemble(rank, (tail(place, width - len(item.score) - 4), PLACE)), score, width)]
    rows += [Text.assemble("   ", row) for row in _said(item, query, width - 3, height - len(rows))]
    return rows + [Text()] * (height - len(rows))


def _said(item: Item, query: str, width: int, rows: int) -> list[Text]:
    """The lines a grep found, or the piece of the text that answers best."""
    if not item.matched:
        return excerpt(item.text, query, width, rows)
    out = []
    for number, line in item.matched[:rows]:
        shown = safe(line.strip())
        found = around(shown, spans_of(shown, query, item.keywords), width - len(str(number)) - 1)
        out.append(Text.assemble((f"{number} ", NUMBER), found))
    return out


def _joined(first: tuple[str, Style], second: tuple[str, Style], width: int) -> Text:
    parts = [part for part in (first, second) if part[0]]
    line = Text("   ")
    for number, part in enumerate(parts):
        line.append(" · " if number else "", DIM).append(*part)
    return fitted(line, width)
