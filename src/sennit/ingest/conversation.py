"""Reading conversations from files: JSON Lines, and plain transcripts with speakers and times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sennit.errors import InvalidInput
from sennit.records import as_utc
from sennit.turns import Turn

_FIELD_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text", "content", "message", "body"),
    "speaker": ("speaker", "role", "author", "user", "name", "from", "sender"),
    "session": ("session", "session_id", "conversation", "conversation_id", "thread", "thread_id", "channel"),
    "timestamp": ("timestamp", "time", "date", "created_at", "ts", "datetime", "date_time"),
    "entities": ("entities", "mentions"),
    "position": ("position", "turn", "index"),
    "id": ("id", "uuid", "message_id"),
}
"""The names that exports use for each field of a turn. The first name with a value counts."""

_TIME: Final = r"(?P<{}>\d{{4}}-\d\d-\d\d(?:[T ]\d\d?:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?|\d\d?:\d\d(?::\d\d)?)"
_SPEAKER: Final = r"(?P<speaker>[^\s:\[\]()][^:\[\]()\n]{0,59}?)"
_TURN: Final = re.compile(
    rf"(?:\[?{_TIME.format('before')}\]?[ \t,-]*)?{_SPEAKER}[ \t]*(?:[\[(]{_TIME.format('after')}[\])])?:[ \t]+(?P<text>\S.*)"
)
_DAY: Final = re.compile(r"[#=*\- \t]*(\d{4}-\d\d-\d\d)[#=*\- \t]*")
_MAX_SPEAKER_WORDS: Final = 4
"""More words before a colon are the beginning of a sentence and no speaker."""

MIN_TURNS: Final = 4
MIN_TURN_SHARE: Final = 0.5
"""A transcript has at least this many turns, and at least this share of its lines begin one."""

MAX_CHECKED_CHARACTERS: Final = 64 * 1024
"""How much of a text is looked at to tell whether it is a transcript."""


def read_conversation(text: str, session: str) -> Iterator[Turn]:
    """The turns of a file. JSON Lines may name their session; the turns of a transcript belong to `session`."""
    for _, turn in numbered_turns(text, session):
        yield turn


def numbered_turns(text: str, session: str) -> Iterator[tuple[tuple[int, int], Turn]]:
    """The turns of a file, each with its first and last line."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.lstrip().startswith("{"):
        yield from _from_json_lines(text, session)
    else:
        yield from _from_transcript(text, session)


def is_transcript(text: str) -> bool:
    """Whether a text is a transcript: several turns of at least two speakers, and little besides.

    A list such as `Name: value` has as many names as lines; in a conversation the speakers take turns.
    """
    lines = [line.strip() for line in text[:MAX_CHECKED_CHARACTERS].splitlines() if line.strip()]
    speakers: list[str] = []
    for line in lines:
        match = None if _DAY.fullmatch(line) else _TURN.fullmatch(line)
        if match and len(match["speaker"].split()) <= _MAX_SPEAKER_WORDS:
            speakers.append(match["speaker"].strip())
        elif not speakers and not _DAY.fullmatch(line):
            return False
    distinct = len(set(speakers))
    return (
        len(speakers) >= MIN_TURNS
        and 2 <= distinct <= len(speakers) / 2
        and len(speakers) >= MIN_TURN_SHARE * len(lines)
    )


def _from_json_lines(text: str, session: str) -> Iterator[tuple[tuple[int, int], Turn]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            if not isinstance(values, dict):
                raise InvalidInput("it is not a JSON object")
            yield (number, number), _parse_turn(values, session)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"Line {number}: {error}") from error


def _parse_turn(values: dict[str, Any], session: str) -> Turn:
    fields: dict[str, Any] = {}
    for field, names in _FIELD_NAMES.items():
        found = next((name for name in names if values.get(name) not in (None, "")), None)
        if found is not None:
            fields[field] = values.pop(found)
    if not isinstance(fields.get("text"), str):
        raise InvalidInput(f"it has no text; use one of these fields: {', '.join(_FIELD_NAMES['text'])}")
    for field in ("speaker", "session", "id"):
        if field in fields:
            fields[field] = str(fields[field])
    if "timestamp" in fields:
        fields["timestamp"] = as_utc(fields["timestamp"])
    if type(fields.get("position")) is not int:
        fields.pop("position", None)
    fields.setdefault("session", session)
    metadata = values.pop("metadata", None)
    return Turn(**fields, metadata={**values, **(metadata if isinstance(metadata, dict) else {})})


def _from_transcript(text: str, session: str) -> Iterator[tuple[tuple[int, int], Turn]]:
    """Turns such as `[2026-03-01 09:30] Rajesh: words`, `Rajesh (09:30): words` or `Rajesh: words`.

    Any other line continues the turn before it.
    """
    turn: dict[str, Any] | None = None
    day: str | None = None
    position = first = last = 0
    for number, line in enumerate(text.splitlines(), 1):
        heading = _DAY.fullmatch(line)
        match = None if heading else _TURN.fullmatch(line.strip())
        if heading:
            day = heading[1]
        elif match and len(match["speaker"].split()) <= _MAX_SPEAKER_WORDS:
            if turn is not None:
                yield (first, last), Turn(**turn)
            first = last = number
            turn = {
                "text": match["text"].strip(),
                "speaker": match["speaker"].strip(),
                "session": session,
                "timestamp": _parse_time(match["before"] or match["after"], day),
                "position": position,
            }
            position += 1
        elif turn is not None and line.strip():
            turn["text"] += "\n" + line.strip()
            last = number
        elif line.strip():
            raise InvalidInput(
                "This is not a transcript: the first line must look like 'Rajesh: words', with or without a time "
                f"before it, not {line.strip()[:60]!r}"
            )
    if turn is not None:
        yield (first, last), Turn(**turn)


def _parse_time(text: str | None, day: str | None) -> datetime | None:
    if text is None:
        return None if day is None else as_utc(day)
    if "-" in text:
        return as_utc(text.replace(" ", "T"))
    if day is None:
        return None  # the time of an unknown day
    hours, minutes, *seconds = map(int, text.split(":"))
    try:
        return as_utc(day).replace(
            hour=hours, minute=minutes, second=seconds[0] if seconds else 0, tzinfo=UTC
        )
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not a time of day") from error
