"""The settings of servers: what each role of a database is bound to, and how each server is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from sennit.settings.setting import FieldSpec, Section

RecordsBinding: TypeAlias = Literal["", "sqlite", "postgres"]
KeywordBinding: TypeAlias = Literal["local", "postgres", "opensearch", "qdrant"]
VectorBinding: TypeAlias = Literal["local", "postgres", "qdrant", "chroma", "opensearch"]
GraphBinding: TypeAlias = Literal["local", "graphiti"]

LOCAL: Final = "local"
"""The binding of a role to this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolesSettings(Section):
    """What holds the records and what searches them: this machine, or a server. See docs/architecture.md."""

    name: ClassVar[str] = "roles"

    records: Annotated[
        RecordsBinding,
        FieldSpec(
            "Where the records must be: sqlite for a folder, postgres for postgresql://…; empty: as the database is named."
        ),
    ] = ""
    keyword: Annotated[
        KeywordBinding,
        FieldSpec("What searches words.", sensitive=("postgres", "opensearch", "qdrant")),
    ] = "local"
    vector: Annotated[
        VectorBinding,
        FieldSpec("What searches vectors.", sensitive=("postgres", "qdrant", "chroma", "opensearch")),
    ] = "local"
    graph: Annotated[GraphBinding, FieldSpec("What searches facts.", sensitive=("graphiti",))] = "local"


SERVER_SECTIONS: Final = (RolesSettings,)
