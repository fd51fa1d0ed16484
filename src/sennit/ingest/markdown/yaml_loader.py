"""YAML as front matter uses it: plain values, with the types of YAML 1.2."""

from __future__ import annotations

import re
from typing import Any

import yaml


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


def load_yaml(text: str) -> Any:
    """Return the values of one document; raises ValueError if it is not valid."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - the loader is a safe one
    except (yaml.YAMLError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"invalid YAML: {type(error).__name__}") from error
