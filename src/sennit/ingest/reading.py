"""From a file to its bytes, and from bytes to text: carefully, and saying what had to be guessed."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from dataclasses import dataclass
from typing import Final, NamedTuple

LOOKED_AT: Final = 8192
"""Bytes in which a zero byte says 'binary', as for git and grep."""

MAX_CONTROL: Final = 0.02
"""Share of control characters above which bytes are no text."""

MAX_BROKEN: Final = 0.01
"""Share of bytes that are wrong in a text which is UTF-8 otherwise: damage, and no other encoding."""

SIGNATURES: Final = (
    (b"PK\x03\x04", "a zip archive"), (b"PK\x05\x06", "a zip archive"), (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"), (b"\xfd7zXZ\x00", "an xz archive"), (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"), (b"\x28\xb5\x2f\xfd", "a zstd archive"), (b"\x89PNG\r\n", "an image"),
    (b"GIF8", "an image"), (b"\xff\xd8\xff", "an image"), (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x7fELF", "a program"), (b"%PDF-", "a PDF"), (b"%!PS-Adobe", "PostScript"), (b"wOF2", "a font"),
)  # fmt: skip
"""What files are that begin like this, whatever they are called."""

_DECLARED: Final = re.compile(
    rb"""(?:coding|charset|encoding)[ \t]{0,4}[=:][ \t]{0,4}["']?([A-Za-z0-9._-]{2,32})"""
)

DECLARABLE: Final = frozenset({
    "big5", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp932",
    "cp949", "cp950", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso8859-1", "iso8859-2", "iso8859-3",
    "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "iso8859-10", "iso8859-13",
    "iso8859-14", "iso8859-15", "iso8859-16", "iso2022_jp", "koi8-r", "koi8-u", "mac-roman", "shift_jis",
})  # fmt: skip
"""Encodings that a file may name itself; Python knows more, and some of those are no encodings of text."""

_CONTROL: Final = bytes(set(range(0x20)) - set(b"\t\n\r\f\b\x1b") | {0x7F})
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Unreadable(Exception):
    """Why a file gives no text; `lasting` when that stays so until the file changes."""

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        self.lasting = lasting
        super().__init__(reason)


class Contents(NamedTuple):
    """The bytes of a file, and how it looked just before they were read."""

    data: bytes
    status: os.stat_result


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, with what is worth knowing of how it came about."""

    text: str
    encoding: str
    replaced: int = 0
    """Characters that could not be read and stand as U+FFFD."""


def contents(path: str, max_bytes: int) -> Contents:
    """The bytes of a regular file; never waits on a pipe, follows a link or reads past the limit."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    try:
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("not a regular file", lasting=False)
            if status.st_size > max_bytes:
                raise Unreadable(f"{status.st_size:,} bytes; the most is {max_bytes:,}", lasting=False)
            data = bytearray()
            # One byte more than there should be: a file that grows meanwhile is seen, and stays bounded.
            while len(data) <= max_bytes and (part := file.read(min(max_bytes + 1 - len(data), 1 << 22))):
                data += part
            if len(data) > max_bytes:
                raise Unreadable(f"it grew past {max_bytes:,} bytes", lasting=False)
            return Contents(bytes(data), status)
    except OSError as error:
        raise Unreadable(_said(error), lasting=False) from error


def _said(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "a symbolic link, not a file"
    if error.errno == errno.ENOENT:
        return "it disappeared meanwhile"
    return f"cannot be read: {error.strerror}"


def decode(data: bytes) -> Decoded:
    """The text of bytes; raises Unreadable for what is none."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _marked(data[len(mark) :], encoding)
    _refuse_binary(data)
    try:
        return _without_zeros(data.decode(), "utf-8", 0)
    except UnicodeDecodeError:
        pass
    declared = _declared(data)
    if declared is not None:
        return declared
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    proper = sum(1 for character in text if character > "\x7f") - broken
    if broken <= len(data) * MAX_BROKEN and proper > broken:
        return _without_zeros(text, "utf-8", broken)
    try:
        return _without_zeros(data.decode("cp1252"), "cp1252", 0)
    except UnicodeDecodeError:
        return _without_zeros(data.decode("latin-1"), "latin-1", 0)


def _marked(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, "replace")
    broken = text.count("\ufffd")
    if broken > max(2, len(text) * MAX_BROKEN):
        raise Unreadable(f"binary: it begins like {encoding} text and is none")
    return _without_zeros(text, encoding, broken)


def _refuse_binary(data: bytes) -> None:
    for signature, what in SIGNATURES:
        if data.startswith(signature) and not (signature == b"BZh" and data[4:7] != b"1AY"):
            raise Unreadable(f"binary: {what}")
    if b"\0" in data[:LOOKED_AT]:
        raise Unreadable("binary: it has zero bytes")
    control = len(data) - len(data.translate(None, _CONTROL))
    if control > len(data) * MAX_CONTROL:
        raise Unreadable(f"binary: {control / len(data):.0%} of it are control characters")


def _declared(data: bytes) -> Decoded | None:
    """The text in the encoding that the file itself names, when that is one and fits."""
    named = _DECLARED.search(data[:1024])
    if named is None:
        return None
    try:
        encoding = codecs.lookup(named[1].decode()).name
        return _without_zeros(data.decode(encoding), encoding, 0) if encoding in DECLARABLE else None
    except (LookupError, UnicodeDecodeError):
        return None


def _without_zeros(text: str, encoding: str, replaced: int) -> Decoded:
    """A zero character ends a text for many programs, so none is kept."""
    zeros = text.count("\0")
    return Decoded(text.replace("\0", "\ufffd") if zeros else text, encoding, replaced + zeros)
