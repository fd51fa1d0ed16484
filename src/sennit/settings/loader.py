"""Load settings: find the files, refuse what an untrusted file may not set, and merge the sources."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from sennit.errors import SettingsError
from sennit.settings.attached import read_mappings
from sennit.settings.registry import NAMED_TABLES, SECTION_NAMES, SECTIONS, SETTINGS, Settings
from sennit.settings.setting import short_repr
from sennit.settings.trust import config_folder, is_trusted
from sennit.user_cache import expand_home

FILE_NAME: Final = "sennit.toml"

MAX_FILE_BYTES: Final = 1024 * 1024
"""A settings file is written by hand; a larger file is something else with the same name."""


def load_settings(
    path: Path | None = None,
    *,
    start: Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Load the settings. `start` is the folder where the search for a file begins; by default the working folder.

    `overrides` maps keys such as `embedding.provider` to values; None means not given.
    """
    env = os.environ if env is None else env
    values: dict[str, object] = {}
    tables: dict[str, dict[str, Mapping[str, object]]] = {name: {} for name in NAMED_TABLES}
    origins: dict[str, str] = {}

    named = path or (expand_home(env["SENNIT_CONFIG"]) if env.get("SENNIT_CONFIG") else None)
    own = config_folder(env) / FILE_NAME
    chosen = named or find_nearest(start)
    files = [own] if _is_file(own) else []
    if chosen is not None and not (files and chosen.resolve() == own.resolve()):
        files.append(chosen)

    for file in files:
        is_found = file is chosen and named is None
        for key, value in _entries(_parse_file(file), str(file)):
            if is_found and _is_sensitive(key, value) and not is_trusted(file.parent, env=env):
                raise _untrusted_error(file, key)
            origins[key] = str(file)
            if isinstance(value, Mapping) and key not in SETTINGS:
                section, _, name = key.partition(".")
                tables[section][name] = value
            else:
                values[key] = SETTINGS[key].check(value, str(file))

    for key, setting in SETTINGS.items():
        for variable in setting.variables:
            if variable in env:
                values[key] = setting.parse(env[variable], variable)
                origins[key] = variable

    for key, value in (overrides or {}).items():
        if key not in SETTINGS:
            raise _unknown_key_error("argument", key)
        if value is not None:
            values[key] = SETTINGS[key].check(value, "argument")
            origins[key] = "argument"

    grouped: dict[str, dict[str, Any]] = {section.name: {} for section in SECTIONS}
    for key, value in values.items():
        name, _, item = key.partition(".")
        grouped[name][item] = value
    sections: dict[str, Any] = {section.name: section(**grouped[section.name]) for section in SECTIONS}
    read_mappings(tables["attached"], origins)
    by_name: dict[str, Any] = {name: MappingProxyType(table) for name, table in tables.items()}
    return Settings(**sections, **by_name, origins=MappingProxyType(origins))


def find_nearest(start: Path | None = None) -> Path | None:
    """Return the settings file in a folder (by default the working folder), or in the nearest one above that has one."""
    try:
        start = (start or Path.cwd()).resolve()
    except OSError:  # the working folder is gone
        return None
    return next((f for folder in (start, *start.parents) if _is_file(f := folder / FILE_NAME)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _parse_file(file: Path) -> Mapping[str, object]:
    import tomllib

    try:
        if not file.is_file():  # reading a pipe or a device could block
            raise SettingsError(f"{file}: there is no such settings file.")
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise SettingsError(f"{file} is larger than {MAX_FILE_BYTES:,} bytes; it is not a settings file.")
        parsed = _freeze(tomllib.loads(content.decode("utf-8-sig")))
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not UTF-8 text (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} is not valid TOML: {error}.") from error
    except RecursionError:
        raise SettingsError(f"{file} is nested too deeply.") from None
    assert isinstance(parsed, Mapping)
    return parsed


def _freeze(value: object) -> object:
    if isinstance(value, dict):
        return MappingProxyType({key: _freeze(item) for key, item in value.items()})
    return tuple(_freeze(item) for item in value) if isinstance(value, list) else value


def _entries(content: Mapping[str, object], origin: str) -> Iterator[tuple[str, object]]:
    """Yield each `section.name` of a file with its value; an unknown key is an error."""
    for section, table in content.items():
        if section not in SECTION_NAMES:
            raise _unknown_key_error(origin, section)
        if not isinstance(table, Mapping):
            raise _not_a_table_error(origin, section, table)
        for name, value in table.items():
            key = f"{section}.{name}"
            if section in NAMED_TABLES and not isinstance(value, Mapping):
                raise _not_a_table_error(origin, key, value)
            if section not in NAMED_TABLES and key not in SETTINGS:
                raise _unknown_key_error(origin, key)
            yield key, value


def _is_sensitive(key: str, value: object) -> bool:
    """Whether only a trusted file may set this; in a recipe, any path or address."""
    if key in SETTINGS:
        return SETTINGS[key].is_sensitive(value)
    if key.startswith("attached."):
        return True
    # The evidence for a tuned recipe is only shown.
    pending = (
        [item for name, item in value.items() if name != "evidence"]
        if isinstance(value, Mapping)
        else [value]
    )
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, tuple):
            pending.extend(item)
        elif isinstance(item, str) and (re.search(r"[/\\]", item) or item.startswith(("~", ".."))):
            return True
    return False


def _untrusted_error(file: Path, key: str) -> SettingsError:
    import shlex

    return SettingsError(
        f"{file}: {key} decides where text is sent, which file is opened or who sees what. sennit found this file in "
        "the folder, and you did not choose it. If you trust everything in that folder, run: "
        f"sennit config trust {shlex.quote(str(file.parent))}",
        key=key,
    )


def _not_a_table_error(origin: str, key: str, value: object) -> SettingsError:
    return SettingsError(
        f"{origin}: {short_repr(key)} is {short_repr(value)}; it must be a table of settings.", key=key
    )


def _unknown_key_error(origin: str, key: str) -> SettingsError:
    from difflib import get_close_matches

    section, _, name = key.rpartition(".")
    siblings = [known for known in SETTINGS if known.startswith(f"{section}.")]
    # A misspelt name is of its section; one that is right belongs to another section.
    near = (
        [
            f"{section}.{own}"
            for own in get_close_matches(name[:100], [one.rpartition(".")[2] for one in siblings], n=1)
        ]
        or [known for known in SETTINGS if known.endswith(f".{name}")]
        or get_close_matches(key[:100], SETTINGS if section else SECTION_NAMES, n=1)
    )
    advice = (
        f"did you mean {near[0]}?" if near else f"known settings: {', '.join(siblings or SECTION_NAMES)}."
    )
    return SettingsError(f"{origin}: there is no setting {short_repr(key)}; {advice}", key=key)
