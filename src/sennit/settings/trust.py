"""The folders that the user trusts: a `sennit.toml` found in one of them may set everything.

The list is `sennit/trusted.json` in the user's configuration folder. Trust covers a folder alone, not the folders that
are cloned into it later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from sennit.errors import NotFound, SettingsError
from sennit.user_cache import home_folder

TRUST_LIST_NAME: Final = "trusted.json"


def config_folder(env: Mapping[str, str] | None = None) -> Path:
    """Return the user's configuration folder: `sennit` in XDG_CONFIG_HOME, else in ~/.config."""
    env = os.environ if env is None else env
    base = Path(env.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():  # the XDG specification says to ignore a relative path
        base = home_folder(env) / ".config"
    return base / "sennit"


def is_trusted(folder: Path, *, env: Mapping[str, str] | None = None) -> bool:
    """Whether the user trusts exactly this folder."""
    return str(folder.resolve()) in _read(config_folder(env) / TRUST_LIST_NAME)


def trust_folder(folder: Path, *, env: Mapping[str, str] | None = None) -> Path:
    """Trust a folder, or the folder of a file; return its real path."""
    if not folder.exists():
        raise NotFound(f"There is no folder {folder} to trust.")
    real = (folder if folder.is_dir() else folder.parent).resolve()
    _update(env, add=str(real))
    return real


def distrust_folder(folder: Path, *, env: Mapping[str, str] | None = None) -> bool:
    """Revoke the trust in a folder, which need not exist any more; return whether it was trusted."""
    return _update(env, drop=str(folder.resolve()))


def _update(env: Mapping[str, str] | None, *, add: str | None = None, drop: str | None = None) -> bool:
    from filelock import FileLock

    file = config_folder(env) / TRUST_LIST_NAME
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
    raise SettingsError(
        f"{file} is not a list of trusted folders. Repair or delete it, then trust the folder again."
    )


def _write(file: Path, folders: Iterable[str | None]) -> None:
    content = json.dumps({"folders": sorted(filter(None, folders))}, indent=2, ensure_ascii=False)
    replace_file(file, content.encode() + b"\n", 0o600)


def replace_file(file: Path, content: bytes, mode: int) -> None:
    """Replace a file atomically: a reader sees the old content or the new one."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
