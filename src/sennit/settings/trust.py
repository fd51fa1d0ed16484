"""Which folders the user trusts: a `sennit.toml` found in one may say what a stranger's may not.

The list is the user's own, `sennit/trusted.json` in the configuration folder. A folder is trusted by itself;
what is cloned into it later is not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from sennit.errors import NotFound, SettingsError

LIST_NAME: Final = "trusted.json"


def config_folder(env: Mapping[str, str] | None = None) -> Path:
    """The folder of the user's own configuration: `sennit` in XDG_CONFIG_HOME, else in ~/.config."""
    env = os.environ if env is None else env
    base = Path(env.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():  # the XDG specification: a relative one is to be ignored
        base = (Path(env["HOME"]) if env.get("HOME") else Path.home()) / ".config"
    return base / "sennit"


def trusted(folder: Path, *, env: Mapping[str, str] | None = None) -> bool:
    """Whether the user has trusted this very folder."""
    return str(folder.resolve()) in _read(config_folder(env) / LIST_NAME)


def trust(folder: Path, *, env: Mapping[str, str] | None = None) -> Path:
    """Trust a folder, or the one a file is in, from now on; returns it as it is listed."""
    if not folder.exists():
        raise NotFound(f"There is no folder {folder} to trust.")
    real = (folder if folder.is_dir() else folder.parent).resolve()
    _change(env, add=str(real))
    return real


def distrust(folder: Path, *, env: Mapping[str, str] | None = None) -> bool:
    """Take back the trust in a folder, which need not exist any more; whether it was trusted."""
    return _change(env, drop=str(folder.resolve()))


def _change(env: Mapping[str, str] | None, *, add: str | None = None, drop: str | None = None) -> bool:
    from filelock import FileLock

    file = config_folder(env) / LIST_NAME
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(f"{file}.lock"):
            before = _read(file)
            after = (before | {add} if add else before) - {drop}
            if after != before:
                _write(file, after)
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror or error}.") from error
    return after != before


def _read(file: Path) -> set[str | None]:
    try:
        content = json.loads(file.read_bytes())
        folders = content["folders"]
        if isinstance(folders, list) and all(isinstance(folder, str) for folder in folders):
            return set(folders)
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise SettingsError(f"{file} is not a list of trusted folders. Mend it or delete it; then trust again.")


def _write(file: Path, folders: Iterable[str | None]) -> None:
    """Whole or not at all: a reader sees the old list or the new one."""
    content = json.dumps({"folders": sorted(filter(None, folders))}, indent=2, ensure_ascii=False)
    fresh = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(content.encode() + b"\n")
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)
