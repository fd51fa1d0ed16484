"""Values as TOML, for the files that sennit writes. The standard library only reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def toml_key(key: str) -> str:
    """Return a key as it stands in a file: bare where TOML allows that."""
    is_bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if is_bare else toml_value(key)


def toml_value(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        # JSON escapes all that TOML wants escaped, but for DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{toml_key(key)} = {toml_value(one)}" for key, one in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return f"[{', '.join(map(toml_value, value))}]"
