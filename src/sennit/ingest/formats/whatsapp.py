"""Chats that WhatsApp exported as text, on iOS and on Android, with the dates and clocks of any country."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NamedTuple

from sennit.ingest.chunk import split_lines
from sennit.turns import Turn

MIN_TURNS: Final = 2
MAX_LINES_BEFORE: Final = 3
"""Lines before the first message of an export; text that mentions a message later is none."""

_SPACE: Final = r"[ \u00a0\u202f]"
_MARKS: Final = "\u200e\u200f\u202a\u202b\u202c\u2068\u2069\ufeff"
"""Marks of the direction of writing, which stand around names and before what the program itself wrote."""

_MESSAGE: Final = re.compile(
    rf"[{_MARKS}]*(?P<open>\[)?(?P<date>\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}}),?{_SPACE}"
    rf"(?P<time>\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?)"
    rf"(?:{_SPACE}?(?P<half>[AaPp])\.?{_SPACE}?[Mm]\.?)?(?(open)\]| -)(?: (?P<rest>.*))?"
)
_SAID: Final = re.compile(r"(?P<speaker>[^:\n\"“”«»]{1,80}):(?: (?P<text>.*))?")
"""What the program itself writes has no name before it; where it quotes a subject, a colon may be in the quotes."""

_OMITTED: Final = re.compile(r"<[\w\s]{1,40}(?:omitted|weggelassen|omis|omitido|omitida)>", re.IGNORECASE)
_NOTICE: Final = "\u200e"
"""Begins what iOS writes in the place of a message, in the name of the chat or of the sender."""

WhatsAppTurn = tuple[tuple[int, int], Turn]
"""The first and the last line of a message, and its turn."""


class _Start(NamedTuple):
    """The first line of a message, counted from 0."""

    line: int
    found: re.Match[str]
    date: tuple[int, int, int]


def parse_whatsapp(text: str, name: str) -> list[WhatsAppTurn]:
    """The turns of a WhatsApp export with their lines; empty for any other text."""
    lines = split_lines(text)
    starts = [
        _Start(at, found, _numbers(found["date"]))
        for at, line in enumerate(lines)
        if (found := _MESSAGE.fullmatch(line))
    ]
    if not starts or starts[0].line > MAX_LINES_BEFORE:
        return []
    is_day_first = _is_day_first(starts)
    out: list[WhatsAppTurn] = []
    ends = [start.line for start in starts[1:]] + [len(lines)]
    for start, end in zip(starts, ends, strict=True):
        said = _SAID.fullmatch(start.found["rest"] or "")
        if said is None:
            continue
        first = said["text"] or ""
        text = "\n".join((first.strip(_MARKS), *lines[start.line + 1 : end])).strip()
        is_notice = first.startswith(_NOTICE) and "<" not in first
        if text and not is_notice and not _OMITTED.fullmatch(text):
            turn = Turn(
                session=name,
                speaker=said["speaker"].strip(_MARKS + "~ \u00a0\u202f"),
                text=text,
                timestamp=_time(start, is_day_first=is_day_first),
            )
            out.append(((start.line + 1, end), turn))
    return out if len(out) >= MIN_TURNS else []


def _numbers(date: str) -> tuple[int, int, int]:
    first, second, third = map(int, re.split(r"[./-]", date))
    return first, second, third


def _is_day_first(starts: Sequence[_Start]) -> bool:
    """Whether dates begin with the day: if a number can be no month, else as the messages are in order, else by the form.

    A clock of twelve hours is usual where the month comes first, and so are slashes; dots are not.
    """
    if any(start.date[0] > 12 for start in starts):
        return True
    if any(start.date[1] > 12 for start in starts):
        return False
    by_day, by_month = (
        sum(before > after for before, after in pairwise((s.date[2], s.date[a], s.date[b]) for s in starts))
        for a, b in ((1, 0), (0, 1))
    )
    if by_day != by_month:
        return by_day < by_month
    return not (starts[0].found["half"] and "/" in starts[0].found["date"])


def _time(start: _Start, *, is_day_first: bool) -> datetime | None:
    first, second, third = start.date
    hour, minute, *rest = (int(part) for part in re.split(r"[:.]", start.found["time"]))
    if start.found["half"]:
        hour = hour % 12 + (12 if start.found["half"] in "Pp" else 0)
    if first > 31:
        year, month, day = first, second, third
    else:
        day, month = (first, second) if is_day_first else (second, first)
        year = third if third > 99 else 2000 + third
    try:
        return datetime(year, month, day, hour, minute, rest[0] if rest else 0, tzinfo=UTC)
    except ValueError:
        return None
