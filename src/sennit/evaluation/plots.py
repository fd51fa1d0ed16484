"""Plots without a plotting library: intervals on an axis as text for a terminal, and curves as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

TEXT_COLUMNS: Final = 48
"""Columns of the axis of a text plot; with a label and figures it fits into a terminal of 100."""

WIDTH: Final = 640
ROW_HEIGHT: Final = 26
MARGIN: Final = 24
LABEL_WIDTH: Final = 190
FONT: Final = 'font-family="sans-serif" font-size="12"'


class IntervalRow(NamedTuple):
    """An estimate with its confidence interval."""

    label: str
    low: float
    estimate: float
    high: float


def interval_text(rows: Sequence[IntervalRow], reference: float | None = None) -> list[str]:
    """Return a line for each row: the interval on a common axis, with `|` at the reference."""
    low, high = _range(rows, reference)
    width = max((len(row.label) for row in rows), default=0)
    out = []
    for row in rows:
        cells = [" "] * TEXT_COLUMNS
        for column in range(_column(row.low, low, high), _column(row.high, low, high) + 1):
            cells[column] = "─"
        if reference is not None:
            cells[_column(reference, low, high)] = "|"
        cells[_column(row.estimate, low, high)] = "●"
        figures = f"{row.estimate:+.4f}" if reference == 0 else f"{row.estimate:.4f}"
        out.append(f"{row.label:<{width}}  {''.join(cells)}  {figures} [{row.low:.4f}, {row.high:.4f}]")
    return out


def interval_svg(title: str, rows: Sequence[IntervalRow], reference: float | None = None) -> str:
    """Return an SVG of the intervals of the rows on a common axis."""
    low, high = _range(rows, reference)
    height = 2 * MARGIN + ROW_HEIGHT * (len(rows) + 1)

    def x(value: float) -> float:
        return LABEL_WIDTH + (value - low) / (high - low) * (WIDTH - LABEL_WIDTH - MARGIN)

    parts = [f'<text x="{MARGIN}" y="{MARGIN}" font-weight="bold">{escape(title)}</text>']
    if reference is not None:
        parts.append(_line(x(reference), MARGIN + 8, x(reference), height - MARGIN, "#999", "4 3"))
    for number, row in enumerate(rows, 1):
        y = MARGIN + ROW_HEIGHT * number
        parts += [
            f'<text x="{MARGIN}" y="{y + 4}">{escape(row.label)}</text>',
            _line(x(row.low), y, x(row.high), y, "#1f6f8b"),
            f'<circle cx="{x(row.estimate):.1f}" cy="{y}" r="4" fill="#1f6f8b"/>',
        ]
    y = height - MARGIN + 12
    for value in (low, (low + high) / 2, high):
        parts.append(f'<text x="{x(value):.1f}" y="{y}" text-anchor="middle">{value:.3f}</text>')
    return _svg(WIDTH, height, parts)


def sequence_svg(title: str, points: Sequence[IntervalRow], reference: float) -> str:
    """Return an SVG of an estimate over time, with its confidence sequence as a band."""
    height = 320
    bottom, top = height - 2 * MARGIN, 2 * MARGIN

    def xy(at: int, value: float) -> str:
        share = at / max(len(points) - 1, 1)
        return f"{2 * MARGIN + share * (WIDTH - 3 * MARGIN):.1f},{bottom - value * (bottom - top):.1f}"

    band = [xy(at, point.high) for at, point in enumerate(points)]
    band += [xy(at, point.low) for at, point in reversed(list(enumerate(points)))]
    curve = [xy(at, point.estimate) for at, point in enumerate(points)]
    y = bottom - reference * (bottom - top)
    parts = [
        f'<text x="{MARGIN}" y="{MARGIN}" font-weight="bold">{escape(title)}</text>',
        f'<polygon points="{" ".join(band)}" fill="#1f6f8b" fill-opacity="0.2"/>',
        f'<polyline points="{" ".join(curve)}" fill="none" stroke="#1f6f8b" stroke-width="2"/>',
        _line(2 * MARGIN, y, WIDTH - MARGIN, y, "#999", "4 3"),
        *(
            f'<text x="{MARGIN - 8}" y="{bottom - value * (bottom - top) + 4:.1f}">{value:g}</text>'
            for value in (0.0, 0.5, 1.0)
        ),
        f'<text x="{WIDTH // 2}" y="{height - MARGIN + 8}" text-anchor="middle">'
        f"decisions (1 to {len(points):,})</text>",
    ]
    return _svg(WIDTH, height, parts)


def _range(rows: Sequence[IntervalRow], reference: float | None) -> tuple[float, float]:
    values = [value for row in rows for value in row[1:]] + ([] if reference is None else [reference])
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _column(value: float, low: float, high: float) -> int:
    return round((value - low) / (high - low) * (TEXT_COLUMNS - 1))


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="2"{dashed}/>'
    )


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )
