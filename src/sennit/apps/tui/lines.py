"""A pane of lines: it scrolls, fits its width, and draws only what is seen."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from sennit.apps.tui.text import brief


class Lines(ScrollView, can_focus=True):
    """Rows of text below each other, none wider than the pane."""

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
        """Cells of a row, as it was laid out; the pane may have another width already."""

    def laid_out(self, width: int) -> int:
        """How many rows there are at this width."""
        raise NotImplementedError

    def row(self, at: int) -> Text:
        """One of them."""
        raise NotImplementedError

    def entitle(self, title: str, subtitle: str = "") -> None:
        """Write into the border."""
        self.border_title = Content(brief(title))
        self.border_subtitle = Content(brief(subtitle))

    def redraw(self) -> None:
        """Lay out again, for other content or another width."""
        self.width = self.scrollable_content_region.width
        self.rows = self.laid_out(self.width) if self.width > 0 else 0
        self.virtual_size = Size(self.width, self.rows)
        self.refresh()

    def on_resize(self, _: Resize) -> None:
        self.redraw()
        self.call_after_refresh(self.keep_in_sight)

    def keep_in_sight(self) -> None:
        """Scroll to what matters, if a new size has put it out of sight."""

    def render_line(self, y: int) -> Strip:
        at = self.scroll_offset.y + y
        width = self.scrollable_content_region.width
        if at >= self.rows:
            return Strip.blank(width, self.rich_style)
        return Strip(self.row(at).render(self.app.console)).adjust_cell_length(width)


class Pane(Lines):
    """A part of the main screen, from which the keys lead everywhere.

    They have priority: otherwise a key that moves the focus waits in the queue of this pane together with those
    typed after it, and `/quit` over a slow line leaves instead of asking.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "app.write", show=False, priority=True),
        Binding("escape,left,h", "app.leave", show=False, priority=True),
        Binding("tab", "app.focus_next", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", show=False, priority=True),
        Binding("e", "app.explain", show=False, priority=True),
        Binding("r", "app.recipe", show=False, priority=True),
        Binding("o", "app.open", show=False, priority=True),
        Binding("y", "app.copy", show=False, priority=True),
        Binding("question_mark", "app.keys", show=False, priority=True),
        Binding("q", "app.quit", show=False, priority=True),
    ]
