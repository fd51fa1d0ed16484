"""The preview pane: numbered lines with the result marked and the matches highlighted."""

from __future__ import annotations

from rich.text import Text

from sennit.apps.cli.syntax import highlight_code
from sennit.apps.tui.pane import MainPane
from sennit.apps.tui.preview_content import PreviewContent
from sennit.apps.tui.text import ACCENT, DIM, NUMBER, PLAIN, find_spans, highlight, sanitize_line, wrap_text

CONTEXT_ROWS_ABOVE = 2
"""Rows before the result that stay visible."""


class PreviewPane(MainPane):
    """Shows the content around a result, scrolled to the result."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.content: PreviewContent | None = None
        self._query = ""
        self._rendered: list[Text] = []
        self._start_row = 0
        self._best_row = 0
        """The row with the most matches."""
        self._is_positioned = False
        """Whether the pane has been scrolled to the result; the content may arrive before the pane has a size."""

    def show(self, content: PreviewContent | None, query: str) -> None:
        """Show other content, or none."""
        self.content = content
        self._query = query
        self.redraw()
        self._is_positioned = False
        # Only after the refresh does the pane know the height of the content.
        self.call_after_refresh(self._scroll_to_result)
        if content is None:
            self.set_title("preview")
        else:
            self.set_title(content.item.short_citation, content.note)

    def _scroll_to_result(self) -> None:
        height = self.scrollable_content_region.height
        self._is_positioned = self.width > 0
        top = self._start_row - CONTEXT_ROWS_ABOVE
        if self._best_row >= top + height:
            top = self._best_row - height // 3
        # Forced: otherwise nothing happens until the scroll bar has been drawn.
        self.scroll_to(y=max(0, top), animate=False, immediate=True, force=True)

    def keep_selection_visible(self) -> None:
        if (
            not self._is_positioned
            or not 0
            <= self._start_row - self.scroll_offset.y
            < self.scrollable_content_region.height - CONTEXT_ROWS_ABOVE
        ):
            self._scroll_to_result()

    def layout_rows(self, width: int) -> int:
        self._rendered = []
        self._start_row = self._best_row = most_matches = 0
        if self.content is None:
            return 0
        first, result_lines = self.content.first, self.content.result_lines
        digits = 0 if first is None else len(str(first + len(self.content.lines)))
        text_width = max(width - digits - 3, 1)
        shown_lines = [sanitize_line(line) for line in self.content.lines]
        coloured = (
            highlight_code(shown_lines, self.content.item.language) if self.content.item.language else None
        )
        for index, shown in enumerate(shown_lines):
            number = None if first is None else first + index
            inside = result_lines is None or number is None or result_lines[0] <= number <= result_lines[1]
            if result_lines and number == self.content.start:
                self._start_row = len(self._rendered)
            spans = find_spans(shown, self._query, self.content.item.keywords) if inside else []
            if len(spans) > most_matches:
                most_matches, self._best_row = len(spans), len(self._rendered)
            if inside and coloured is not None:
                text = highlight(coloured[index], spans)
            else:
                text = highlight(shown, spans, PLAIN if inside else DIM)
            self._rendered += self._rows(
                text, "" if number is None else str(number), digits, text_width, inside
            )
        return len(self._rendered)

    def _rows(self, text: Text, number: str, digits: int, text_width: int, inside: bool) -> list[Text]:
        bar = ("▌ ", ACCENT) if inside and self.content and self.content.result_lines else ("  ", PLAIN)
        out = []
        for index, part in enumerate(wrap_text(text, text_width)):
            gutter = f"{number if index == 0 else '':>{digits}} " if digits else ""
            out.append(Text.assemble((gutter, NUMBER if inside else DIM), bar, part, end="", no_wrap=True))
        return out

    def row(self, index: int) -> Text:
        return self._rendered[index]
