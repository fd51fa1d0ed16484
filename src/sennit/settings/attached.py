"""`[attached.NAME]`: how a table, collection or index that somebody else owns is read as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

from sennit.errors import SettingsError
from sennit.settings.setting import short_repr

SERVERS: Final = ("postgres", "qdrant", "chroma", "opensearch")
COLUMNS: Final[tuple[str, ...]] = (
    "id",
    "text",
    "title",
    "url",
    "path",
    "parent",
    "position",
    "kind",
    "time",
    "sensitivity",
    "scope",
    "tenant",
)
"""The settings that name a column or field for a field of a record. `time` is `timestamp` of a record."""
WORD_SERVERS: Final = ("postgres", "opensearch")
"""The servers that rank rows by words."""
CONSTANTS: Final = ("kind", "sensitivity", "scope", "tenant")
"""What a collection without a column for it may have the same everywhere."""


OWN_ID: Final = "_id"
OWN_TEXT: Final = "_document"
OWN_VECTOR: Final = "_vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedMapping:
    """What one `[attached.NAME]` says. A column may be a path inside a document, as the server writes it.

    What a server has beside the fields of a document has a name with an underscore: `_id` is the id of a point or a
    document (Qdrant, Chroma, OpenSearch), `_document` the text of one (Chroma), and `_vector` the vector without a name
    (Qdrant, Chroma).
    """

    name: str
    server: str
    """postgres, qdrant, chroma or opensearch."""
    source: str
    """The table (with its schema, if it needs one), collection or index."""
    collection: str
    """The collection that its hits belong to, by which recipes choose what they search."""
    id: str
    text: str = ""
    title: str = ""
    url: str = ""
    path: str = ""
    parent: str = ""
    position: str = ""
    kind: str = ""
    time: str = ""
    sensitivity: str = ""
    scope: str = ""
    tenant: str = ""
    keyword: str = ""
    """What words are searched in: a tsvector column, an analysed field; empty for a collection without such a search."""
    vector: str = ""
    """The column, field or named vector with the vectors; empty for a collection without them."""
    records_of: str = ""
    """Another attached collection that has the texts: hits of this one have only its ids."""
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The column of each key of the metadata."""
    values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What every hit has: kind, sensitivity, scope or tenant."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that a hit has, each once: what a binding returns of a row."""
        named = (getattr(self, name) for name in COLUMNS)
        return tuple(dict.fromkeys(column for column in (*named, *self.metadata.values()) if column))

    def column(self, name: str) -> str:
        """The column of a field, by the name that a condition of a filter has; empty for a field without one."""
        if name == "timestamp":
            return self.time
        if name in COLUMNS and name not in ("id", "text", "time"):
            return str(getattr(self, name))
        return self.metadata.get(name, "")

    @property
    def legs(self) -> frozenset[str]:
        """How it can be searched: keyword, vector."""
        return frozenset(leg for leg in ("keyword", "vector") if getattr(self, leg))


def read_mapping(name: str, table: Mapping[str, object], origin: str = "argument") -> AttachedMapping:
    """Read and check one table; an error says where it came from and what is wrong."""
    key = f"attached.{name}"

    def fail(what: str) -> SettingsError:
        return SettingsError(f"{origin}: {key}: {what}.", key=key)

    known = [item.name for item in fields(AttachedMapping) if item.name != "name"]
    values: dict[str, Any] = {"collection": name, "source": name}
    for setting, value in table.items():
        if setting not in known:
            raise fail(f"there is no setting {setting!r}; known settings: {', '.join(known)}")
        if setting in ("metadata", "values"):
            values[setting] = _read_names(value)
            if values[setting] is None:
                raise fail(f"{setting} must be a table of texts, or a list of columns")
        elif isinstance(value, str) and value and value.isprintable():
            values[setting] = value
        else:
            raise fail(f"{setting} must be a text, not {short_repr(value)}")
    if values.get("server") not in SERVERS:
        raise fail(f"server must be one of {', '.join(SERVERS)}")
    if "id" not in values:
        raise fail("id is missing: the column or field that identifies a row")
    if not (values.get("keyword") or values.get("vector")):
        raise fail("keyword or vector is missing: the column or field that is searched")
    if values.get("keyword") and values["server"] not in WORD_SERVERS:
        raise fail(
            f"keyword is {short_repr(values['keyword'])}, but {values['server']} does not rank by words; leave it out, and search "
            f"the words in an attached collection of {' or '.join(WORD_SERVERS)}"
        )
    if not (values.get("text") or values.get("records_of")):
        raise fail(
            "text is missing: the column or field with the text, or records_of with the collection that has it"
        )
    unknown = set(values.get("values", ())) - set(CONSTANTS)
    if unknown:
        raise fail(f"values may have {', '.join(CONSTANTS)}, not {short_repr(min(unknown))}")
    return AttachedMapping(name=name, **values)


def read_mappings(
    tables: Mapping[str, Mapping[str, object]], origins: Mapping[str, str]
) -> dict[str, AttachedMapping]:
    """Read all tables, by name."""
    found = {
        name: read_mapping(name, table, origins.get(f"attached.{name}", "argument"))
        for name, table in tables.items()
    }
    for one in found.values():
        if one.records_of and (one.records_of not in found or found[one.records_of].records_of):
            raise SettingsError(
                f"attached.{one.name}: records_of is {short_repr(one.records_of)}, which is no attached collection with texts.",
                key=f"attached.{one.name}",
            )
    return found


def _read_names(value: object) -> Mapping[str, str] | None:
    if isinstance(value, tuple | list):
        value = {name: name for name in value if isinstance(name, str)} if all(map(_is_name, value)) else None
    if not isinstance(value, Mapping) or not all(map(_is_name, (*value, *value.values()))):
        return None
    return MappingProxyType(dict(value))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and value.isprintable()
