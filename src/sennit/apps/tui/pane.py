"""A scrollable pane of text rows, which renders only the visible ones."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from sennit.apps.tui.text import sanitize_title


class ScrollPane(ScrollView, can_focus=True):
    """Rows of text, none wider than the pane."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("space,ctrl+d,ctrl+f", "page_down", show=False),
        Binding("ctrl+u,ctrl+b", "page_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
    ]

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.rows = 0
        self.width = 0
        """Width of the rows at the last layout; the pane itself may have been resized since."""

    def layout_rows(self, width: int) -> int:
        """Lay out the content at this width and return the number of rows."""
        raise NotImplementedError

    def row(self, index: int) -> Text:
        """Return one row of the layout."""
        raise NotImplementedError

    def set_title(self, title: str, subtitle: str = "") -> None:
        """Set the title and subtitle in the border."""
        self.border_title = Content(sanitize_title(title))
        self.border_subtitle = Content(sanitize_title(subtitle))

    def redraw(self) -> None:
        """Lay out again, after the content or the width has changed."""
        self.width = self.scrollable_content_region.width
        self.rows = self.layout_rows(self.width) if self.width > 0 else 0
        self.virtual_size = Size(self.width, self.rows)
        self.refresh()

    def on_resize(self, _: Resize) -> None:
        self.redraw()
        self.call_after_refresh(self.keep_selection_visible)

    def keep_selection_visible(self) -> None:
        """Scroll to the selection, if a resize has moved it out of view."""

    def render_line(self, y: int) -> Strip:
        index = self.scroll_offset.y + y
        width = self.scrollable_content_region.width
        if index >= self.rows:
            return Strip.blank(width, self.rich_style)
        return Strip(self.row(index).render(self.app.console)).adjust_cell_length(width)


class MainPane(ScrollPane):
    """A pane of the main screen, with the keys that work in all of them.

    The bindings have priority. Otherwise a key that moves the focus waits in this pane's queue together with the
    keys typed after it, and `/quit` over a slow connection quits instead of typing a query.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "app.edit_query", show=False, priority=True),
        Binding("escape,left,h", "app.go_back", show=False, priority=True),
        Binding("tab", "app.focus_next", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", show=False, priority=True),
        Binding("f", "app.edit_filter", show=False, priority=True),
        Binding("e", "app.explain", show=False, priority=True),
        Binding("r", "app.recipe", show=False, priority=True),
        Binding("p", "app.project", show=False, priority=True),
        Binding("o", "app.open", show=False, priority=True),
        Binding("y", "app.copy", show=False, priority=True),
        Binding("plus", "app.feedback('click')", show=False, priority=True),
        Binding("minus", "app.feedback('reject')", show=False, priority=True),
        Binding("question_mark", "app.keys", show=False, priority=True),
        Binding("q", "app.quit", show=False, priority=True),
    ]
