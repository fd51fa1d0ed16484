"""Mail as programs write it: alternatives, encodings, attachments, forwarded messages, replies, and broken parts."""

from __future__ import annotations

import email.policy
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from ingest.conftest import write
from sennit.ingest.formats.mail import MAX_DEPTH, mail_records, message_texts
from sennit.records import Record


def new(subject: str, text: str = "") -> EmailMessage:
    out = EmailMessage()
    out["Subject"], out["From"], out["To"] = subject, "Ana <ana@example.org>", "crew@example.org"
    if text:
        out.set_content(text)
    return out


def body(data: bytes | EmailMessage) -> str:
    raw = data.as_bytes() if isinstance(data, EmailMessage) else data
    ((_, text),) = message_texts(raw, is_mailbox=False)
    return text.partition("\n\n")[2]


def records(*messages: EmailMessage | bytes) -> list[Record]:
    parts = [one.as_bytes() if isinstance(one, EmailMessage) else one for one in messages]
    data = b"\n".join(b"From x\n" + part for part in parts)
    return mail_records(data, "in.mbox", collection="files", is_mailbox=True)


def test_of_alternatives_the_plain_text_is_read_and_html_where_there_is_none() -> None:
    both = new("x", "The plain text")
    both.add_alternative("<p>The <b>HTML</b></p>", subtype="html")
    assert body(both) == "The plain text"
    empty = new("x", " ")
    empty.add_alternative("<p>Only in <b>HTML</b></p>", subtype="html")
    empty.get_payload()[1].add_related(b"x", "image", "png", filename="logo.png")  # type: ignore[union-attr, index]
    assert body(empty) == "Only in HTML\n\nAttachments: logo.png"
    both.add_attachment(b"x", maintype="image", subtype="png", filename="quay.png")
    assert body(both) == "The plain text\n\nAttachments: quay.png"


def test_every_text_of_a_message_is_read() -> None:
    raw = (
        b"Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
        b"--b\nContent-Type: text/plain\n\nBefore the list.\n"
        b"--b\nContent-Type: text/html\n\n<p>Between</p>\n"
        b"--b\nContent-Type: text/plain\n\n-- \nThe mailing list.\n--b--\n"
    )
    assert body(raw) == "Before the list.\n\nBetween\n\n-- \nThe mailing list."


def test_attachments_are_named_and_found(db: sennit.Database, root: Path) -> None:
    message = new("Timetable")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="Fähren im Winter.pdf")
    message.add_attachment("a,b\n", subtype="csv", filename="tides.csv")
    message.add_attachment(b"x", maintype="application", subtype="pgp-keys")
    write(root, {"a.eml": message.as_bytes(policy=email.policy.SMTP)})
    db.index(root)
    (record,) = db
    assert record.metadata["attachments"] == ["Fähren im Winter.pdf", "tides.csv", "application/pgp-keys"]
    assert db.search("Fähren im Winter", recipe="keyword")[0].id == record.id


def test_a_forwarded_message_is_part_of_the_text() -> None:
    inner = new("Crane", "The crane is repaired.")
    outer = new("Fwd: Crane", "See below.")
    outer.add_attachment(inner)
    text = body(outer)
    assert text.startswith("See below.\n\nSubject: Crane\nFrom: Ana <ana@example.org>")
    assert text.endswith("The crane is repaired.")


@pytest.mark.parametrize(
    ("headers", "payload", "text"),
    [
        ("Content-Type: text/plain; charset=iso-8859-15", "Gr\xfc\xdfe \xa4".encode("latin-1"), "Grüße €"),
        ("Content-Type: text/plain; charset=koi8-r", "Причал".encode("koi8-r"), "Причал"),
        ("Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64", b"R3LDvMOfZQ==", "Grüße"),
        (
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable",
            b"Gr=C3=BC=C3=9Fe and a long =\nline",
            "Grüße and a long line",
        ),
        ("Content-Type: text/plain; charset=unknown-8bit", "Grüße".encode("cp1252"), "Grüße"),
        ("Content-Type: text/plain; charset=us-ascii", "Grüße".encode(), "Grüße"),
        ("Content-Type: text/plain; charset=iso-2022-jp", "港".encode("iso2022_jp"), "港"),
        ("Content-Type: text/plain; format=flowed", b"A long \nline.\n> Quoted \n> text.\n-- \nAna", "A long line.\n> Quoted text.\n-- \nAna"),
    ],
)  # fmt: skip
def test_encodings_are_read(headers: str, payload: bytes, text: str) -> None:
    assert body(b"Subject: x\nMIME-Version: 1.0\n" + headers.encode() + b"\n\n" + payload) == text


def test_a_reply_is_found_by_what_it_adds() -> None:
    first = new("Crane", "When is the crane repaired?\n\nAna")
    reply = new(
        "Re: Crane", "On Friday.\n\nOn 3 March 2026 Ana\nwrote:\n> When is the crane repaired?\n>\n> Ana\n"
    )
    again = new("Re: Re: Crane", "Thanks!\n\nRui wrote:\n> On Friday.\n>> When is the crane repaired?\n")
    between = new("Re: Crane", "> When is the crane repaired?\nOn Friday.\n> Ana\nIs that you?\n")
    unknown = new("Re: Mast", "Yes.\n\n> Is the mast still broken?\n")
    only = new("Re: Crane", "> When is the crane repaired?\n")
    assert [record.text for record in records(first, reply, again, between, unknown, only)] == [
        "When is the crane repaired?\n\nAna",
        "On Friday.",
        "Thanks!",
        "> When is the crane repaired?\nOn Friday.\n> Ana\nIs that you?",
        "Yes.\n\n> Is the mast still broken?",
        "> When is the crane repaired?",
    ]


def test_a_line_that_the_mailbox_marked_is_read_as_it_was() -> None:
    (record,) = records(b"Subject: x\n\n>From tomorrow on.\n>>From the quay.\n")
    assert record.text == "From tomorrow on.\n>From the quay."


def test_a_text_that_begins_with_from_is_no_new_message() -> None:
    mailbox = (
        b"From ana\nSubject: one\n\nThe plan:\n\nFrom here we sail on.\nFrom there we row.\n\n"
        b"From ben Mon Jan  1 10:00:00 2024\nSubject: two\n\nFrom 9:30 to 5.\n"
    )
    texts = dict(message_texts(mailbox, is_mailbox=True))
    assert list(texts) == [1, 2]
    assert texts[1].strip().endswith("From here we sail on.\nFrom there we row.")
    assert texts[2].strip().endswith("From 9:30 to 5.")


def test_parts_inside_each_other_are_bounded() -> None:
    raw = b"Subject: x\nMIME-Version: 1.0\n"
    for at in range(4 * MAX_DEPTH):
        raw += f"Content-Type: multipart/mixed; boundary=b{at}\n\n--b{at}\n".encode()
    assert body(raw + b"Content-Type: text/plain\n\ndeep\n") == ""
    alternatives = b"Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b\n\n"
    alternatives += b"--b\nContent-Type: text/plain\n\n \n" * 5_000
    assert body(alternatives + b"--b--\n") == ""


HEADERS = st.sampled_from(
    [
        "Content-Type: multipart/mixed; boundary=b",
        "Content-Type: multipart/alternative; boundary=b",
        "Content-Type: message/rfc822",
        "Content-Type: text/html; charset=utf-16",
        'Content-Type: text/plain; charset="\udc80"',
        "Content-Type: ;;;",
        "Content-Disposition: attachment; filename*=utf-8''%ff%fe",
        "Content-Disposition: attachment; filename==?utf-8?b?!?=",
        "Content-Transfer-Encoding: base64",
        "Content-Transfer-Encoding: x",
        "Subject: =?x?y?z?=",
        "Date: 99 Foo 20xx",
        "From: <<>>,\x00",
        "",
        "--b",
        "--b--",
        "text",
        "> text",
    ]
)


@given(st.lists(HEADERS, max_size=14))
def test_a_broken_message_is_read_as_far_as_it_goes(lines: list[str]) -> None:
    for _, text in message_texts("\n".join(lines).encode(errors="surrogateescape"), is_mailbox=False):
        text.encode()
