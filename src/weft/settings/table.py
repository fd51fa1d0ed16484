"""Every setting, declared once: its name, type, default, range and meaning are one field below."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType, NoneType
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, get_args, get_origin, get_type_hints

from weft.errors import SettingsError

Provider: TypeAlias = Literal["static", "onnx", "openai", "ollama", "none"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a setting means and which values it takes; the type is the field's own annotation."""

    doc: str
    least: float = -math.inf
    most: float = math.inf
    pattern: str = ""
    expects: str = ""
    hide: str = ""
    """A pattern: a refused value that has it may hold a credential, and the error does not repeat it."""
    sensitive: bool | tuple[str, ...] = False
    """Refused from a file that is not trusted: any value, or those listed."""


class _Section:
    """Checks its fields however it is made, so that a section that exists is a valid one."""

    __slots__ = ()
    name: ClassVar[str]

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            setting = SETTINGS[f"{self.name}.{item.name}"]
            object.__setattr__(self, item.name, setting.checked(getattr(self, item.name), "argument"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings(_Section):
    """Which model turns text into vectors, and how it is asked."""

    name: ClassVar[str] = "embedding"

    provider: Annotated[
        Provider,
        Rule(
            "Who computes vectors: static ships with weft and needs no network; none leaves keyword search.",
            sensitive=("onnx", "openai", "ollama"),
        ),
    ] = "static"
    model: Annotated[
        str,
        Rule(
            "The provider's name of the model, or the folder of an ONNX model; empty: its own.",
            sensitive=True,
        ),
    ] = ""
    dimensions: Annotated[
        int | None,
        Rule(
            "Keep this many leading dimensions and normalise again (Matryoshka models).", least=1, most=65536
        ),
    ] = None
    base_url: Annotated[
        str | None,
        Rule(
            "Address of an OpenAI-compatible or Ollama server.",
            pattern=r"(?i:https?)://[^\x00-\x20\x7f/@?#\\]+(/[^\x00-\x20\x7f@?#\\]*)?",
            expects="an http:// or https:// address without user, password, query or fragment",
            hide="[@?#]",
            sensitive=True,
        ),
    ] = None
    api_key_env: Annotated[
        str | None,
        Rule(
            "The name of the environment variable that holds the API key.",
            pattern=r"[A-Za-z_][A-Za-z0-9_]*",
            expects="the name of an environment variable such as OPENAI_API_KEY, and not the key itself",
            hide=".",
            sensitive=True,
        ),
    ] = None
    timeout: Annotated[float, Rule("Seconds to wait for one remote answer.", least=0.001, most=3600)] = 30.0
    retries: Annotated[int, Rule("Further attempts when a remote model fails.", least=0, most=20)] = 3
    batch: Annotated[
        int | None,
        Rule("Texts given to the model at once; by default as many as it asks for.", least=1, most=4096),
    ] = None
    query_prefix: Annotated[str, Rule("Put before a query, for models trained with one.")] = ""
    document_prefix: Annotated[str, Rule("Put before a record's text, for models trained with one.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordSettings(_Section):
    """BM25, as docs/ranking-contract.md states it."""

    name: ClassVar[str] = "keyword"

    k1: Annotated[float, Rule("How much a repeated term adds; 0: nothing.", least=0, most=100)] = 1.2
    b: Annotated[
        float, Rule("How much a long text is discounted, from not at all to fully.", least=0, most=1)
    ] = 0.4
    title_weight: Annotated[float, Rule("What a term in the title counts.", least=0, most=1000)] = 2.0
    text_weight: Annotated[float, Rule("What a term in the text counts.", least=0, most=1000)] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings(_Section):
    """What a search does when it is not told otherwise."""

    name: ClassVar[str] = "search"

    recipe: Annotated[
        str, Rule("The recipe used when none is named.", pattern=".+", expects="the name of a recipe")
    ] = "default"
    limit: Annotated[int, Rule("Results returned when no limit is given.", least=1, most=1000)] = 10
    deadline: Annotated[
        float,
        Rule(
            "Seconds a search waits for its sources; a later one is reported as missing.",
            least=0.001,
            most=600,
        ),
    ] = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings(_Section):
    """How the database keeps its indexes."""

    name: ClassVar[str] = "store"

    fold_at: Annotated[
        int,
        Rule(
            "New records that may wait, scored one by one, until the indexes take them in.",
            least=1,
            most=10**6,
        ),
    ] = 1024


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: a key, its type and its rule."""

    key: str
    default: object
    kind: type
    choices: tuple[str, ...]
    optional: bool
    rule: Rule

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "WEFT_" + self.key.replace(".", "_").upper()

    @property
    def allowed(self) -> str:
        """The values it takes, in words."""
        if self.choices:
            text = "one of " + ", ".join(self.choices)
        elif self.kind is str:
            text = self.rule.expects or "a string of valid Unicode"
        else:
            noun = "a whole number" if self.kind is int else "a number"
            text = f"{noun} from {self.rule.least:,} to {self.rule.most:,}"
        return text + (", or left out" if self.optional else "")

    def read(self, text: str, origin: str) -> object:
        """The checked value of a text from the environment."""
        try:
            value = self.kind(text) if text else text
        except ValueError:
            raise self._refused(text, origin) from None
        return self.checked(value, origin)

    def checked(self, value: object, origin: str) -> object:
        """The value in its own type, or an error that says where it came from and what is allowed."""
        if self.optional and value in (None, ""):
            return None
        if self.kind is float and type(value) is int and abs(value) <= self.rule.most:
            value = float(value)
        if type(value) is not self.kind or not self._fits(value):
            raise self._refused(value, origin)
        return value

    def is_sensitive(self, value: object) -> bool:
        """Whether only a trusted file may set this value."""
        listed = self.rule.sensitive
        return value in listed if isinstance(listed, tuple) else listed

    def _fits(self, value: object) -> bool:
        if isinstance(value, str):
            if self.choices:
                return value in self.choices
            unicode = not any("\ud800" <= character <= "\udfff" for character in value)
            return unicode and (not self.rule.pattern or re.fullmatch(self.rule.pattern, value) is not None)
        return isinstance(value, (int, float)) and self.rule.least <= value <= self.rule.most

    def _refused(self, value: object, origin: str) -> SettingsError:
        hide = self.rule.hide and re.search(self.rule.hide, str(value))
        what = "not usable (and not shown: it may hold a secret)" if hide else shown(value)
        return SettingsError(f"{origin}: {self.key} is {what}; it must be {self.allowed}.", key=self.key)


SECTIONS: Final = (EmbeddingSettings, KeywordSettings, SearchSettings, StoreSettings)
SECTION_NAMES: Final = (*(section.name for section in SECTIONS), "recipes")


def _table() -> Iterator[Setting]:
    for section in SECTIONS:
        hints = get_type_hints(section, include_extras=True)
        for item in fields(section):
            hint, rule = get_args(hints[item.name])
            literal = get_origin(hint) is Literal
            kinds = get_args(hint) or (hint,)
            yield Setting(
                key=f"{section.name}.{item.name}",
                default=item.default,
                kind=str if literal else kinds[0],
                choices=kinds if literal else (),
                optional=NoneType in kinds,
                rule=rule,
            )


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType({setting.key: setting for setting in _table()})
"""Every setting by its key, `section.name`."""


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting, checked. `recipes` holds the `[recipes.NAME]` tables as they were written."""

    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    keyword: KeywordSettings = field(default_factory=KeywordSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    recipes: Mapping[str, Mapping[str, object]] = field(default_factory=_nothing, hash=False)
    origins: Mapping[str, str] = field(default_factory=_nothing, compare=False, repr=False)
    """Where each value that is not the default came from: a file's path, a variable, or `argument`."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One line of `weft config`."""

    key: str
    value: object
    origin: str
    doc: str


def describe(settings: Settings) -> list[SettingRow]:
    """Every setting with its value, where that came from (`default` if nowhere) and what it means."""
    rows = []
    for key, setting in SETTINGS.items():
        section, name = key.split(".")
        value = getattr(getattr(settings, section), name)
        rows.append(SettingRow(key, value, settings.origins.get(key, "default"), setting.rule.doc))
    for name, table in settings.recipes.items():
        key = f"recipes.{name}"
        rows.append(SettingRow(key, table, settings.origins.get(key, "argument"), "A recipe of your own."))
    return rows


def shown(value: object) -> str:
    """A value as an error may show it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
