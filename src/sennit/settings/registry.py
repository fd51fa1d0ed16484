"""The registry of all settings, and the value that holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType, NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from sennit.settings import sections
from sennit.settings.sections import (
    ArtifactsSettings,
    DocsSettings,
    EmbeddingSettings,
    FeedbackSettings,
    FilesSettings,
    HydrationSettings,
    IngestSettings,
    KeywordSettings,
    LanguageSettings,
    MemorySettings,
    PrivacySettings,
    RerankSettings,
    SearchSettings,
    StoreSettings,
)
from sennit.settings.servers import (
    SERVER_SECTIONS,
    ChromaSettings,
    GraphitiSettings,
    OpenSearchSettings,
    PostgresSettings,
    QdrantSettings,
    RolesSettings,
)
from sennit.settings.setting import TABLE, Setting, hide_credentials, hide_pasted_key

SECTIONS: Final = (*sections.SECTIONS, *SERVER_SECTIONS)
NAMED_TABLES: Final = {"recipes": "A recipe of your own.", "attached": "An attached collection."}
"""The sections that hold tables by name, and what each table is."""
SECTION_NAMES: Final = (*(section.name for section in SECTIONS), *NAMED_TABLES)


def _make_settings() -> Iterator[Setting]:
    for section in SECTIONS:
        hints = get_type_hints(section, include_extras=True)
        for item in fields(section):
            hint, spec = get_args(hints[item.name])
            literal = get_origin(hint) is Literal
            kinds = (tuple,) if get_origin(hint) is tuple else get_args(hint) or (hint,)
            words = kinds if literal else [word for kind in kinds for word in get_args(kind)]
            yield Setting(
                key=f"{section.name}.{item.name}",
                default=item.default,
                kind=str if literal else kinds[0],
                choices=tuple(words),
                optional=NoneType in kinds,
                spec=spec,
            )


TABLE.update((setting.key, setting) for setting in _make_settings())
SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(TABLE)
"""Every setting by its key, `section.name`."""


def _empty_mapping() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting, checked. `recipes` and `attached` hold the tables `[recipes.NAME]` and `[attached.NAME]` as written."""

    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    llm: LanguageSettings = field(default_factory=LanguageSettings)
    rerank: RerankSettings = field(default_factory=RerankSettings)
    keyword: KeywordSettings = field(default_factory=KeywordSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    privacy: PrivacySettings = field(default_factory=PrivacySettings)
    feedback: FeedbackSettings = field(default_factory=FeedbackSettings)
    docs: DocsSettings = field(default_factory=DocsSettings)
    ingest: IngestSettings = field(default_factory=IngestSettings)
    files: FilesSettings = field(default_factory=FilesSettings)
    artifacts: ArtifactsSettings = field(default_factory=ArtifactsSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    hydration: HydrationSettings = field(default_factory=HydrationSettings)
    roles: RolesSettings = field(default_factory=RolesSettings)
    postgres: PostgresSettings = field(default_factory=PostgresSettings)
    qdrant: QdrantSettings = field(default_factory=QdrantSettings)
    chroma: ChromaSettings = field(default_factory=ChromaSettings)
    graphiti: GraphitiSettings = field(default_factory=GraphitiSettings)
    opensearch: OpenSearchSettings = field(default_factory=OpenSearchSettings)
    recipes: Mapping[str, Mapping[str, object]] = field(default_factory=_empty_mapping, hash=False)
    attached: Mapping[str, Mapping[str, object]] = field(default_factory=_empty_mapping, hash=False)
    origins: Mapping[str, str] = field(default_factory=_empty_mapping, compare=False, repr=False)
    """The origin of each value that is not the default: a file's path, a variable, or `argument`."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One line of `sennit config`."""

    key: str
    value: object
    """Without a password that an address may hold."""
    origin: str
    doc: str


def describe_settings(settings: Settings) -> list[SettingRow]:
    """Return every setting with its value, the origin of the value, and its meaning."""
    rows = []
    for key, setting in SETTINGS.items():
        section, name = key.split(".")
        value = getattr(getattr(settings, section), name)
        origin = settings.origins.get(key, "default")
        is_name = isinstance(value, str) and setting.spec.names_variable
        shown = hide_pasted_key(str(value)) if is_name else hide_credentials(value)
        rows.append(SettingRow(key, shown, origin, setting.spec.doc))
    for section, doc in NAMED_TABLES.items():
        for name, table in getattr(settings, section).items():
            key = f"{section}.{name}"
            origin = settings.origins.get(key, "argument")
            rows.append(SettingRow(key, hide_credentials(table), origin, doc))
    return rows
