"""The list of results: title, relevance, citation, and the best matching text."""

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

from sennit.apps.tui.items import ResultList, ResultRow
from sennit.apps.tui.pane import MainPane
from sennit.apps.tui.text import (
    ACCENT,
    BOLD,
    DIM,
    NUMBER,
    PLAIN,
    align_right,
    best_excerpt,
    crop_around,
    find_spans,
    sanitize_line,
    sanitize_title,
    truncate,
    truncate_start,
    wrap_text,
)

NARROW_CELLS: Final = 70
"""Below this width, a citation gets a row of its own."""


class ResultsPane(MainPane):
    """The results, one of them selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown,space,ctrl+d,ctrl+f", "page(1)", show=False),
        Binding("pageup,ctrl+u,ctrl+b", "page(-1)", show=False),
        Binding("home,g", "first", show=False),
        Binding("end,G", "last", show=False),
        Binding("enter,right,l", "app.read", show=False, priority=True),
    ]

    class SelectionChanged(Message):
        """Another result is selected, or none."""

        def __init__(self, item: ResultRow | None) -> None:
            super().__init__()
            self.item = item

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._result_list: ResultList | None = None
        self._selected = 0
        self._rendered: dict[int, list[Text]] = {}
        self._hint: Sequence[Text] = ()
        self._hint_rows: list[Text] = []

    @property
    def item(self) -> ResultRow | None:
        """The selected result."""
        return (
            self._result_list.items[self._selected] if self._result_list and self._result_list.items else None
        )

    def show(self, result_list: ResultList | None, hint: Sequence[Text]) -> None:
        """Show other results and select the first; show the hint if there are none."""
        self._result_list = result_list
        self._hint = hint
        self._selected = 0
        self.scroll_to(y=0, animate=False)
        self.redraw()
        self._notify()

    def layout_rows(self, width: int) -> int:
        self._rendered.clear()
        if self._result_list is None or not self._result_list.items:
            self._hint_rows = [row for text in self._hint for row in wrap_text(text, width - 4)]
            return len(self._hint_rows)
        return len(self._result_list.items) * _height(width)

    def row(self, index: int) -> Text:
        if self._result_list is None or not self._result_list.items:
            return Text.assemble("  ", self._hint_rows[index], end="", no_wrap=True)
        number, row = divmod(index, _height(self.width))
        if number not in self._rendered:
            item = self._result_list.items[number]
            self._rendered[number] = _rows(item, self._result_list.query, self.width - 2)
        bar = ("▌ ", ACCENT) if number == self._selected else ("  ", PLAIN)
        return Text.assemble(bar, self._rendered[number][row], end="", no_wrap=True)

    def action_move(self, steps: int) -> None:
        self._select(self._selected + steps)

    def action_page(self, pages: int) -> None:
        self._select(
            self._selected + pages * max(1, self.scrollable_content_region.height // _height(self.width))
        )

    def action_first(self) -> None:
        self._select(0)

    def action_last(self) -> None:
        self._select(len(self._result_list.items) - 1 if self._result_list else 0)

    def on_click(self, event: Click) -> None:
        self._select((self.scroll_offset.y + event.y - 1) // _height(self.width))

    def _select(self, index: int) -> None:
        if self._result_list is None or not self._result_list.items:
            return
        self._selected = max(0, min(index, len(self._result_list.items) - 1))
        self.keep_selection_visible()
        self.refresh()
        self._notify()

    def keep_selection_visible(self) -> None:
        height = _height(self.width)
        self.scroll_to_region(Region(0, self._selected * height, self.width, height), animate=False)

    def _notify(self) -> None:
        count = len(self._result_list.items) if self._result_list else 0
        remark = self._result_list.remark if self._result_list else ""
        self.set_title(remark or "results", f"{self._selected + 1} of {count}" if count else "")
        self.post_message(self.SelectionChanged(self.item))


def _height(width: int) -> int:
    """Return the number of rows of one result."""
    return 2 if width >= NARROW_CELLS else 3


def _rows(item: ResultRow, query: str, width: int) -> list[Text]:
    """Return the rows of a result: heading, citation, and as much text as fits."""
    height = _height(width + 2)
    title, citation, about = (
        sanitize_title(item.title),
        sanitize_title(item.short_citation),
        sanitize_title(item.about),
    )
    score = Text(item.score, NUMBER)
    rank = Text(f"{item.rank:>2} ", DIM)
    if title and height == 2:
        citation_width = max(width - cell_len(title) - len(item.score) - 8, width // 2)
        details = Text.assemble((truncate_start(citation, citation_width), ACCENT), "  ", score)
        rows = [align_right(Text.assemble(rank, (title, BOLD)), details, width)]
    elif title:
        rows = [align_right(Text.assemble(rank, (title, BOLD)), score, width)]
        rows.append(_join_parts((truncate_start(citation, width - 3), ACCENT), (about, DIM), width))
    else:
        rows = [
            align_right(
                Text.assemble(rank, (truncate_start(citation, width - len(item.score) - 4), ACCENT)),
                score,
                width,
            )
        ]
    rows += [Text.assemble("   ", row) for row in _text_rows(item, query, width - 3, height - len(rows))]
    return rows + [Text()] * (height - len(rows))


def _text_rows(item: ResultRow, query: str, width: int, rows: int) -> list[Text]:
    """Return the matching lines of a grep, or the best matching part of the text."""
    if not item.matched:
        return best_excerpt(item.text, query, width, rows)
    out = []
    for number, line in item.matched[:rows]:
        shown = sanitize_line(line.strip())
        cropped = crop_around(shown, find_spans(shown, query, item.keywords), width - len(str(number)) - 1)
        out.append(Text.assemble((f"{number} ", NUMBER), cropped))
    return out


def _join_parts(first: tuple[str, Style], second: tuple[str, Style], width: int) -> Text:
    parts = [part for part in (first, second) if part[0]]
    line = Text("   ")
    for number, part in enumerate(parts):
        line.append(" · " if number else "", DIM).append(*part)
    return truncate(line, width)
