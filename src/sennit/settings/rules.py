"""What a setting is: its type and its rule, and how a value becomes one that is valid."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

from sennit.errors import SettingsError


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


class Section:
    """Checks its fields however it is made, so that a section that exists is a valid one."""

    __slots__ = ()
    name: ClassVar[str]

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            setting = TABLE[f"{self.name}.{item.name}"]
            object.__setattr__(self, item.name, setting.checked(getattr(self, item.name), "argument"))


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
        return "SENNIT_" + self.key.replace(".", "_").upper()

    @property
    def allowed(self) -> str:
        """The values it takes, in words."""
        if self.choices:
            text = "one of " + ", ".join(self.choices)
        elif self.kind is bool:
            text = "true or false"
        elif self.kind is tuple:
            text = "a list of texts, in the environment separated by commas"
        elif self.kind is str:
            text = self.rule.expects or "a string of valid Unicode"
        else:
            noun = "a whole number" if self.kind is int else "a number"
            text = f"{noun} from {self.rule.least:,} to {self.rule.most:,}"
        return text + (", or left out" if self.optional else "")

    def read(self, text: str, origin: str) -> object:
        """The checked value of a text from the environment."""
        try:
            value = _READERS.get(self.kind, self.kind)(text) if text or self.kind is tuple else text
        except (KeyError, ValueError):
            raise self._refused(text, origin) from None
        return self.checked(value, origin)

    def checked(self, value: object, origin: str) -> object:
        """The value in its own type, or an error that says where it came from and what is allowed."""
        if self.optional and value in (None, ""):
            return None
        if self.kind is float and type(value) is int and abs(value) <= self.rule.most:
            value = float(value)
        if self.kind is tuple and isinstance(value, list):
            value = tuple(value)
        if type(value) is not self.kind or not self._fits(value):
            raise self._refused(value, origin)
        return value

    def is_sensitive(self, value: object) -> bool:
        """Whether only a trusted file may set this value."""
        listed = self.rule.sensitive
        return value in listed if isinstance(listed, tuple) else listed

    def _fits(self, value: object) -> bool:
        if isinstance(value, tuple):
            return all(isinstance(item, str) and item and _is_unicode(item) for item in value)
        if isinstance(value, str):
            if self.choices:
                return value in self.choices
            return _is_unicode(value) and (
                not self.rule.pattern or re.fullmatch(self.rule.pattern, value) is not None
            )
        return isinstance(value, (int, float)) and self.rule.least <= value <= self.rule.most

    def _refused(self, value: object, origin: str) -> SettingsError:
        hide = self.rule.hide and re.search(self.rule.hide, str(value))
        what = "not usable (and not shown: it may hold a secret)" if hide else shown(value)
        return SettingsError(f"{origin}: {self.key} is {what}; it must be {self.allowed}.", key=self.key)


TABLE: Final[dict[str, Setting]] = {}
"""Every setting by its key, `section.name`; filled when the sections are read."""


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


_READERS: Final[Mapping[type, Any]] = {
    bool: lambda text: {"true": True, "1": True, "false": False, "0": False}[text.lower()],
    tuple: _listed,
}
"""How a type is read from the environment, where its own name does not do it."""


def shown(value: object) -> str:
    """A value as an error may show it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
