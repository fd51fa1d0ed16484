"""E-mail: single messages and mailboxes, each message with its subject, people and time."""

from __future__ import annotations

import email
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from email.message import EmailMessage, Message
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

MAX_DEPTH: Final = 50
"""Parts inside each other; a forwarded message of a forwarded message has six."""
MAX_NAME_CHARACTERS: Final = 200
MAX_NAMED_ATTACHMENTS: Final = 50

_DATED: Final = re.compile(r"\d")
"""A line that says when, and so begins what goes before a quotation."""
_MARKED_FROM: Final = re.compile(rb"^>(>*From )", re.MULTILINE)
_SEPARATOR: Final = re.compile(
    rb"(?:\A|(?<=\n))From (?:[^\n]*\d:\d\d[^\n]* \d{4}\b[^\n]*\n|[^\n]*\n(?=[!-9;-~]+:))|\AFrom [^\n]*\n"
)
"""A line `From ` with a date, or with a header below it. Not every program marks such a line of a text."""


def mail_records(data: bytes, place: str, *, collection: str, is_mailbox: bool) -> list[Record]:
    """The passages of each message; raises UnreadableFile if there is none."""
    ids = RecordIds(id_prefix(place))
    out: list[Record] = []
    seen: set[str] = set()
    for number, message in _numbered_messages(data, is_mailbox=is_mailbox):
        subject = _header(message, "subject")
        found = _read_body(message)
        body = found.text
        metadata: dict[str, Json] = {
            name: value
            for name in ("from", "to", "cc", "message-id", "in-reply-to")
            if (value := _header(message, name))
        }
        if found.attached:
            metadata["attachments"] = list(dict.fromkeys(found.attached))[:MAX_NAMED_ATTACHMENTS]
        document = Document(split_lines(_without_repeated_quote(body, seen)))
        seen.update(line.lstrip("> ").strip() for line in split_lines(body))
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
        yield number, f"{_heading(message)}\n\n{_read_body(message).text}"


def _heading(message: EmailMessage) -> str:
    """The subject, people and time of a message as lines."""
    headers = {name: _header(message, name) for name in ("Subject", "From", "To", "Cc", "Date")}
    return "\n".join(f"{name}: {value}" for name, value in headers.items() if value)


def _numbered_messages(data: bytes, *, is_mailbox: bool) -> Iterator[tuple[int, EmailMessage]]:
    for number, raw in enumerate(_messages(data) if is_mailbox else (data,), 1):
        if number > MAX_MESSAGES:
            raise UnreadableFile(f"a mailbox of more than {MAX_MESSAGES:,} messages")
        yield number, _parse(raw)


def _messages(data: bytes) -> Iterator[bytes]:
    """The messages of a mailbox."""
    separators = [found.span() for found in _SEPARATOR.finditer(data)]
    if not separators:
        raise UnreadableFile("not a mailbox, despite its name")
    ends = [first for first, _ in separators[1:]]
    for (_, begin), end in zip(separators, (*ends, len(data)), strict=True):
        # A mailbox marks a line of a text that would begin a message.
        yield _MARKED_FROM.sub(rb"\1", data[begin:end])


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


class _Body:
    """Collects the text of a message, and the names of what is attached."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.attached: list[str] = []
        self._parts = 0

    def add(self, part: Message, depth: int = 0) -> None:
        """Take a part with all that is in it: of alternatives the best one, and of everything else all."""
        self._parts += 1
        if self._parts > MAX_PARTS or depth > MAX_DEPTH:
            return
        kind = part.get_content_type()
        name = _file_name(part)
        if kind == "message/rfc822":
            self._add_forwarded(part, depth)
        elif name or part.get_content_disposition() == "attachment":
            self.attached.append(name or kind)
        elif part.is_multipart():
            children = _children(part)
            if kind == "multipart/alternative":
                self._add_best(children, depth)
            else:
                for child in children:
                    self.add(child, depth + 1)
        elif kind in ("text/plain", "text/html"):
            self.texts.append(_text(part, is_html=kind == "text/html"))

    def _add_best(self, alternatives: Sequence[Message], depth: int) -> None:
        """Take the plain form of a text, or another one if that is empty or missing."""
        plain_first = sorted(alternatives, key=lambda one: one.get_content_type() != "text/plain")
        for one in plain_first:
            found = _Body()
            found._parts = self._parts
            found.add(one, depth + 1)
            self._parts = found._parts
            self.attached += found.attached
            if any(text.strip() for text in found.texts):
                self.texts += found.texts
                return

    def _add_forwarded(self, part: Message, depth: int) -> None:
        for message in _children(part):
            if isinstance(message, EmailMessage):
                self.texts.append(_heading(message))
            self.add(message, depth + 1)

    @property
    def text(self) -> str:
        """The texts of all parts, then the names of the attachments."""
        names = f"Attachments: {', '.join(self.attached)}" if self.attached else ""
        return _valid("\n\n".join(filter(None, (*(text.strip("\n") for text in self.texts), names))))


def _read_body(message: Message) -> _Body:
    body = _Body()
    body.add(message)
    return body


def _children(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [one for one in payload if isinstance(one, Message)] if isinstance(payload, list) else []


def _file_name(part: Message) -> str:
    try:
        name = part.get_filename()
    except (ValueError, TypeError, AttributeError, IndexError, LookupError):
        return ""
    return " ".join(_valid(name).split())[:MAX_NAME_CHARACTERS] if isinstance(name, str) else ""


def _text(part: Message, *, is_html: bool) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    try:
        text = payload.decode(part.get_content_charset() or "utf-8")
    except (LookupError, UnicodeDecodeError, ValueError):
        try:
            text = decode(payload).text
        except UnreadableFile:
            return ""
    if is_html:
        return "\n".join(parse_html(text).lines)
    is_flowed = str(part.get_param("format", "")).lower() == "flowed"
    return _unflow(text) if is_flowed else text


def _unflow(text: str) -> str:
    """Join the lines of a paragraph that a mail program broke (RFC 3676): all that end with a blank but `-- `."""
    out: list[str] = []
    goes_on = False
    for line in split_lines(text):
        quote = len(line) - len(line.lstrip(">"))
        own = line[quote:].removeprefix(" ")
        before = len(out[-1]) - len(out[-1].lstrip(">")) if out else 0
        if goes_on and quote == before:
            out[-1] += own
        else:
            out.append(f"{'>' * quote} {own}" if quote else own)
        goes_on = line.endswith(" ") and own != "-- "
    return "\n".join(out)


def _without_repeated_quote(text: str, seen: set[str]) -> str:
    """Return a text without the quotation that ends it, if all of its lines are known from earlier messages."""
    lines = split_lines(text)
    begin = len(lines)
    while begin and (not lines[begin - 1].strip() or lines[begin - 1].startswith(">")):
        begin -= 1
    quoted = [known for line in lines[begin:] if (known := line.lstrip("> ").strip())]
    if not quoted or not seen.issuperset(quoted):
        return text
    while begin and not lines[begin - 1].strip():
        begin -= 1
    if begin and lines[begin - 1].rstrip().endswith(":"):
        begin -= 1
        # "On 3 March, somebody" and "wrote:" are often two lines.
        if begin and " " not in lines[begin].strip() and _DATED.search(lines[begin - 1]):
            begin -= 1
    kept = "\n".join(lines[:begin]).rstrip()
    return kept or text


def _valid(text: str) -> str:
    """Text without lone surrogates and zero bytes, which headers in a broken encoding have."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
