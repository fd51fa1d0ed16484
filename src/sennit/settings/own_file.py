"""The settings file that belongs to the user: which one it is, and how a table is added to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sennit.errors import InvalidInput, SettingsError
from sennit.settings.loader import FILE_NAME, MAX_FILE_BYTES, find_nearest
from sennit.settings.toml_text import toml_key, toml_value
from sennit.settings.trust import config_folder, is_trusted, replace_file
from sennit.user_cache import expand_home

NEW_FILE_MODE: Final = 0o600


def find_own_file(*, start: Path | None = None, env: Mapping[str, str] | None = None) -> Path:
    """Return the settings file that the user has chosen: the named one, that of a trusted folder, or the user's own."""
    env = os.environ if env is None else env
    if env.get("SENNIT_CONFIG"):
        return expand_home(env["SENNIT_CONFIG"])
    nearest = find_nearest(start)
    is_chosen = nearest is not None and is_trusted(nearest.parent, env=env)
    return nearest if nearest is not None and is_chosen else config_folder(env) / FILE_NAME


class SettingsFile:
    """The settings file of the user who runs this process, to which tables are appended."""

    def __init__(self, path: Path | None = None) -> None:
        """By default, the file that SENNIT_CONFIG names, that of a trusted folder, or else the user's own."""
        self.path = find_own_file() if path is None else path

    def append(self, section: str, name: str, table: Mapping[str, Any]) -> str:
        """Add `[section.name]` at the end of the file, and return what was written. Nothing else in it changes."""
        from filelock import FileLock

        text = table_to_toml(section, name, table)
        try:
            if self.path == config_folder() / FILE_NAME:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            real = self.path.resolve()
            with FileLock(f"{real}.lock"):
                mode = _check_owner(real)
                content = real.read_text("utf-8-sig") if mode is not None else ""
                whole = self._with_table(content, section, name, text)
                replace_file(real, whole.encode(), mode or NEW_FILE_MODE)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SettingsError(f"{self.path} cannot be written: {reason}.") from error
        return text

    def _with_table(self, content: str, section: str, name: str, text: str) -> str:
        """Return the content with the table after it; the file must be valid before and after."""
        import tomllib

        gap = "" if not content else "\n" if content.endswith("\n") else "\n\n"
        try:
            tables = tomllib.loads(content).get(section, {})
            if isinstance(tables, Mapping) and name in tables:
                raise InvalidInput(f"{self.path} has {section}.{name} already. Choose another name.")
            tomllib.loads(content + gap + text)
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{self.path} cannot take {section}.{name}: {error}.") from error
        if len((content + gap + text).encode()) > MAX_FILE_BYTES:
            raise SettingsError(f"{self.path} would be larger than {MAX_FILE_BYTES:,} bytes.")
        return content + gap + text


def _check_owner(file: Path) -> int | None:
    """Return the mode of a file that belongs to this user, None if it does not exist; refuse any other file."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    is_other = hasattr(os, "geteuid") and found.st_uid != os.geteuid()
    if not stat.S_ISREG(found.st_mode) or is_other or (os.name == "posix" and found.st_mode & stat.S_IWOTH):
        raise SettingsError(
            f"{file} is not written: it must be a file of the user who runs sennit, which not everybody may write."
        )
    return stat.S_IMODE(found.st_mode)


def table_to_toml(section: str, name: str, table: Mapping[str, Any]) -> str:
    """Return a table `[section.name]` of sennit.toml."""
    lines = [f"[{section}.{toml_key(name)}]"]
    for key, value in table.items():
        if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
            lines += [f"{toml_key(key)} = [", *(f"    {toml_value(one)}," for one in value), "]"]
        else:
            lines.append(f"{toml_key(key)} = {toml_value(value)}")
    return "\n".join(lines) + "\n"
