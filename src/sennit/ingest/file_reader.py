"""Reading the bytes of a file safely, and decoding them to text with a report of what was guessed."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from dataclasses import dataclass
from typing import Final, NamedTuple

BINARY_CHECK_BYTES: Final = 8192
"""A zero byte among the first bytes makes a file binary, as in git and grep."""

MAX_CONTROL_SHARE: Final = 0.02
"""Above this share of control characters, a file is binary."""

MAX_INVALID_SHARE: Final = 0.01
"""Up to this share of invalid bytes, a file is damaged UTF-8 and not text in another encoding."""

SIGNATURES: Final = (
    (b"PK\x03\x04", "a zip archive"), (b"PK\x05\x06", "a zip archive"), (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"), (b"\xfd7zXZ\x00", "an xz archive"), (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"), (b"\x28\xb5\x2f\xfd", "a zstd archive"), (b"\x89PNG\r\n", "an image"),
    (b"GIF8", "an image"), (b"\xff\xd8\xff", "an image"), (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x7fELF", "a program"), (b"%PDF-", "a PDF"), (b"%!PS-Adobe", "PostScript"), (b"wOF2", "a font"),
)  # fmt: skip
"""File types by their first bytes, whatever the file name says."""

_DECLARATION: Final = re.compile(
    rb"""(?:coding|charset|encoding)[ \t]{0,4}[=:][ \t]{0,4}["']?([A-Za-z0-9._-]{2,32})"""
)

DECLARED_ENCODINGS: Final = frozenset({
    "big5", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp932",
    "cp949", "cp950", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso8859-1", "iso8859-2", "iso8859-3",
    "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "iso8859-10", "iso8859-13",
    "iso8859-14", "iso8859-15", "iso8859-16", "iso2022_jp", "koi8-r", "koi8-u", "mac-roman", "shift_jis",
})  # fmt: skip
"""Encodings that a file may declare. Python has more codecs, some of which do not decode text."""

_CONTROL_BYTES: Final = bytes(set(range(0x20)) - set(b"\t\n\r\f\b\x1b") | {0x7F})
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class UnreadableFile(Exception):
    """Why a file gives no text. `permanent` means that this stays so until the file changes."""

    def __init__(self, reason: str, *, permanent: bool = True) -> None:
        self.permanent = permanent
        super().__init__(reason)


class RawFile(NamedTuple):
    """The bytes of a file, and its status from just before they were read."""

    data: bytes
    status: os.stat_result


@dataclass(frozen=True, slots=True)
class DecodedText:
    """Text, its encoding, and how much of it could not be decoded."""

    text: str
    encoding: str
    replaced: int = 0
    """How many characters could not be decoded; each is U+FFFD in the text."""


def read_regular_file(path: str, max_bytes: int) -> RawFile:
    """Read a regular file. Never blocks on a pipe, follows a link or reads more than the limit."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    try:
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableFile("not a regular file", permanent=False)
            if status.st_size > max_bytes:
                raise UnreadableFile(f"{status.st_size:,} bytes; the limit is {max_bytes:,}", permanent=False)
            data = bytearray()
            # Read up to one byte past the limit, to notice a file that grows while it is read.
            while len(data) <= max_bytes and (part := file.read(min(max_bytes + 1 - len(data), 1 << 22))):
                data += part
            if len(data) > max_bytes:
                raise UnreadableFile(f"it grew past {max_bytes:,} bytes", permanent=False)
            return RawFile(bytes(data), status)
    except OSError as error:
        raise UnreadableFile(_describe(error), permanent=False) from error


def _describe(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "a symbolic link, not a file"
    if error.errno == errno.ENOENT:
        return "it was deleted in the meantime"
    return f"cannot be read: {error.strerror}"


def decode(data: bytes) -> DecodedText:
    """Decode bytes to text; raises UnreadableFile if they are not text."""
    for bom, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(bom):
            return _decode_with_bom(data[len(bom) :], encoding)
    _reject_binary(data)
    try:
        return _replace_zeros(data.decode(), "utf-8", 0)
    except UnicodeDecodeError:
        pass
    declared = _decode_declared(data)
    if declared is not None:
        return declared
    text = data.decode("utf-8", "replace")
    invalid = text.count("\ufffd")
    valid = sum(1 for character in text if character > "\x7f") - invalid
    if invalid <= len(data) * MAX_INVALID_SHARE and valid > invalid:
        return _replace_zeros(text, "utf-8", invalid)
    try:
        return _replace_zeros(data.decode("cp1252"), "cp1252", 0)
    except UnicodeDecodeError:
        return _replace_zeros(data.decode("latin-1"), "latin-1", 0)


def _decode_with_bom(data: bytes, encoding: str) -> DecodedText:
    text = data.decode(encoding, "replace")
    invalid = text.count("\ufffd")
    if invalid > max(2, len(text) * MAX_INVALID_SHARE):
        raise UnreadableFile(f"binary: it has the byte-order mark of {encoding} but is not text")
    return _replace_zeros(text, encoding, invalid)


def _reject_binary(data: bytes) -> None:
    for signature, file_type in SIGNATURES:
        if data.startswith(signature) and not (signature == b"BZh" and data[4:7] != b"1AY"):
            raise UnreadableFile(f"binary: {file_type}")
    if b"\0" in data[:BINARY_CHECK_BYTES]:
        raise UnreadableFile("binary: it contains zero bytes")
    control = len(data) - len(data.translate(None, _CONTROL_BYTES))
    if control > len(data) * MAX_CONTROL_SHARE:
        raise UnreadableFile(f"binary: {control / len(data):.0%} control characters")


def _decode_declared(data: bytes) -> DecodedText | None:
    """Decode with the encoding that the file declares, if it is known and decodes the file."""
    declaration = _DECLARATION.search(data[:1024])
    if declaration is None:
        return None
    try:
        encoding = codecs.lookup(declaration[1].decode()).name
        return _replace_zeros(data.decode(encoding), encoding, 0) if encoding in DECLARED_ENCODINGS else None
    except (LookupError, UnicodeDecodeError):
        return None


def _replace_zeros(text: str, encoding: str, replaced: int) -> DecodedText:
    """Replace zero characters, because many programs treat one as the end of the text."""
    zeros = text.count("\0")
    return DecodedText(text.replace("\0", "\ufffd") if zeros else text, encoding, replaced + zeros)
