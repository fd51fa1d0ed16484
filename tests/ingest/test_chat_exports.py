"""Exports of chat tools and assistants in the forms that they have now, and broken ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from ingest.conftest import write
from sennit.ingest.formats.chat_exports import parse_export
from sennit.ingest.formats.whatsapp import parse_whatsapp

# WhatsApp


def at(*numbers: int) -> datetime:
    return datetime(*numbers, tzinfo=UTC)  # type: ignore[arg-type, misc]


FERRY = [("Ana", "The ferry is late"), ("Rui", "Then we take the train")]
EVENING = [at(2025, 12, 31, 21, 15), at(2025, 12, 31, 21, 16)]


@pytest.mark.parametrize(
    ("first", "second", "times"),
    [
        ("[31/12/2025, 21:15:00] ", "[31/12/2025, 21:16:02] ", [EVENING[0], at(2025, 12, 31, 21, 16, 2)]),
        ("[31.12.25, 21:15:00] ", "\u200e[31.12.25, 21:16:00] ", EVENING),
        ("[12/31/25, 9:15:00\u202fPM] ", "[12/31/25, 9:16:00\u202fPM] ", EVENING),
        ("[2025-12-31, 9:15:00 p.m.] ", "[2025-12-31, 9:16:00 p.m.] ", EVENING),
        ("31/12/2025, 21:15 - ", "31/12/2025, 21:16 - ", EVENING),
        ("31/12/2025 21:15 - ", "31/12/2025 21:16 - ", EVENING),
        ("31.12.25, 21:15 - ", "31.12.25, 21:16 - ", EVENING),
        ("12/31/25, 9:15\u202fPM - ", "12/31/25, 9:16\u202fPM - ", EVENING),
        ("12/31/25, 9:15 pm - ", "12/31/25, 9:16 pm - ", EVENING),
        ("31/12/25, 9:15 p.\u00a0m. - ", "31/12/25, 9:16 p.\u00a0m. - ", EVENING),
        ("31.12.2025, 21.15 - ", "31.12.2025, 21.16 - ", EVENING),
        ("2025/12/31, 21:15 - ", "2025/12/31, 21:16 - ", EVENING),
        # Nothing but the order of the messages, or the form, tells the day from the month.
        ("03/02/2026, 21:15 - ", "01/03/2026, 21:16 - ", [at(2026, 2, 3, 21, 15), at(2026, 3, 1, 21, 16)]),
        ("3/2/26, 9:15 PM - ", "4/1/26, 9:16 PM - ", [at(2026, 3, 2, 21, 15), at(2026, 4, 1, 21, 16)]),
        ("3/2/26, 12:15 AM - ", "3/2/26, 12:16 PM - ", [at(2026, 3, 2, 0, 15), at(2026, 3, 2, 12, 16)]),
        ("03/02/2026, 21:15 - ", "03/02/2026, 21:16 - ", [at(2026, 2, 3, 21, 15), at(2026, 2, 3, 21, 16)]),
    ],
)
def test_dates_of_every_country_and_system_are_read(first: str, second: str, times: list[datetime]) -> None:
    text = f"{first}Ana: The ferry is late\r\n{second}Rui: Then we take the train\r\n"
    found = parse_whatsapp(text, "chat")
    assert [(turn.speaker, turn.text) for _, turn in found] == FERRY
    assert [turn.timestamp for _, turn in found] == times
    assert [lines for lines, _ in found] == [(1, 1), (2, 2)]


ANDROID = (
    "31/12/2025, 21:10 - Messages and calls are end-to-end encrypted. Only people in this chat can read them.\n"
    '31/12/2025, 21:11 - Ana changed the subject from "Boats: old" to "Boats"\n'
    "31/12/2025, 21:12 - Rui joined using this group's invite link\n"
    "31/12/2025, 21:15 - Ana: The ferry is late\n"
    "because of fog:\n"
    "\n"
    "no boat before noon\n"
    "31/12/2025, 21:16 - \u202a+351 912 345 678\u202c: \n"
    "31/12/2025, 21:16 - Rui: <Media omitted>\n"
    "31/12/2025, 21:17 - ~\u202fRui: Then: the train\n"
)
IOS = (
    "[31/12/2025, 21:10:00] Boats: \u200eMessages and calls are end-to-end encrypted.\n"
    "[31/12/2025, 21:15:00] Ana: The ferry is late\n"
    "because of fog\n"
    "\u200e[31/12/2025, 21:15:30] Ana: \u200eimage omitted\n"
    "\u200e[31/12/2025, 21:15:40] Ana: \u200e<attached: 00000012-timetable.pdf>\n"
    "[31/12/2025, 21:16:00] Rui: \u200eYou deleted this message.\n"
    "[31/12/2025, 21:16:02] Rui: Then we take the train\n"
)


def test_lines_of_the_program_are_no_turns_and_messages_keep_their_lines() -> None:
    assert [(turn.speaker, turn.text, lines) for lines, turn in parse_whatsapp(ANDROID, "chat")] == [
        ("Ana", "The ferry is late\nbecause of fog:\n\nno boat before noon", (4, 7)),
        ("Rui", "Then: the train", (10, 10)),
    ]
    assert [(turn.speaker, turn.text, lines) for lines, turn in parse_whatsapp(IOS, "chat")] == [
        ("Ana", "The ferry is late\nbecause of fog", (2, 3)),
        ("Ana", "<attached: 00000012-timetable.pdf>", (5, 5)),
        ("Rui", "Then we take the train", (7, 7)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "One line.\n",
        "2026-01-02 10:00:00 ERROR: no space\n2026-01-02 10:00:01 INFO: done\n",
        "A letter.\n\n\n\n\n31/12/2025, 21:15 - Ana: quoted\n31/12/2025, 21:16 - Rui: quoted\n",
        "31/12/2025, 21:15 - Ana: alone\n",
    ],
)
def test_other_text_is_no_chat(text: str) -> None:
    assert parse_whatsapp(text, "chat") == []


# Telegram


def telegram(*messages: dict[str, Any], **chat: Any) -> dict[str, Any]:
    return {"name": "Boats", "type": "private_group", "id": 7, "messages": list(messages), **chat}


TELEGRAM = telegram(
    {"id": 1, "type": "service", "date": "2026-01-01T10:00:00", "actor": "Ana", "action": "create_group", "text": ""},
    {
        "id": 2, "type": "message", "date": "2026-01-01T11:00:00", "date_unixtime": "1767261600", "from": "Ana",
        "from_id": "user1", "text": "Who has the key?",
    },
    {
        "id": 3, "type": "message", "date": "2026-01-01T11:01:00", "date_unixtime": "1767261660", "from": "Rui",
        "text": ["Marta, see ", {"type": "link", "text": "https://example.org/key"}, "."], "reply_to_message_id": 2,
    },
    {"id": 4, "type": "message", "date": "2026-01-01T11:02:00", "from": None, "text": "", "file_name": "map.pdf"},
    {"id": 5, "type": "message", "date": "2026-01-01T11:03:00", "from": "Ana", "text": "", "photo": "photos/1.jpg"},
)  # fmt: skip


def said(content: object, name: str = "result") -> list[tuple[int, str, str, str]]:
    turns = parse_export(json.dumps(content), name)
    assert turns is not None
    return [(number, turn.session, turn.speaker, turn.text) for number, turn in turns]


def test_a_chat_of_telegram_becomes_turns() -> None:
    expected = [
        (1, "Boats", "Ana", "Who has the key?"),
        (2, "Boats", "Rui", "Marta, see https://example.org/key."),
        (3, "Boats", "", "[map.pdf]"),
    ]
    assert said(TELEGRAM) == expected
    turns = parse_export(json.dumps(TELEGRAM), "result")
    assert turns is not None
    assert turns[0][1].timestamp == at(2026, 1, 1, 10)


def test_an_account_of_telegram_becomes_a_session_for_each_chat() -> None:
    saved = telegram(
        {"id": 1, "type": "message", "date": "2026-01-02T08:00:00", "from": "Ana", "text": "Buy paint"},
        name=None,
        type="saved_messages",
        id=99,
    )
    account = {"about": "x", "chats": {"about": "y", "list": [TELEGRAM, saved]}, "contacts": {"list": []}}
    assert [session for _, session, _, _ in said(account)] == ["Boats", "Boats", "Boats", "99"]


# Slack


def slack(ts: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": "U1", "ts": ts, "text": text, **more}


def test_replies_follow_the_first_message_of_their_thread(db: sennit.Database, root: Path) -> None:
    day = [
        slack("1767225600.0", "Who has the key?", thread_ts="1767225600.0", reply_count=2),
        slack("1767225601.0", "Lunch is at noon.", user="U2"),
        slack("1767225602.0", "Marta has it.", user="U2", thread_ts="1767225600.0", parent_user_id="U1"),
        slack("1767225603.0", "Fish again?"),
        slack("1767225604.0", "Thanks!", thread_ts="1767225600.0", subtype="thread_broadcast"),
        slack("1767225605.0", "An old thread goes on.", thread_ts="1767000000.0"),
    ]
    assert [(number, text) for number, _, _, text in said(day)] == [
        (1, "Who has the key?"),
        (3, "Marta has it."),
        (5, "Thanks!"),
        (2, "Lunch is at noon."),
        (4, "Fish again?"),
        (6, "An old thread goes on."),
    ]
    write(root, {"general/2026-01-01.json": json.dumps(day)})
    db.index(root)
    hit = db.search("Marta has it", limit=1)[0]
    assert (Path(hit.citation).name, hit.metadata["thread"]) == ("2026-01-01.json#message=3", "1767225600.0")
    assert db.files.read(hit.citation).text == "U2: Marta has it.\n"


def test_messages_of_slack_are_read_as_they_were_shown() -> None:
    day = [
        slack("1.0", "<@U2> and <@U9>: see <https://x.org/a|the plan> &amp; <#C1|boats>", user_profile={"real_name": "Ana"}),
        slack("2.0", "<https://x.org/b> &lt;now&gt; <!here>", user="U2", user_profile={"display_name": "Rui"}),
        {"type": "message", "subtype": "bot_message", "username": "tide-bot", "ts": "3.0", "text": "High tide"},
        slack("4.0", "", user="U2", files=[{"name": "map.pdf"}, {"mode": "tombstone"}]),
        slack("5.0", "has joined", subtype="channel_join"),
    ]  # fmt: skip
    assert [(speaker, text) for _, _, speaker, text in said(day)] == [
        ("Ana", "@Rui and @U9: see the plan (https://x.org/a) & #boats"),
        ("Rui", "https://x.org/b <now> @here"),
        ("tide-bot", "High tide"),
        ("Rui", "[map.pdf]"),
    ]


# Assistants


def test_a_current_export_of_chatgpt_is_read() -> None:
    def node(parent: str | None, role: str, content: dict[str, Any], **metadata: Any) -> dict[str, Any]:
        message = {
            "author": {"role": role},
            "content": content,
            "metadata": metadata,
            "create_time": 1767225600.5,
        }
        return {"message": message, "parent": parent}

    spoken = {"content_type": "audio_transcription", "text": "And the mast?", "direction": "in"}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    conversation = {
        "title": "Painting a boat",
        "conversation_id": "c-1",
        "current_node": "g",
        "mapping": {
            "a": node(None, "system", {"content_type": "text", "parts": [""]}),
            "b": node("a", "user", {"content_type": "user_editable_context", "user_profile": "secret"}),
            "c": node("b", "user", {"content_type": "multimodal_text", "parts": [picture, "Which paint?"]}),
            "d": node("c", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}),
            "e": node("d", "assistant", {"content_type": "text", "parts": ["Oil \ue200cite\ue202turn0search1\ue201paint."]}),
            "f": node("e", "user", {"content_type": "multimodal_text", "parts": [spoken]}),
            "h": node("f", "user", {"content_type": "text", "parts": ["unseen"]}, is_visually_hidden_from_conversation=True),
            "g": node("h", "assistant", {"content_type": "text", "parts": ["Varnish."]}),
        },
    }  # fmt: skip
    assert [(speaker, text) for _, _, speaker, text in said([conversation])] == [
        ("user", "Which paint?"),
        ("assistant", "Oil paint."),
        ("user", "And the mast?"),
        ("assistant", "Varnish."),
    ]
    turns = parse_export(json.dumps([conversation]), "x")
    assert turns is not None
    assert turns[0][1].metadata == {"conversation": "Painting a boat"}


def test_a_current_export_of_claude_is_read() -> None:
    unsupported = "```\nThis block is not supported on your current device yet.\n```"
    conversation = {
        "uuid": "u-1",
        "name": "Ropes",
        "chat_messages": [
            {
                "sender": "human",
                "text": "Which knot?",
                "content": [{"type": "text", "text": "Which knot?"}],
                "attachments": [
                    {"file_name": "fender.txt", "extracted_content": "long"},
                    {"file_name": "", "extracted_content": "A pasted page about knots."},
                ],
                "files": [{"file_name": "quay.jpg"}],
            },
            {
                "sender": "assistant",
                "text": f"{unsupported}\n\nTwo half hitches.",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "tool_use", "name": "search", "input": {}},
                    {"type": "tool_result", "content": [{"type": "text", "text": "raw"}]},
                    {"type": "text", "text": "Two half hitches.", "citations": []},
                ],
            },
            {"sender": "assistant", "text": unsupported, "content": [{"type": "tool_use", "name": "x"}]},
            {"sender": "human", "text": "Thanks"},
        ],
    }
    assert [(speaker, text) for _, _, speaker, text in said([conversation])] == [
        ("user", "Which knot?\nA pasted page about knots.\n[fender.txt]\n[quay.jpg]"),
        ("assistant", "Two half hitches."),
        ("user", "Thanks"),
    ]


# Broken files

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "type ts user text messages date from mapping message author content parts chat_messages sender files "
                "attachments chats list name user_profile thread_ts file_name current_node parent metadata role id".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(JSON_VALUES)
def test_any_json_is_turns_or_another_kind(content: object) -> None:
    parse_export(json.dumps(content), "x")


@pytest.mark.parametrize("content", [TELEGRAM, [slack("1.0", "x")]])
@given(data=st.data())
def test_an_export_with_a_broken_field_is_read_or_left(content: Any, data: st.DataObject) -> None:
    broken = json.loads(json.dumps(content))
    objects = broken["messages"] if isinstance(broken, dict) else broken
    chosen = data.draw(st.sampled_from(objects))
    chosen[data.draw(st.sampled_from(sorted(chosen)))] = data.draw(JSON_VALUES)
    parse_export(json.dumps(broken), "x")


@given(st.text("[]31/2025, 9:pPmM.-\u202f\u200e\nAna ", max_size=120))
def test_any_text_is_a_chat_or_none(text: str) -> None:
    for lines, turn in parse_whatsapp(text, "x"):
        assert 1 <= lines[0] <= lines[1]
        assert turn.text.strip()
