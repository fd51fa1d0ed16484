"""Records, and the JSON values of their metadata."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from operator import attrgetter
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from sennit.errors import InvalidInput

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

MAX_ID_BYTES: Final = 1024
"""Every index holds a copy of the id; a longer one is content in the wrong field."""

MAX_TEXT_BYTES: Final = 16 * 1024 * 1024
"""A record is one passage; a longer text must be split into chunks."""

CODE_COLLECTION: Final = "code"
"""The entities of code: functions, classes and their like."""

OUTLINE_COLLECTION: Final = "code_files"
"""The outlines of code, one for each file."""

CHUNK_COLLECTION: Final = "artifact_chunks"
"""The collection of the chunks of whole documents."""

FRAGMENT_FIELD: Final = "fragment"
"""The metadata field that names a part of a file without lines, as the fragment of a URL would: `page=2`, `cell=3-5`."""

TENANT_SEPARATOR: Final = "\x1f"
"""Separates tenant and id in a full id."""

SHORT_CHARACTERS: Final = 60
"""Characters of a text that a repr shows."""

MAX_METADATA_BYTES: Final = 1024 * 1024
MAX_METADATA_DEPTH: Final = 32

_encode_canonical: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Record:
    """One passage of text with its metadata. Its id is unique within its tenant."""

    id: str
    text: str
    collection: str = "default"
    title: str = ""
    kind: str = ""
    path: str | None = None
    url: str | None = None
    lines: tuple[int, int] | None = None
    parent: str | None = None
    position: int | None = None
    timestamp: datetime | None = None
    sensitivity: str = "normal"
    scope: str = "public"
    tenant: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    vector: Sequence[float] | None = field(default=None, compare=False)
    """A vector of your own for the text, in place of one that sennit computes. A write stores it; a record that is read
    has None here."""

    def __post_init__(self) -> None:
        _check_text("id", self.id, MAX_ID_BYTES, empty=False)
        _check_text("text", self.text, MAX_TEXT_BYTES)
        for name in ("collection", "sensitivity", "scope"):
            _check_text(name, getattr(self, name), MAX_ID_BYTES, empty=False)
        for name in ("title", "kind"):
            _check_text(name, getattr(self, name), MAX_TEXT_BYTES)
        _check_text("tenant", self.tenant, MAX_ID_BYTES)
        if TENANT_SEPARATOR in self.tenant:
            raise InvalidInput("Record.tenant must not contain the control character U+001F")
        if isinstance(self.path, PurePath):
            object.__setattr__(self, "path", self.path.as_posix())
        for name in ("path", "url", "parent"):
            if getattr(self, name) is not None:
                _check_text(name, getattr(self, name), MAX_TEXT_BYTES, empty=False)
        if self.lines is not None:
            object.__setattr__(self, "lines", _check_lines(self.lines))
        if self.position is not None and (type(self.position) is not int or not 0 <= self.position < 1 << 63):
            raise InvalidInput(f"Record.position must be an int of at least 0, not {self.position!r}")
        if self.timestamp is not None:
            object.__setattr__(self, "timestamp", as_utc(self.timestamp))
        if self.metadata:
            _check_metadata(self.metadata)
            self._set_parent_from_metadata()
            self.set_access_from_metadata()

    def set_access_from_metadata(self) -> None:
        """Set sensitivity and scope from the metadata, so that a level that only the metadata states protects.

        An argument that differs from its default has precedence: what a file says of itself cannot loosen it.
        """
        for key, name in (("sensitivity", "sensitivity"), ("visibility_scope", "scope")):
            stated = self.metadata.get(key)
            if stated is None or getattr(self, name) != _DEFAULTS[name]:
                continue
            if isinstance(stated, str) and stated:
                _check_text(f"metadata.{key}", stated, MAX_ID_BYTES)
                object.__setattr__(self, name, stated)
            elif name == "scope":
                raise InvalidInput(f"metadata.{key} must be the name of one scope, not {show_value(stated)}")

    def _set_parent_from_metadata(self) -> None:
        """Set parent and position from `artifact_id` and `chunk_index`, if the metadata has them."""
        parent, index = self.metadata.get("artifact_id"), self.metadata.get("chunk_index")
        if self.parent is None and isinstance(parent, str) and parent:
            object.__setattr__(self, "parent", parent)
            if self.position is None and type(index) is int and 0 <= index < 1 << 63:
                object.__setattr__(self, "position", index)

    def __repr__(self) -> str:
        parts = (
            f"{name}={shorten(value) if name in ('text', 'title') else repr(value)}"
            for name, value in zip(_DEFAULTS, _read_values(self), strict=True)
            if value != _DEFAULTS[name]
        )
        return f"Record({', '.join(parts)})"

    @property
    def full_id(self) -> str:
        """The id that is unique among all tenants."""
        return full_id(self.tenant, self.id)

    @property
    def content_hash(self) -> str:
        """A hash of all fields: adding a record with an equal hash changes nothing."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=16).hexdigest()

    @property
    def embedding_text(self) -> str:
        """The text to embed: title and text."""
        return embedding_text(self.title, self.text)

    def to_dict(self) -> dict[str, Json]:
        """Return the record as JSON values without defaults; `from_dict` restores it unchanged."""
        values = zip(_DEFAULTS.items(), _read_values(self), strict=True)
        out: dict[str, Json] = {name: value for (name, default), value in values if value != default}
        if self.timestamp is not None:
            out["timestamp"] = self.timestamp.isoformat()
        if self.lines is not None:
            out["lines"] = list(self.lines)
        if "metadata" in out:
            out["metadata"] = dict(self.metadata)
        return out

    def to_json(self) -> str:
        """Return one canonical line of JSON."""
        return _encode_canonical(self.to_dict())

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Record:
        """Return a record from JSON values; raise InvalidInput for an unknown field."""
        if not isinstance(values, Mapping):
            raise InvalidInput(f"A record must be an object with fields, not {type(values).__name__}")
        unknown = [name for name in values if name not in _DEFAULTS and name != "vector"]
        if unknown:
            raise InvalidInput(
                f"A record has no field {unknown[0]!r}. Fields: {', '.join(_DEFAULTS)}. "
                "Put anything else into metadata."
            )
        missing = [name for name in ("id", "text") if values.get(name) is None]
        if missing:
            raise InvalidInput(f"A record needs the field {missing[0]!r}")
        return cls(**{name: value for name, value in values.items() if value is not None})

    @classmethod
    def from_content(cls, values: Mapping[str, Any]) -> Record:
        """Return a record from JSON values. Without an id it gets one that follows from its content.

        So the same content is stored once, however often it is added.
        """
        if not isinstance(values, Mapping) or values.get("id") is not None:
            return cls.from_dict(values)
        draft = cls.from_dict({**values, "id": "-"})
        return replace(draft, id=f"record-{draft.content_hash}")


_DEFAULTS: Final[dict[str, object]] = {
    f.name: {} if f.name == "metadata" else f.default for f in fields(Record) if f.compare
}
_read_values: Final = attrgetter(*_DEFAULTS)


def full_id(tenant: str, record_id: str) -> str:
    """Return an id that is unique among all tenants; without a tenant it is nearly always the id itself."""
    return f"{tenant}{TENANT_SEPARATOR}{record_id}" if tenant or TENANT_SEPARATOR in record_id else record_id


def split_id(full: str) -> tuple[str, str]:
    """Return the tenant and the id of a full id."""
    tenant, separator, record_id = full.partition(TENANT_SEPARATOR)
    return (tenant, record_id) if separator else ("", full)


def as_utc(value: object) -> datetime:
    """Return a time in UTC from a datetime, a date, an ISO 8601 string or seconds since 1970. Naive times are UTC."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(f"Not a valid time: {show_value(value)} ({error})") from error
    raise InvalidInput(
        f"Not a valid time: {show_value(value)}. Give a datetime, an ISO 8601 string such as "
        "'2026-03-01T09:30:00Z', or seconds since 1970."
    )


def shorten(text: str) -> str:
    """Return a text in quotes for a repr: its beginning, and how long it is."""
    if len(text) <= SHORT_CHARACTERS:
        return repr(text)
    return f"{text[:SHORT_CHARACTERS]!r}… ({len(text):,} characters)"


def show_value(value: object) -> str:
    """Return a value for an error message: short, and without the contents of an unknown object."""
    plain = isinstance(value, (str, float, bool)) or (isinstance(value, int) and abs(value) < 1 << 64)
    return repr(value)[:80] if plain or isinstance(value, date) else f"a value of type {type(value).__name__}"


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded; a lone surrogate cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_metadata_key(key: object) -> str:
    """Return the key if it can name a metadata field; raise InvalidInput if not."""
    if not isinstance(key, str):
        raise InvalidInput(f"A metadata key must be a string, not {key!r}")
    _check_text("metadata key", key, MAX_ID_BYTES, empty=False)
    return key


def embedding_text(title: str, text: str) -> str:
    """Return the text to embed for a record with this title and text."""
    return f"{title}\n{text}" if title else text


def _check_text(name: str, value: object, limit: int, *, empty: bool = True) -> None:
    if type(value) is str and value.isascii() and 0 < len(value) * 4 <= limit:
        return
    if not isinstance(value, str):
        raise InvalidInput(f"Record.{name} must be a string, not {type(value).__name__}")
    if not value and not empty:
        raise InvalidInput(f"Record.{name} must not be empty")
    if len(value) * 4 > limit or not value.isascii():
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"Record.{name} has a lone surrogate at character {error.start}; it is not valid Unicode. "
                "Decode the source with errors='replace'."
            ) from error
        if size > limit:
            raise InvalidInput(
                f"Record.{name} is {size:,} bytes; the most is {limit:,}. Split it into chunks."
            )


def _check_lines(lines: object) -> tuple[int, int]:
    if (
        not isinstance(lines, (tuple, list))
        or len(lines) != 2
        or any(type(n) is not int for n in lines)
        or not 1 <= lines[0] <= lines[1] < 1 << 63
    ):
        raise InvalidInput(f"Record.lines must be (first, last) with 1 <= first <= last, not {lines!r}")
    return lines[0], lines[1]


def _check_metadata(metadata: object) -> None:
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"Record.metadata must be a mapping, not {type(metadata).__name__}")
    for key, value in metadata.items():
        check_metadata_key(key)
        if not isinstance(value, (str, int, float)) or isinstance(value, float):
            _check_json(value, key, 1)
    try:
        size = len(_encode(dict(metadata)).encode())
    except UnicodeEncodeError as error:
        raise InvalidInput("Record.metadata has a lone surrogate; it is not valid Unicode") from error
    except ValueError as error:
        raise InvalidInput(f"Record.metadata cannot be written as JSON: {error}") from error
    if size > MAX_METADATA_BYTES:
        raise InvalidInput(f"Record.metadata is {size:,} bytes; the most is {MAX_METADATA_BYTES:,}")


def _check_json(value: object, where: str, depth: int) -> None:
    if depth > MAX_METADATA_DEPTH:
        raise InvalidInput(f"Record.metadata[{where!r}] is nested deeper than {MAX_METADATA_DEPTH} levels")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"Record.metadata[{where!r}] is {value}; JSON has no such number")
    if value is None or isinstance(value, (str, bool, int, float)):
        return
    if isinstance(value, (list, tuple)):
        for item in value:
            # Most items are strings, which need no further check.
            if type(item) is not str or depth == MAX_METADATA_DEPTH:
                _check_json(item, where, depth + 1)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            check_metadata_key(key)
            _check_json(item, f"{where}.{key}", depth + 1)
    else:
        raise InvalidInput(
            f"Record.metadata[{where!r}] must be a JSON value, not {type(value).__name__}{_json_advice(value)}"
        )


def _json_advice(value: object) -> str:
    """Return how a value becomes one of JSON, for a message; empty if that is not known."""
    if isinstance(value, (set, frozenset)):
        return "; make it a list: sorted(value)"
    # What numpy's values and arrays have, and dates and times.
    method = next((name for name in ("tolist", "isoformat") if hasattr(value, name)), None)
    return "" if method is None else f"; give value.{method}()"
