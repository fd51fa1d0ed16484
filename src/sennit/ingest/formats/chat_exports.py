"""Exports of assistants and chat tools as turns: ChatGPT, Claude, Slack, and WhatsApp."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sennit.records import Json
from sennit.turns import Turn

MAX_SESSION_CHARACTERS: Final = 200

_WHATSAPP: Final = re.compile(
    r"[\u200e\u200f]?\[?(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{1,4}),?[ \u202f](?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?)"
    r"(?:[ \u202f](?P<half>[AaPp]\.?[Mm]\.?))?\]?(?: -)? (?P<speaker>[^:\n]{1,80}): (?P<text>.*)"
)
MIN_WHATSAPP_TURNS: Final = 2

NumberedTurn = tuple[int, Turn]
"""The number of a message in its file, counted from 1, and its turn."""


def parse_export(text: str, name: str) -> list[NumberedTurn] | None:
    """The turns of a JSON export of a known tool; None for any other JSON. `name` is the session where it has none."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    conversations = content if isinstance(content, list) else [content]
    objects = [one for one in conversations if isinstance(one, dict)]
    if not objects or len(objects) != len(conversations):
        return None
    turns: Iterator[Turn]
    if all(isinstance(one.get("mapping"), dict) for one in objects):
        turns = (turn for one in objects for turn in _chatgpt(one))
    elif all(isinstance(one.get("chat_messages"), list) for one in objects):
        turns = (turn for one in objects for turn in _claude(one))
    elif all({"type", "ts"} <= one.keys() for one in objects) and any("user" in one for one in objects):
        turns = _slack(objects, name)
    else:
        return None
    return list(enumerate(turns, 1))


def parse_whatsapp(text: str, name: str) -> list[tuple[tuple[int, int], Turn]]:
    """The turns of a WhatsApp export with their lines; empty for any other text."""
    lines = text.splitlines()
    starts = [(at, found) for at, line in enumerate(lines) if (found := _WHATSAPP.fullmatch(line))]
    if len(starts) < MIN_WHATSAPP_TURNS or starts[0][0] > 3:
        return []
    day_first = any(int(re.split(r"[./-]", found["date"])[0]) > 12 for _, found in starts)
    out = []
    ends = [at for at, _ in starts[1:]] + [len(lines)]
    for (at, found), end in zip(starts, ends, strict=True):
        said = "\n".join((found["text"], *lines[at + 1 : end])).strip()
        if said:
            turn = Turn(
                session=name,
                speaker=found["speaker"].strip(),
                text=said,
                timestamp=_whatsapp_time(found, day_first),
            )
            out.append(((at + 1, end), turn))
    return out


def _chatgpt(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    """The branch of a conversation that was shown last, from its first message on."""
    nodes = conversation["mapping"]
    current = conversation.get("current_node")
    branch: list[Mapping[str, Any]] = []
    seen: set[object] = set()
    while isinstance(current, str) and current not in seen and isinstance(nodes.get(current), dict):
        seen.add(current)
        branch.append(nodes[current])
        current = nodes[current].get("parent")
    if not branch:
        branch = [node for node in reversed(list(nodes.values())) if isinstance(node, dict)]
    session = _session(conversation, "conversation_id", "id", "title")
    for node in reversed(branch):
        message = node.get("message")
        if not isinstance(message, dict):
            continue
        author, content = message.get("author"), message.get("content")
        role = author.get("role") if isinstance(author, dict) else None
        parts = content.get("parts") if isinstance(content, dict) else None
        if role not in ("user", "assistant") or not isinstance(parts, list):
            continue
        yield from _turn(
            session, role, [part for part in parts if isinstance(part, str)], message.get("create_time")
        )


def _claude(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    session = _session(conversation, "uuid", "name")
    for message in conversation["chat_messages"]:
        if isinstance(message, dict):
            content = message.get("content")
            parts = (
                [one.get("text") for one in content if isinstance(one, dict)]
                if isinstance(content, list)
                else []
            )
            texts: list[object] = [part for part in parts if isinstance(part, str)] or [message.get("text")]
            speaker = "user" if message.get("sender") == "human" else message.get("sender")
            yield from _turn(session, speaker, texts, message.get("created_at"))


def _slack(messages: Sequence[Mapping[str, Any]], name: str) -> Iterator[Turn]:
    for message in messages:
        profile = message.get("user_profile")
        named = profile.get("real_name") if isinstance(profile, dict) else None
        if message.get("type") == "message" and not message.get("subtype"):
            yield from _turn(name, named or message.get("user"), [message.get("text")], message.get("ts"))


def _turn(session: str, speaker: object, texts: Sequence[object], time: object) -> Iterator[Turn]:
    text = "\n".join(part for part in texts if isinstance(part, str)).strip()
    if text:
        who = speaker if isinstance(speaker, str) else ""
        yield Turn(session=session, speaker=who, text=text, timestamp=_time(time))


def _session(conversation: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = conversation.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()[:MAX_SESSION_CHARACTERS]
    return "conversation"


def _time(value: Json | object) -> datetime | None:
    """A time as seconds since 1970, as a number or as text, or in ISO form."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str) and re.fullmatch(r"\d{9,11}(?:\.\d+)?", value):
            return datetime.fromtimestamp(float(value), UTC)
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _whatsapp_time(found: re.Match[str], day_first: bool) -> datetime | None:
    first, second, third = (int(part) for part in re.split(r"[./-]", found["date"]))
    hour, minute = (int(part) for part in re.split(r"[:.]", found["time"])[:2])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"][0] in "Pp" else 0)
    if first > 31:
        year, month, day = first, second, third
    else:
        day, month = (first, second) if day_first else (second, first)
        year = third if third > 99 else 2000 + third
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
