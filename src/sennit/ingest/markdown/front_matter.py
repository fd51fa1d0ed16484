"""Reads front matter: YAML between lines of ---, or TOML between lines of +++.

A page may come from anybody, so the size, depth and number of values are bounded. YAML that is not valid does not lose
the page or its title: its keys are then read one by one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from sennit.records import Json, is_unicode

MAX_CHARS: Final = 64 * 1024
"""Longer front matter is left out, and not read."""

MAX_DEPTH: Final = 16
MAX_VALUES: Final = 10_000
"""Counted after aliases are expanded. A few lines of aliases of aliases can stand for billions of values."""

_KEY: Final = re.compile(
    r"""(?:"([^"]*)"|'([^']*)'|([^\s#"'\[\]{}&*!|>%@`,-][^\s:]*(?: [^\s:]+)*|-[^\s:]+))\s*:(?=\s|\Z)"""
)
_MAX_INTEGER: Final = 2**63
_ERRORS: Final = (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads plain values only, and as YAML 1.2 does: `no`, `on`, dates and times such as 10:30 are text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - a class attribute of PyYAML


for _tag, _pattern, _first in (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
    ("null", r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)\Z", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\Z", "-+.0123456789"),
    ("merge", r"<<\Z", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def parse_front_matter(lines: Sequence[str]) -> tuple[dict[str, Json], int]:
    """Return the values and the line after the front matter; no values and 0 if there is none.

    If a key stands twice, the last one counts.
    """
    if not lines:
        return {}, 0
    mark = lines[0].rstrip().removeprefix("\ufeff")
    if mark not in ("---", "+++"):
        return {}, 0
    ends = ("---", "...") if mark == "---" else ("+++",)
    end = next((at for at in range(1, len(lines)) if lines[at].rstrip() in ends), 0)
    if not end:
        return {}, 0
    inside = lines[1:end]
    if mark == "+++":
        values = _read_toml("\n".join(inside))
        return ({}, 0) if values is None else (values, end + 1)
    content = [line for line in inside if line.strip() and not line.lstrip().startswith("#")]
    if content and not _KEY.match(content[0]):
        # The page starts with a thematic break, not with front matter.
        return {}, 0
    return _read_yaml(inside), end + 1


def _read_toml(text: str) -> dict[str, Json] | None:
    if len(text) > MAX_CHARS:
        return {}
    try:
        return _to_map(tomllib.loads(text))
    except (*_ERRORS, tomllib.TOMLDecodeError):
        return None


def _read_yaml(lines: Sequence[str]) -> dict[str, Json]:
    text = "\n".join(lines)
    if len(text) > MAX_CHARS:
        return {}
    try:
        return _to_map(_load(text))
    except _ERRORS:
        return dict(_read_entries(lines))


def _read_entries(lines: Sequence[str]) -> Iterator[tuple[str, Json]]:
    """Read each key with its value alone. A value that is not YAML, such as `a: b: c`, is text."""
    starts = [at for at, line in enumerate(lines) if _KEY.match(line)]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        entry = "\n".join(lines[start:stop])
        found = _KEY.match(entry)
        name = found and (found[1] or found[2] or found[3])
        if found is None or not name or not is_unicode(name):
            continue
        try:
            yield from _to_map(_load(entry)).items()
        except _ERRORS:
            value = " ".join(entry[found.end() :].split())
            yield name, value if is_unicode(value) else value.encode(errors="replace").decode()


def _load(text: str) -> Mapping[Any, object]:
    values = yaml.load(text, Loader=_Loader)  # noqa: S506 - the loader is a safe one
    if not isinstance(values, Mapping):
        if values is None:
            return {}
        raise ValueError("front matter is not a map")
    return values


def _to_map(values: Mapping[Any, object]) -> dict[str, Json]:
    counter = _Counter()
    return {str(key): counter.to_json(value, 1) for key, value in values.items() if str(key)}


class _Counter:
    """Turns values into JSON, up to a number of them."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def to_json(self, value: object, depth: int) -> Json:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            raise ValueError("front matter has too many values, or too deep ones")
        if isinstance(value, Mapping):
            return {str(key): self.to_json(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.to_json(inner, depth + 1) for inner in value]
        if isinstance(value, str):
            return value.rstrip("\n") if is_unicode(value) else value.encode(errors="replace").decode()
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) and abs(value) < _MAX_INTEGER:
            return value
        if isinstance(value, float) and abs(value) < float("inf"):
            return value
        isoformat = getattr(value, "isoformat", None)
        return isoformat() if callable(isoformat) else str(value)
