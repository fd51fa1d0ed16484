"""Writes the entry of an agent, remembers the edit, and undoes it."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from sennit.apps.install.agents import Agent, Command, Places, Scope
from sennit.apps.install.edits import Edit, find_entry, load, remove_entry, write_entry
from sennit.errors import InvalidInput
from sennit.settings.trust import config_folder

MEMORY_NAME: Final = "installed.json"
"""The file beside the user's settings that remembers the edits."""

NEW_USER_FILE_MODE: Final = 0o600
NEW_PROJECT_FILE_MODE: Final = 0o644

State = Literal["added", "changed", "unchanged", "removed", "absent"]


@dataclass(frozen=True, slots=True)
class Change:
    """What an installation would do, or has done, to a file."""

    agent: Agent
    scope: Scope
    file: Path
    """As the agent knows it; it may be a link to the file that is written."""
    entry: dict[str, Any]
    state: State
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """An edit that was made, and what was created for it."""

    start: int
    removed: str
    inserted: str
    created_file: bool
    created_folders: tuple[str, ...]


def config_file(agent: Agent, scope: Scope, places: Places) -> Path:
    """Return the file of an agent in a scope; raise InvalidInput if it has no such scope."""
    file = agent.config_path(scope, places)
    if file is None:
        raise InvalidInput(f"{agent.title} has no configuration of a single project; use --scope user.")
    return file


def plan_install(agent: Agent, scope: Scope, places: Places, command: Command) -> Change:
    """Return what an installation would change. Nothing is written."""
    file, entry = config_file(agent, scope, places), agent.make_entry(command)
    text = _read(file)
    with _explaining(file):
        present = find_entry(load(text or "", agent.form), agent.entry_path)
        if present == entry:
            return Change(agent, scope, file, entry, "unchanged")
        edit = write_entry(text or "", agent.form, agent.entry_path, entry)
    return Change(agent, scope, file, entry, "added" if present is None else "changed", edit)


def install(agent: Agent, scope: Scope, places: Places, command: Command) -> Change:
    """Write the entry, unless it is there already."""
    change = plan_install(agent, scope, places, command)
    if change.edit is None:
        return change
    text = _read(change.file)
    memories = _read_memories()
    key = _key(change.file)
    folders = _missing_folders(change.file)
    former = memories.get(key)
    if former is None or change.state == "added":
        edit = change.edit
        memory = Memory(edit.start, edit.removed, edit.inserted, text is None, folders)
    else:
        # The entry was written before, with another database: undoing takes back both edits.
        memory = _merge(former, change.edit)
    for folder in reversed(folders):
        try:
            Path(folder).mkdir(exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{folder} cannot be created: {error.strerror or error}.") from error
    mode = NEW_USER_FILE_MODE if scope == "user" else NEW_PROJECT_FILE_MODE
    _write(change.file, change.edit.apply(text or ""), mode)
    _write_memories({**memories, key: memory})
    return change


def undo(agent: Agent, scope: Scope, places: Places) -> Change:
    """Remove the entry. A file that nobody else has changed is as it was before, byte for byte."""
    file = config_file(agent, scope, places)
    text = _read(file)
    memories = _read_memories()
    memory = memories.pop(_key(file), None)
    with _explaining(file):
        present = find_entry(load(text or "", agent.form), agent.entry_path)
        if text is None or present is None:
            return Change(agent, scope, file, {}, "absent")
        edit = _undoing(text, agent, memory)
    restored = edit.apply(text)
    if memory is not None and memory.created_file and not restored.strip():
        Path(os.path.realpath(file)).unlink()
        for folder in memory.created_folders:
            with contextlib.suppress(OSError):  # somebody else has put something there
                Path(folder).rmdir()
    else:
        _write(file, restored, NEW_USER_FILE_MODE)
    _write_memories(memories)
    return Change(agent, scope, file, {}, "removed", edit)


def _undoing(text: str, agent: Agent, memory: Memory | None) -> Edit:
    """The edit that takes back what was written, or else one that removes the entry."""
    if memory is not None and text.count(memory.inserted) == 1:
        back = Edit(text.index(memory.inserted), memory.inserted, memory.removed)
        restored = back.apply(text)
        with contextlib.suppress(ValueError):
            load(restored, agent.form)
            return back
    return remove_entry(text, agent.form, agent.entry_path)


def _merge(former: Memory, edit: Edit) -> Memory:
    """The memory of two edits, the second inside of what the first has inserted."""
    if edit.removed and edit.removed in former.inserted:
        inserted = former.inserted.replace(edit.removed, edit.inserted, 1)
        return Memory(former.start, former.removed, inserted, former.created_file, former.created_folders)
    return Memory(edit.start, edit.removed, edit.inserted, former.created_file, former.created_folders)


@contextlib.contextmanager
def _explaining(file: Path) -> Iterator[None]:
    """Name the file in an error about its content."""
    try:
        yield
    except ValueError as error:
        raise InvalidInput(
            f"{file} was not changed: {error}. Correct the file, or put in by hand what --print shows."
        ) from error


def _read(file: Path) -> str | None:
    """The text of a file, with its line ends; None if there is none."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        if file.is_symlink():
            raise InvalidInput(
                f"{file} is a link to a file that does not exist; nothing was written."
            ) from None
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text ({error.reason}); nothing was written.") from error
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}.") from error


def _write(file: Path, text: str, new_mode: int) -> None:
    """Replace a file at once, or the file that it is a link to. Its permissions stay."""
    real = Path(os.path.realpath(file))
    temporary = real.with_name(f".{real.name}.{os.getpid()}.tmp")
    try:
        try:
            mode = stat.S_IMODE(real.stat().st_mode)
        except FileNotFoundError:
            mode = new_mode
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                out.write(text.encode())
                out.flush()
                os.fsync(out.fileno())
            temporary.chmod(mode)
            temporary.replace(real)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror or error}.") from error


def _missing_folders(file: Path) -> tuple[str, ...]:
    """The folders that must be created for a file, the innermost first."""
    return tuple(str(folder) for folder in file.parents if not folder.exists())


def _key(file: Path) -> str:
    return os.path.realpath(file)


def _read_memories() -> dict[str, Memory]:
    file = config_folder() / MEMORY_NAME
    try:
        content = json.loads(file.read_bytes())
        return {
            name: Memory(**{**values, "created_folders": tuple(values["created_folders"])})
            for name, values in content.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        # Without its memory, an entry is removed and not undone.
        return {}


def _write_memories(memories: dict[str, Memory]) -> None:
    file = config_folder() / MEMORY_NAME
    try:
        if not memories:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be changed: {error.strerror or error}.") from error
    content = {name: asdict(memory) for name, memory in memories.items()}
    _write(file, json.dumps(content, indent=2, ensure_ascii=False) + "\n", NEW_USER_FILE_MODE)
