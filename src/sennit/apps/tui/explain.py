"""The explain pane: rank and score of a result in every source, and what each stage changed."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from sennit.apps.tui.items import ResultList, ResultRow
from sennit.apps.tui.pane import MainPane
from sennit.apps.tui.text import ACCENT, BOLD, DIM, NUMBER, PLAIN, sanitize_title, truncate, wrap_text
from sennit.results import Explanation, RelevanceTrace

MAX_BAR_CELLS = 24
"""Width of the longest bar."""


class ExplainPane(MainPane):
    """Explains the rank of the selected result."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._result_list: ResultList | None = None
        self._item: ResultRow | None = None
        self._rendered: list[Text] = []

    def show(self, result_list: ResultList | None, item: ResultRow | None) -> None:
        """Explain another result, or none."""
        self._result_list = result_list
        self._item = item
        self.redraw()
        self.scroll_to(y=0, animate=False)
        self.set_title(f"why rank {item.rank}" if item else "why")

    def layout_rows(self, width: int) -> int:
        self._rendered = [row for text in self._texts(width) for row in wrap_text(text, width)]
        return len(self._rendered)

    def row(self, index: int) -> Text:
        return self._rendered[index]

    def _texts(self, width: int) -> Iterator[Text]:
        if self._result_list is None or self._item is None:
            return
        if self._item.explanation is None:
            yield from _explain_grep(self._item)
            return
        yield from explain_sources(self._item.explanation, width)
        yield from explain_stages(self._item.explanation)
        if self._item.explanation.relevance is not None:
            yield explain_relevance(self._item.explanation.relevance)
        if self._result_list.sources:
            yield Text()
        for source in self._result_list.sources:
            outcome = source.error or f"{len(source.keys):,} found of {source.candidates:,} requested"
            duration = f"  {source.milliseconds:.1f} ms" if source.error is None else ""
            yield Text.assemble(
                (f"{sanitize_title(source.name)} ", ACCENT), (sanitize_title(outcome), DIM), (duration, DIM)
            )


def _explain_grep(item: ResultRow) -> Iterator[Text]:
    """Describe what a grep found, and how its results are ordered."""
    lines = ", ".join(str(number) for number, _ in item.matched)
    for label, value in (("keywords", ", ".join(item.keywords)), ("matches", item.score), ("lines", lines)):
        yield Text.assemble((f"{label:<8}  ", BOLD), sanitize_title(value))
    yield Text()
    yield Text("ordered by keywords found, then matches, then path and line", DIM)


def explain_sources(explanation: Explanation, width: int) -> Iterator[Text]:
    """Yield a table of the sources, with a bar for the share of each in the score."""
    name_width = max(
        (len(sanitize_title(source_score.source)) for source_score in explanation.source_scores), default=0
    )
    name_width = min(max(name_width, len("source")), max(width - 30, 6))
    yield Text(f"{'source':<{name_width}}  rank     score     share", DIM)
    max_share = max((source_score.share for source_score in explanation.source_scores), default=0.0)
    bar_width = min(MAX_BAR_CELLS, width - name_width - 28)
    for source_score in explanation.source_scores:
        rank = "–" if source_score.rank is None else str(source_score.rank)
        score = "–" if source_score.score is None else f"{source_score.score:.4f}"
        length = round(bar_width * source_score.share / max_share) if max_share > 0 and bar_width > 0 else 0
        row = Text.assemble(truncate(Text(sanitize_title(source_score.source), BOLD), name_width))
        row.append(" " * (name_width - row.cell_len)).append(f"  {rank:>4}  {score:>8}  ").append(
            f"{source_score.share:>8.4f}", NUMBER
        )
        row.append(f"  {'━' * length}", NUMBER)
        yield row
        if source_score.match_reason:
            yield Text(f"  {sanitize_title(source_score.match_reason)}", DIM)
    yield _total_row("fused", explanation.fused, name_width, BOLD)


def explain_stages(explanation: Explanation) -> Iterator[Text]:
    """Yield what the stages after fusion changed."""
    for change in explanation.adjustments:
        yield Text.assemble(
            (sanitize_title(change.stage), ACCENT),
            f"  {change.before:.4f} → {change.after:.4f}  ",
            (sanitize_title(change.reason), DIM),
        )
    if explanation.adjustments:
        yield Text.assemble(("score", BOLD), "  ", (f"{explanation.score:.4f}", NUMBER))
    if explanation.displaced:
        yield Text.assemble(("in place of ", DIM), sanitize_title(", ".join(explanation.displaced)))


def explain_relevance(found: RelevanceTrace) -> Text:
    """Return the relevance, and what it was estimated from."""
    parts = []
    if found.coverage is not None:
        parts.append(f"{found.coverage:.0%} of the query's words, by weight")
    if found.lift is not None:
        side = "above" if found.lift >= 0 else "below"
        parts.append(f"cosine {abs(found.lift):.2f} {side} the background, adjusted for size")
    if found.linked:
        parts.append("mentioned by another result")
    return Text.assemble(
        ("relevance", BOLD), "  ", (f"{found.relevance:.2f}", NUMBER), "  ", (" · ".join(parts), DIM)
    )


def _total_row(label: str, number: float, label_width: int, style: Style = PLAIN) -> Text:
    return Text.assemble((f"{label:<{label_width}}", style), " " * 18, (f"{number:>8.4f}", NUMBER))
