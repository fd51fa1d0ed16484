"""Exports of assistants and chat tools in JSON as turns: ChatGPT, Claude, Slack, and Telegram."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import unescape
from types import MappingProxyType
from typing import Any, Final

from sennit.records import Json
from sennit.turns import Turn

MAX_SESSION_CHARACTERS: Final = 200
NO_METADATA: Final[Mapping[str, Json]] = MappingProxyType({})

HIDDEN_MARKS: Final = re.compile(r"\ue200[^\ue201]{0,1000}\ue201|[\ue200-\ue206]")
"""Marks in answers of ChatGPT that its page shows as links, and that are no text."""

SAID_SUBTYPES: Final = (None, "thread_broadcast", "bot_message", "me_message", "file_share")
"""The kinds of a Slack message in which somebody says something; others tell who came and went."""

UNSUPPORTED_BLOCK: Final = re.compile(
    r"```\s{0,9}This block is not supported on your current device yet\.\s{0,9}```"
)
"""What Claude writes into the plain text of a message for each use of a tool."""

_SLACK_LINK: Final = re.compile(
    r"<(?P<mark>[@#!])?(?P<target>[^<>|]{1,2000})(?:\|(?P<label>[^<>]{0,2000}))?>"
)

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
        return _by_thread(list(enumerate(_slack(objects, name), 1)))
    elif len(objects) == 1 and (chats := _telegram_chats(objects[0])):
        turns = (turn for chat in chats for turn in _telegram(chat, name))
    else:
        return None
    return list(enumerate(turns, 1))


def _telegram_chats(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The chats of an export of Telegram: all of an account, or the one that it is."""
    chats = _items(_inside(content, "chats"), "list") or [content]
    return [
        chat
        for chat in chats
        if any({"type", "date", "text"} <= one.keys() for one in _items(chat, "messages"))
    ]


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
        role, content = _inside(message, "author").get("role"), _inside(message, "content")
        is_hidden = _inside(message, "metadata").get("is_visually_hidden_from_conversation") is True
        parts = content.get("parts")
        if role not in ("user", "assistant") or is_hidden or not isinstance(parts, list):
            continue
        # A part of a spoken message is an object with its transcription; one of a picture has no text.
        texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
        plain = [HIDDEN_MARKS.sub("", part) for part in texts if isinstance(part, str)]
        yield from _turn(session, role, plain, message.get("create_time"), _titled(conversation, "title"))


def _claude(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    session = _session(conversation, "uuid", "name")
    for message in conversation["chat_messages"]:
        if not isinstance(message, dict):
            continue
        blocks = [one for one in _items(message, "content") if one.get("type") in (None, "text")]
        texts = [one["text"] for one in blocks if isinstance(one.get("text"), str) and one["text"].strip()]
        plain = message.get("text")
        if not texts and isinstance(plain, str):
            texts = [UNSUPPORTED_BLOCK.sub("", plain)]
        attached = [*_items(message, "attachments"), *_items(message, "files")]
        names = [one["file_name"] for one in attached if isinstance(one.get("file_name"), str)]
        # A long text that was pasted is an attachment without a name.
        texts += [
            one["extracted_content"]
            for one in attached
            if not one.get("file_name") and isinstance(one.get("extracted_content"), str)
        ]
        texts += [f"[{name}]" for name in dict.fromkeys(filter(None, names))]
        speaker = "user" if message.get("sender") == "human" else message.get("sender")
        yield from _turn(session, speaker, texts, message.get("created_at"), _titled(conversation, "name"))


def _telegram(chat: Mapping[str, Any], fallback: str) -> Iterator[Turn]:
    session = _session(chat, "name", "id", fallback=fallback)
    for message in _items(chat, "messages"):
        text = message.get("text")
        parts = text if isinstance(text, list) else [text]
        plain = "".join(
            part if isinstance(part, str) else str(part.get("text") or "")
            for part in parts
            if isinstance(part, str | dict)
        )
        name = message.get("file_name")
        texts = [plain, f"[{name}]" if isinstance(name, str) and name else ""]
        time = message.get("date_unixtime") or message.get("date")
        if message.get("type") == "message":
            yield from _turn(session, message.get("from"), texts, time)


def _slack(messages: Sequence[Mapping[str, Any]], name: str) -> Iterator[Turn]:
    names = {
        message["user"]: known
        for message in messages
        if isinstance(message.get("user"), str) and (known := _slack_name(message))
    }
    for message in messages:
        user = message.get("user")
        who = user if isinstance(user, str) else ""
        speaker = _slack_name(message) or names.get(who) or message.get("username") or who
        files = [one["name"] for one in _items(message, "files") if isinstance(one.get("name"), str)]
        texts = [_slack_text(message.get("text"), names), *(f"[{one}]" for one in files)]
        thread = message.get("thread_ts")
        metadata: dict[str, Json] = {"thread": thread} if isinstance(thread, str) else {}
        if message.get("type") == "message" and message.get("subtype") in SAID_SUBTYPES:
            yield from _turn(name, speaker, texts, message.get("ts"), metadata)


def _slack_name(message: Mapping[str, Any]) -> str:
    """The name of the sender that a message brings; empty if it has none."""
    profile = _inside(message, "user_profile")
    found = (profile.get(key) for key in ("real_name", "display_name", "name"))
    return next((one for one in found if isinstance(one, str) and one.strip()), "")


def _slack_text(text: object, names: Mapping[str, str]) -> str:
    """A message as it was shown: links by their label and address, people by their names."""
    if not isinstance(text, str):
        return ""

    def show(link: re.Match[str]) -> str:
        mark, target, label = link["mark"], link["target"], link["label"]
        if mark == "@":
            return f"@{label or names.get(target, target)}"
        if mark:
            return f"{'#' if mark == '#' else '@'}{label or target}"
        return f"{label} ({target})" if label and label != target else target

    return unescape(_SLACK_LINK.sub(show, text))


def _by_thread(turns: Sequence[NumberedTurn]) -> list[NumberedTurn]:
    """Turns in their order, but each thread as one, where its first message stands."""
    first: dict[object, int] = {}
    keys = []
    for at, (_, turn) in enumerate(turns):
        thread = turn.metadata.get("thread")
        keys.append(at if thread is None else first.setdefault(thread, at))
    return [turns[at] for at in sorted(range(len(turns)), key=lambda at: (keys[at], at))]


def _turn(
    session: str,
    speaker: object,
    texts: Sequence[str],
    time: object,
    metadata: Mapping[str, Json] = NO_METADATA,
) -> Iterator[Turn]:
    text = "\n".join(filter(None, texts)).strip()
    if text:
        who = speaker if isinstance(speaker, str) else ""
        yield Turn(session=session, speaker=who, text=text, timestamp=_time(time), metadata=metadata)


def _session(conversation: Mapping[str, Any], *names: str, fallback: str = "conversation") -> str:
    for name in names:
        value = conversation.get(name)
        text = str(value) if type(value) is int else value
        if isinstance(text, str) and text.strip():
            return text.strip()[:MAX_SESSION_CHARACTERS]
    return fallback


def _titled(conversation: Mapping[str, Any], name: str) -> dict[str, Json]:
    """The title of a conversation as metadata, so that its turns are told apart without opening it."""
    title = conversation.get(name)
    return (
        {"conversation": title[:MAX_SESSION_CHARACTERS]} if isinstance(title, str) and title.strip() else {}
    )


def _inside(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name)
    return value if isinstance(value, dict) else {}


def _items(values: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in a list; empty for anything else."""
    value = values.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


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
