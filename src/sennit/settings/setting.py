"""One setting: its type, its constraints, and how a value is parsed and checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Final

from sennit.credentials import is_shown
from sennit.errors import SettingsError


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """The meaning and the constraints of a setting; its type is the annotation of the field."""

    doc: str
    minimum: float = -math.inf
    maximum: float = math.inf
    pattern: str = ""
    expected: str = ""
    """What an error says is allowed, for a setting with a pattern."""
    redact_pattern: str = ""
    """A refused value that matches may hold a credential, so the error does not repeat it."""
    names_variable: bool = False
    """Whether it is the name of an environment variable; a key that was pasted in its place is not shown."""
    sensitive: bool | tuple[str, ...] = False
    """Values that an untrusted file may not set: any, or those listed."""
    items: tuple[str, ...] = ()
    """What a list may contain; empty for anything."""
    plain_variable: str = ""
    """A second environment variable, without the prefix; the prefixed one wins."""


class Section:
    """Checks its fields when it is created, so that every instance is valid."""

    __slots__ = ()
    name: ClassVar[str]

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            setting = TABLE[f"{self.name}.{item.name}"]
            object.__setattr__(self, item.name, setting.check(getattr(self, item.name), "argument"))


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its key, type and constraints."""

    key: str
    default: object
    kind: type
    choices: tuple[str, ...]
    """The words that it takes: the only values of a string, or further ones of a number."""
    optional: bool
    spec: FieldSpec

    @property
    def variable(self) -> str:
        """The name of the environment variable that sets it."""
        return "SENNIT_" + self.key.replace(".", "_").upper()

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it, in rising precedence."""
        plain = self.spec.plain_variable
        return (plain, self.variable) if plain else (self.variable,)

    @property
    def allowed_values(self) -> str:
        """A description of the allowed values."""
        if self.choices and self.kind is str:
            text = "one of " + ", ".join(self.choices)
        elif self.kind is bool:
            text = "true or false"
        elif self.kind is tuple:
            what = f"one or more of {', '.join(self.spec.items)}" if self.spec.items else "strings"
            if self.spec.pattern:
                what = f"one or more, each {self.spec.expected}"
            text = f"a list of {what}, in the environment separated by commas"
        elif self.kind is str:
            text = self.spec.expected or "a string of valid Unicode"
        else:
            noun = "a whole number" if self.kind is int else "a number"
            text = f"{noun} from {self.spec.minimum:,} to {self.spec.maximum:,}"
            text += "".join(f", or {word}" for word in self.choices)
        return text + (", or left out" if self.optional else "")

    def parse(self, text: str, origin: str) -> object:
        """Parse and check a value from the environment."""
        if text in self.choices:
            return text
        try:
            value = _PARSERS.get(self.kind, self.kind)(text) if text or self.kind is tuple else text
        except (KeyError, ValueError):
            raise self._error(text, origin) from None
        return self.check(value, origin)

    def check(self, value: object, origin: str) -> object:
        """Return the value in its own type; an error says where it came from and what is allowed."""
        if self.optional and value in (None, ""):
            return None
        if isinstance(value, str) and value in self.choices:
            return value
        if self.kind is float and type(value) is int and abs(value) <= self.spec.maximum:
            value = float(value)
        if self.kind is tuple and isinstance(value, list):
            value = tuple(value)
        if type(value) is not self.kind or not self._is_valid(value):
            raise self._error(value, origin)
        return value

    def is_sensitive(self, value: object) -> bool:
        """Whether only a trusted file may set this value."""
        listed = self.spec.sensitive
        return value in listed if isinstance(listed, tuple) else listed

    def _is_valid(self, value: object) -> bool:
        if isinstance(value, tuple):
            if self.spec.items:
                return bool(value) and set(value) <= set(self.spec.items)
            is_complete = bool(value) or not self.spec.pattern
            return is_complete and all(isinstance(item, str) and item and self._fits(item) for item in value)
        if isinstance(value, str):
            return not self.choices and self._fits(value)
        return isinstance(value, (int, float)) and self.spec.minimum <= value <= self.spec.maximum

    def _fits(self, text: str) -> bool:
        pattern = self.spec.pattern
        return _is_unicode(text) and (not pattern or re.fullmatch(pattern, text) is not None)

    def _error(self, value: object, origin: str) -> SettingsError:
        is_secret = self.spec.redact_pattern and re.search(self.spec.redact_pattern, str(value))
        what = "not usable (and not shown: it may hold a secret)" if is_secret else short_repr(value)
        return SettingsError(
            f"{origin}: {self.key} is {what}; it must be {self.allowed_values}.", key=self.key
        )


TABLE: Final[dict[str, Setting]] = {}
"""Every setting by its key, `section.name`; `registry.py` fills it."""


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


_PARSERS: Final[Mapping[type, Any]] = {
    bool: lambda text: {"true": True, "1": True, "false": False, "0": False}[text.lower()],
    tuple: _parse_list,
}
"""How a value is parsed from the environment, for types whose constructor does not do it."""


def hide_credentials(value: object) -> object:
    """A value as it may be shown: an address loses what stands before its host, and its query."""
    if isinstance(value, str):
        hidden = _USER_AND_PASSWORD.sub("…@", value)
        return _QUERY.sub(r"\1…", hidden)
    if isinstance(value, Mapping):
        return MappingProxyType({key: hide_credentials(item) for key, item in value.items()})
    return type(value)(map(hide_credentials, value)) if isinstance(value, tuple | list) else value


def hide_pasted_key(name: str) -> str:
    """The name of a variable as it may be shown: one that is set, or that is written as names of variables are."""
    return name if is_shown(name) else "… (not shown: no such variable is set)"


_USER_AND_PASSWORD: Final = re.compile(r"(?<=://).*@", re.DOTALL)
"""Up to the last @: a password may have one too."""
_QUERY: Final = re.compile(r"(://[^?#]*[?#]).*", re.DOTALL)


def short_repr(value: object) -> str:
    """Return the representation of a value for an error message, without credentials."""
    text = repr(hide_credentials(value))
    return text if len(text) <= 80 else f"{text[:77]}…"
