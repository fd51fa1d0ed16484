"""The preview: lines with their numbers, the result's own marked, and in them what was asked for."""

from __future__ import annotations

from rich.text import Text

from sennit.apps.tui.lines import Pane
from sennit.apps.tui.pages import Page
from sennit.apps.tui.text import DIM, NUMBER, PLACE, PLAIN, marked, safe, spans_of, wrapped

ABOVE = 2
"""Rows of what comes before a result that stay in sight."""


class Preview(Pane):
    """A page, scrolled to the result."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.page: Page | None = None
        self._query = ""
        self._drawn: list[Text] = []
        self._start = 0
        self._best = 0
        """The row that has most of what was asked for."""
        self._placed = False
        """Whether this page has been scrolled to the result; it may come before the pane has a size."""

    def show(self, page: Page | None, query: str) -> None:
        """Show another page, or none."""
        self.page = page
        self._query = query
        self.redraw()
        self._placed = False
        # Not before the pane knows how long the page is.
        self.call_after_refresh(self._to_start)
        if page is None:
            self.entitle("preview")
        else:
            self.entitle(page.item.place, page.note)

    def _to_start(self) -> None:
        height = self.scrollable_content_region.height
        self._placed = self.width > 0
        top = self._start - ABOVE
        if self._best >= top + height:
            top = self._best - height // 3
        # By force: otherwise nothing happens until the scroll bar has been drawn.
        self.scroll_to(y=max(0, top), animate=False, immediate=True, force=True)

    def keep_in_sight(self) -> None:
        if (
            not self._placed
            or not 0 <= self._start - self.scroll_offset.y < self.scrollable_content_region.height - ABOVE
        ):
            self._to_start()

    def laid_out(self, width: int) -> int:
        self._drawn = []
        self._start = self._best = most = 0
        if self.page is None:
            return 0
        first, chosen = self.page.first, self.page.chosen
        digits = 0 if first is None else len(str(first + len(self.page.lines)))
        room = max(width - digits - 3, 1)
        for at, line in enumerate(self.page.lines):
            number = None if first is None else first + at
            inside = chosen is None or number is None or chosen[0] <= number <= chosen[1]
            if chosen and number == self.page.start:
                self._start = len(self._drawn)
            shown = safe(line)
            spans = spans_of(shown, self._query, self.page.item.keywords) if inside else []
            if len(spans) > most:
                most, self._best = len(spans), len(self._drawn)
            text = marked(shown, spans, PLAIN if inside else DIM)
            self._drawn += self._rows(text, "" if number is None else str(number), digits, room, inside)
        return len(self._drawn)

    def _rows(self, text: Text, number: str, digits: int, room: int, inside: bool) -> list[Text]:
        bar = ("▌ ", PLACE) if inside and self.page and self.page.chosen else ("  ", PLAIN)
        out = []
        for at, part in enumerate(wrapped(text, room)):
            gutter = f"{number if at == 0 else '':>{digits}} " if digits else ""
            out.append(Text.assemble((gutter, NUMBER if inside else DIM), bar, part, end="", no_wrap=True))
        return out

    def row(self, at: int) -> Text:
        return self._drawn[at]
