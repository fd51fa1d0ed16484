"""Keys of the state: tuples of texts and numbers as bytes that sort in the same order."""

from __future__ import annotations

from typing import Final

EXPERIMENT: Final = "experiment"
"""The first part of the keys of experiments."""

_TEXT: Final = b"\x01"
_NUMBER: Final = b"\x02"
_ABOVE: Final = b"\xff"
"""Greater than the first byte of any part."""


def encode_key(*parts: str | int) -> bytes:
    """The key of a tuple. Keys sort as their tuples do, and the key of a shorter tuple is a prefix of the longer's."""
    return b"".join(map(_encode_part, parts))


def key_range(*parts: str | int) -> tuple[bytes, bytes]:
    """The range of the keys that begin with these parts and have more."""
    prefix = encode_key(*parts)
    return prefix + _TEXT, prefix + _ABOVE


def decode_key(key: bytes) -> tuple[str | int, ...]:
    """The parts of a key."""
    parts: list[str | int] = []
    at = 0
    while at < len(key):
        start = at + 1
        if key[at:start] == _NUMBER:
            at = start + 8
            parts.append(int.from_bytes(key[start:at], "big"))
            continue
        end = key.index(b"\0", start)
        while key[end + 1 : end + 2] == _ABOVE:
            end = key.index(b"\0", end + 1)
        at = end + 1
        parts.append(key[start:end].replace(b"\0\xff", b"\0").decode("utf-8", "surrogatepass"))
    return tuple(parts)


def last_number(key: bytes) -> int:
    """The last part of a key, which is a number."""
    return int.from_bytes(key[-8:], "big")


def last_text(key: bytes, *before: str | int) -> str:
    """The last part of a key, which is a text after these parts."""
    return key[len(encode_key(*before)) + 1 : -1].replace(b"\0\xff", b"\0").decode("utf-8", "surrogatepass")


def _encode_part(part: str | int) -> bytes:
    if isinstance(part, int):
        return _NUMBER + part.to_bytes(8, "big")
    # A zero byte ends the text, so one inside it is followed by a byte that makes it sort after every end.
    return _TEXT + part.encode("utf-8", "surrogatepass").replace(b"\0", b"\0\xff") + b"\0"
