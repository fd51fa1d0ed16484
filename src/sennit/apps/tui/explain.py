"""The explain panel: what every source said about a result, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from sennit.apps.tui.items import Answer, Item
from sennit.apps.tui.lines import Pane
from sennit.apps.tui.text import BOLD, DIM, NUMBER, PLACE, PLAIN, brief, fitted, wrapped
from sennit.results import Explanation

BAR = 24
"""Cells of the longest bar."""


class Explain(Pane):
    """Why the chosen result is where it is."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._answer: Answer | None = None
        self._item: Item | None = None
        self._drawn: list[Text] = []

    def show(self, answer: Answer | None, item: Item | None) -> None:
        """Explain another result, or none."""
        self._answer = answer
        self._item = item
        self.redraw()
        self.scroll_to(y=0, animate=False)
        self.entitle(f"why rank {item.rank}" if item else "why")

    def laid_out(self, width: int) -> int:
        self._drawn = [row for text in self._texts(width) for row in wrapped(text, width)]
        return len(self._drawn)

    def row(self, at: int) -> Text:
        return self._drawn[at]

    def _texts(self, width: int) -> Iterator[Text]:
        if self._answer is None or self._item is None:
            return
        if self._item.explanation is None:
            yield from _grepped(self._item)
            return
        yield from standings(self._item.explanation, width)
        yield from fate(self._item.explanation)
        if self._answer.sources:
            yield Text()
        for source in self._answer.sources:
            said = source.error or f"{len(source.keys):,} found of {source.pool:,} asked for"
            took = f"  {source.milliseconds:.1f} ms" if source.error is None else ""
            yield Text.assemble((f"{brief(source.name)} ", PLACE), (brief(said), DIM), (took, DIM))


def _grepped(item: Item) -> Iterator[Text]:
    """What a grep found, and its rule."""
    lines = ", ".join(str(number) for number, _ in item.matched)
    for label, value in (("keywords", ", ".join(item.keywords)), ("matches", item.score), ("lines", lines)):
        yield Text.assemble((f"{label:<8}  ", BOLD), brief(value))
    yield Text()
    yield Text("ordered by keywords found, then matches, then path and line", DIM)


def standings(explanation: Explanation, width: int) -> Iterator[Text]:
    """A table of the sources, with a bar for what each gave to the score."""
    name = max((len(brief(standing.source)) for standing in explanation.standings), default=0)
    name = min(max(name, len("source")), max(width - 30, 6))
    yield Text(f"{'source':<{name}}  rank     score     share", DIM)
    most = max((standing.share for standing in explanation.standings), default=0.0)
    room = min(BAR, width - name - 28)
    for standing in explanation.standings:
        rank = "–" if standing.rank is None else str(standing.rank)
        score = "–" if standing.score is None else f"{standing.score:.4f}"
        length = round(room * standing.share / most) if most > 0 and room > 0 else 0
        row = Text.assemble(fitted(Text(brief(standing.source), BOLD), name))
        row.append(" " * (name - row.cell_len)).append(f"  {rank:>4}  {score:>8}  ").append(
            f"{standing.share:>8.4f}", NUMBER
        )
        row.append(f"  {'━' * length}", NUMBER)
        yield row
        if standing.note:
            yield Text(f"  {brief(standing.note)}", DIM)
    yield _sum("fused", explanation.fused, name, BOLD)


def fate(explanation: Explanation) -> Iterator[Text]:
    """What the stages after fusion did."""
    for change in explanation.adjustments:
        yield Text.assemble(
            (brief(change.stage), PLACE),
            f"  {change.before:.4f} → {change.after:.4f}  ",
            (brief(change.reason), DIM),
        )
    if explanation.adjustments:
        yield Text.assemble(("score", BOLD), "  ", (f"{explanation.score:.4f}", NUMBER))
    if explanation.displaced:
        yield Text.assemble(("in place of ", DIM), brief(", ".join(explanation.displaced)))


def _sum(label: str, number: float, name: int, style: Style = PLAIN) -> Text:
    return Text.assemble((f"{label:<{name}}", style), " " * 18, (f"{number:>8.4f}", NUMBER))
