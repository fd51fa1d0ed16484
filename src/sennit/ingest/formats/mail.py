"""E-mail: single messages and mailboxes, each message with its subject, people and time."""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from datetime import datetime
from email.message import EmailMessage
from email.policy import default as default_policy
from typing import Final

from sennit.errors import InvalidInput
from sennit.ingest.chunk import Document, chunks, split_lines
from sennit.ingest.file_reader import UnreadableFile, decode
from sennit.ingest.html import parse_html
from sennit.ingest.text_profile import RecordIds, id_prefix
from sennit.records import FRAGMENT_FIELD, Json, Record, as_utc

MAX_MESSAGES: Final = 100_000
MAX_PARTS: Final = 1_000
"""Parts of one message that are looked at; a hostile one nests or repeats them."""

_SEPARATOR: Final = re.compile(rb"(?:\A|(?<=\n))From [^\n]*\n")


def mail_records(data: bytes, place: str, *, collection: str, is_mailbox: bool) -> list[Record]:
    """The passages of each message; raises UnreadableFile if there is none."""
    ids = RecordIds(id_prefix(place))
    out: list[Record] = []
    for number, message in _numbered_messages(data, is_mailbox=is_mailbox):
        subject = _header(message, "subject")
        metadata: dict[str, Json] = {
            name: value
            for name in ("from", "to", "cc", "message-id", "in-reply-to")
            if (value := _header(message, name))
        }
        document = Document(split_lines(_body(message)))
        for passage in chunks(document):
            text = passage.text
            out.append(
                Record(
                    id=ids.next_id(f"{number}\n{text}"),
                    text=text,
                    collection=collection,
                    title=subject,
                    kind="message",
                    path=place,
                    parent=place,
                    position=len(out),
                    timestamp=_sent(message),
                    metadata={**metadata, FRAGMENT_FIELD: f"message={number}"},
                )
            )
    if not out:
        raise UnreadableFile("no message with text")
    return out


def message_texts(data: bytes, *, is_mailbox: bool) -> Iterator[tuple[int, str]]:
    """The number of each message with its text: subject, people and time, then what was written."""
    for number, message in _numbered_messages(data, is_mailbox=is_mailbox):
        headers = {name: _header(message, name) for name in ("Subject", "From", "To", "Cc", "Date")}
        head = [f"{name}: {value}" for name, value in headers.items() if value]
        yield number, "\n".join((*head, "", _body(message).strip()))


def _numbered_messages(data: bytes, *, is_mailbox: bool) -> Iterator[tuple[int, EmailMessage]]:
    for number, raw in enumerate(_messages(data) if is_mailbox else (data,), 1):
        if number > MAX_MESSAGES:
            raise UnreadableFile(f"a mailbox of more than {MAX_MESSAGES:,} messages")
        yield number, _parse(raw)


def _messages(data: bytes) -> Iterator[bytes]:
    """The messages of a mailbox; a line `From ` begins each."""
    separators = [found.span() for found in _SEPARATOR.finditer(data)]
    if not separators:
        raise UnreadableFile("not a mailbox, despite its name")
    ends = [first for first, _ in separators[1:]]
    for (_, begin), end in zip(separators, (*ends, len(data)), strict=True):
        yield data[begin:end]


def _parse(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=default_policy)
    assert isinstance(message, EmailMessage)
    return message


def _header(message: EmailMessage, name: str) -> str:
    try:
        value = message[name]
        return "" if value is None else " ".join(_valid(str(value)).split())[:1000]
    except (ValueError, TypeError, AttributeError, IndexError, LookupError):
        # The parser of headers fails on some that are malformed; the message is worth reading all the same.
        return ""


def _sent(message: EmailMessage) -> datetime | None:
    try:
        value = message["date"]
        return None if value is None else as_utc(value.datetime)
    except (InvalidInput, ValueError, TypeError, AttributeError, IndexError, OverflowError):
        return None


def _body(message: EmailMessage) -> str:
    """The plain text of a message, or that of its HTML; attachments have none."""
    by_type: dict[str, str] = {}
    for count, part in enumerate(message.walk()):
        if count >= MAX_PARTS:
            break
        kind = part.get_content_type()
        if kind not in ("text/plain", "text/html") or kind in by_type or part.get_filename():
            continue
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            try:
                by_type[kind] = payload.decode(part.get_content_charset() or "utf-8")
            except (LookupError, UnicodeDecodeError):
                by_type[kind] = decode(payload).text
    plain = by_type.get("text/plain", "")
    if plain.strip() or "text/html" not in by_type:
        return _valid(plain)
    return _valid("\n".join(parse_html(by_type["text/html"]).lines))


def _valid(text: str) -> str:
    """Text without lone surrogates and zero bytes, which headers in a broken encoding have."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
