"""Conversations from files: JSON lines of many programs, and plain transcripts with speakers and times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sennit.errors import InvalidInput
from sennit.records import as_utc
from sennit.segments import Segment

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text", "content", "message", "body"),
    "speaker": ("speaker", "role", "author", "user", "name", "from", "sender"),
    "session": ("session", "session_id", "conversation", "conversation_id", "thread", "thread_id", "channel"),
    "timestamp": ("timestamp", "time", "date", "created_at", "ts", "datetime", "date_time"),
    "entities": ("entities", "mentions"),
    "position": ("position", "turn", "index"),
    "id": ("id", "uuid", "message_id"),
}
"""What programs call the parts of a turn, the likeliest first."""

_TIME: Final = r"(?P<{}>\d{{4}}-\d\d-\d\d(?:[T ]\d\d?:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?|\d\d?:\d\d(?::\d\d)?)"
_SPEAKER: Final = r"(?P<speaker>[^\s:\[\]()][^:\[\]()\n]{0,59}?)"
_TURN: Final = re.compile(
    rf"(?:\[?{_TIME.format('before')}\]?[ \t,-]*)?{_SPEAKER}[ \t]*(?:[\[(]{_TIME.format('after')}[\])])?:[ \t]+(?P<text>\S.*)"
)
_DAY: Final = re.compile(r"[#=*\- \t]*(\d{4}-\d\d-\d\d)[#=*\- \t]*")
_WORDS: Final = 4
"""A speaker has at most so many; a longer beginning of a line with a colon is a sentence."""


def read_conversation(text: str, session: str) -> Iterator[Segment]:
    """The turns of a file. Lines of JSON say their session; a transcript is of the session that is named."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.lstrip().startswith("{"):
        yield from _from_json_lines(text, session)
    else:
        yield from _from_transcript(text, session)


def _from_json_lines(text: str, session: str) -> Iterator[Segment]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            if not isinstance(values, dict):
                raise InvalidInput("it is no JSON object")
            yield _segment(values, session)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"Line {number}: {error}") from error


def _segment(values: dict[str, Any], session: str) -> Segment:
    parts: dict[str, Any] = {}
    for part, names in _NAMES.items():
        found = next((name for name in names if values.get(name) not in (None, "")), None)
        if found is not None:
            parts[part] = values.pop(found)
    if not isinstance(parts.get("text"), str):
        raise InvalidInput(f"it has no text; that is called one of: {', '.join(_NAMES['text'])}")
    for part in ("speaker", "session", "id"):
        if part in parts:
            parts[part] = str(parts[part])
    if "timestamp" in parts:
        parts["timestamp"] = as_utc(parts["timestamp"])
    if type(parts.get("position")) is not int:
        parts.pop("position", None)
    parts.setdefault("session", session)
    further = values.pop("metadata", None)
    return Segment(**parts, metadata={**values, **(further if isinstance(further, dict) else {})})


def _from_transcript(text: str, session: str) -> Iterator[Segment]:
    """`[2026-03-01 09:30] Rajesh: words`, `Rajesh (09:30): words` or `Rajesh: words`; other lines go on."""
    turn: dict[str, Any] | None = None
    day: str | None = None
    position = 0
    for line in text.splitlines():
        heading = _DAY.fullmatch(line)
        match = None if heading else _TURN.fullmatch(line.strip())
        if heading:
            day = heading[1]
        elif match and len(match["speaker"].split()) <= _WORDS:
            if turn is not None:
                yield Segment(**turn)
            turn = {
                "text": match["text"].strip(),
                "speaker": match["speaker"].strip(),
                "session": session,
                "timestamp": _moment(match["before"] or match["after"], day),
                "position": position,
            }
            position += 1
        elif turn is not None and line.strip():
            turn["text"] += "\n" + line.strip()
        elif line.strip():
            raise InvalidInput(
                "It is no transcript: the first line must be like 'Rajesh: words', with or without a time in "
                f"front, and not {line.strip()[:60]!r}"
            )
    if turn is not None:
        yield Segment(**turn)


def _moment(text: str | None, day: str | None) -> datetime | None:
    if text is None:
        return None if day is None else as_utc(day)
    if "-" in text:
        return as_utc(text.replace(" ", "T"))
    if day is None:
        return None  # a time of no day is no moment
    hours, minutes, *seconds = map(int, text.split(":"))
    try:
        return as_utc(day).replace(
            hour=hours, minute=minutes, second=seconds[0] if seconds else 0, tzinfo=UTC
        )
    except ValueError as error:
        raise InvalidInput(f"{text!r} is no time of day") from error
