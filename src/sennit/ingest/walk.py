"""Finding the files of a folder: what git would ignore is left out, nothing is opened, no link is followed."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from sennit.errors import InvalidInput
from sennit.ingest.ignore import Rules
from sennit.ingest.reading import Unreadable, contents

IGNORE_FILES: Final = (".gitignore", ".ignore", ".sennitignore")
"""In rising precedence; a deeper folder's precede those above it."""

CONFIGURATION: Final = "sennit.toml"

DEFAULT_MAX_BYTES: Final = 32 * 1024 * 1024
"""Longer files are logs and dumps, which would drown everything else."""

MAX_DEPTH: Final = 128
"""Folders in folders; real trees end at about thirty."""

MAX_RULES_BYTES: Final = 1024 * 1024
"""An ignore file or sennit.toml longer than this is not one."""

_INODE_BITS: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which of the files in a folder are wanted."""

    hidden: bool = False
    ignore_files: bool = True
    include: tuple[str, ...] = ()
    """When given, only files that match one of these patterns (as in .gitignore)."""
    exclude: tuple[str, ...] = ()
    max_bytes: int = DEFAULT_MAX_BYTES

    def __post_init__(self) -> None:
        if type(self.max_bytes) is not int or self.max_bytes < 1:
            raise InvalidInput(f"max_bytes must be a number of bytes of at least 1, not {self.max_bytes!r}")
        for name in ("include", "exclude"):
            for pattern in getattr(self, name):
                if not isinstance(pattern, str) or pattern.startswith("!") or not pattern.strip():
                    raise InvalidInput(f"{name} takes patterns such as '*.log' or 'build/', not {pattern!r}")


class Found(NamedTuple):
    """A file, by the name it is opened by and the name it is known by, and how it looks from outside."""

    opened: str
    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass(slots=True)
class Tree:
    """What a walk found."""

    files: dict[str, Found] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """Why, by path: seen, not ignored, and yet not to be read."""
    closed: list[str] = field(default_factory=list)
    """Folders that could not be looked into: what is known of their files stays."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some places of a tree: what is at and below them, and nothing beside them."""

    places: frozenset[str]
    ways: frozenset[str]
    """The folders above the places."""

    @classmethod
    def of(cls, places: Iterable[str]) -> Part:
        named = frozenset(places)
        return cls(named, frozenset(str(above) for place in named for above in Path(place).parents))

    def within(self, root: str) -> list[str]:
        """The places at or below a path; the path itself where it is below one of them."""
        if not self.places.isdisjoint((root, *map(str, Path(root).parents))):
            return [root]
        return [place for place in self.places if Path(root) in Path(place).parents]


class _Ruling(NamedTuple):
    """Rules and where they stand; paths below are cut after `cut` characters to be relative to them."""

    cut: int
    rules: Rules


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    depth: int
    rulings: tuple[_Ruling, ...]
    """Of ignore files, the deepest first."""
    narrowing: tuple[_Ruling, ...]
    """Patterns that exclude and are never taken back."""
    max_bytes: int
    part: Part | None
    """What is wanted of it; None for everything."""


def known_as(path: str) -> str:
    """A path as text: bytes that are not UTF-8 are written as \\xNN, so that it can be kept and shown."""
    try:
        path.encode()
    except UnicodeEncodeError:
        path = os.fsencode(path).decode("utf-8", "backslashreplace")
    return path if os.sep == "/" else path.replace(os.sep, "/")


def walk(
    root: str, scope: Scope, tree: Tree, *, leave_out: Sequence[str] = (), part: Part | None = None
) -> None:
    """Add to `tree` what is at or below a real, absolute path; folders in `leave_out` are not entered."""
    if part is not None:
        places = part.within(root)
        if not places:
            return
        part = None if root in places else part
    try:
        status = Path(root).lstat()
    except OSError as error:
        _closed(tree, root, error)
        return
    if not stat.S_ISDIR(status.st_mode):
        _consider(tree, root, status, scope.max_bytes)
        return
    cut = len(root.rstrip(os.sep)) + 1
    above = tuple(_rules_above(root)) if scope.ignore_files else ()
    excluded = Rules(scope.exclude)
    included = Rules(scope.include)
    first = _Folder(root, 0, above, (_Ruling(cut, excluded),) if excluded else (), scope.max_bytes, part)
    waiting = [first]
    while waiting:
        folder = waiting.pop()
        waiting += reversed(list(_enter(folder, scope, included, cut, tree, leave_out)))


def _enter(
    folder: _Folder, scope: Scope, included: Rules, cut: int, tree: Tree, leave_out: Sequence[str]
) -> Iterator[_Folder]:
    """Take in a folder's files; gives its folders."""
    try:
        with os.scandir(folder.path) as entries:
            inside = sorted(entries, key=attrgetter("name"))
    except OSError as error:
        _closed(tree, folder.path, error)
        return
    names = {entry.name for entry in inside}
    rulings, narrowing, max_bytes = folder.rulings, folder.narrowing, folder.max_bytes
    here = len(folder.path.rstrip(os.sep)) + 1
    if scope.ignore_files and not names.isdisjoint(IGNORE_FILES):
        rules = Rules(_lines_of(folder.path, [name for name in IGNORE_FILES if name in names], tree))
        if rules.dropped:
            tree.skipped[known_as(f"{folder.path}{os.sep}.gitignore")] = (
                f"{rules.dropped} of its patterns are too long or too many to be used"
            )
        if rules:
            rulings = (_Ruling(here, rules), *rulings)
    if CONFIGURATION in names:
        exclude, limit = _narrowed(f"{folder.path}{os.sep}{CONFIGURATION}", tree)
        if exclude:
            narrowing = (*narrowing, _Ruling(here, Rules(exclude)))
        max_bytes = min(max_bytes, limit)
    for entry in inside:
        name = entry.name
        if (name[0] == "." and not scope.hidden) or name == ".git":
            continue
        path = entry.path
        is_folder = entry.is_dir(follow_symlinks=False)
        part = folder.part
        if part is not None:
            if path in part.places:
                part = None
            elif not is_folder or path not in part.ways:
                continue
        if (rulings or narrowing) and _out(path, name, is_folder, rulings, narrowing):
            continue
        if is_folder:
            if path in leave_out:
                continue
            if folder.depth + 1 >= MAX_DEPTH:
                tree.skipped[known_as(path)] = f"nested deeper than {MAX_DEPTH} folders"
                continue
            yield _Folder(path, folder.depth + 1, rulings, narrowing, max_bytes, part)
            continue
        if included and not included.decide(path[cut:], name, folder=False):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError as error:
            _closed(tree, path, error)
            continue
        _consider(tree, path, status, max_bytes)


def _out(
    path: str, name: str, folder: bool, rulings: Sequence[_Ruling], narrowing: Sequence[_Ruling]
) -> bool:
    if any(rules.decide(path[cut:], name, folder=folder) for cut, rules in narrowing):
        return True
    for cut, rules in rulings:
        decided = rules.decide(path[cut:], name, folder=folder)
        if decided is not None:
            return decided
    return False


def _consider(tree: Tree, opened: str, status: os.stat_result, max_bytes: int) -> None:
    path = known_as(opened)
    mode = status.st_mode
    if not stat.S_ISREG(mode):
        tree.skipped[path] = f"{_kind_of(mode)}, not a file"
    elif status.st_size > max_bytes:
        tree.skipped[path] = f"{status.st_size:,} bytes; the most is {max_bytes:,}"
    elif path in tree.files and tree.files[path].opened != opened:
        tree.skipped[path] = "two files have names that are the same when written as text"
    else:
        tree.files[path] = Found(
            opened, path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & _INODE_BITS
        )


def _kind_of(mode: int) -> str:
    for test, kind in (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISDIR, "a folder"),
    ):
        if test(mode):
            return kind
    return "a device"


def _closed(tree: Tree, opened: str, error: OSError) -> None:
    path = known_as(opened)
    tree.skipped[path] = f"cannot be looked at: {error.strerror}"
    tree.closed.append(path)


def _rules_above(root: str) -> Iterator[_Ruling]:
    """The ignore files between a folder and the top of the git repository it is in, the deepest first."""
    above = Path(root).parents
    if os.path.lexists(f"{root}{os.sep}.git"):
        return
    top = next((index for index, folder in enumerate(above) if (folder / ".git").exists()), None)
    if top is None:
        return
    for folder in above[: top + 1]:
        names = [name for name in IGNORE_FILES if (folder / name).is_file()]
        rules = Rules(_lines_of(str(folder), names, None))
        if rules:
            yield _Ruling(len(str(folder).rstrip(os.sep)) + 1, rules)


def _lines_of(folder: str, names: Sequence[str], tree: Tree | None) -> Iterator[str]:
    for name in names:
        data = _small_file(f"{folder}{os.sep}{name}", tree)
        yield from data.decode("utf-8-sig", "surrogateescape").split("\n")


def _narrowed(path: str, tree: Tree) -> tuple[list[str], int]:
    """What a sennit.toml inside an indexed folder may say here: patterns to leave out, and a smaller limit."""
    exclude: list[str] = []
    limit = _INODE_BITS
    try:
        table = tomllib.loads(_small_file(path, tree).decode())
    except (ValueError, RecursionError) as error:
        tree.skipped[known_as(path)] = f"not used, it is not valid TOML: {str(error)[:200]}"
        return exclude, limit
    section = table.get("ingest")
    if isinstance(section, dict):
        patterns, size = section.get("exclude"), section.get("max_bytes")
        if isinstance(patterns, list):
            exclude = [p for p in patterns if isinstance(p, str) and not p.startswith("!")]
        if type(size) is int and size >= 0:
            limit = size
    return exclude, limit


def _small_file(path: str, tree: Tree | None) -> bytes:
    """The bytes of a file that tells what to leave out; empty, and said so, when it cannot be one."""
    try:
        return contents(path, MAX_RULES_BYTES).data
    except Unreadable as error:
        if tree is not None:
            tree.skipped[known_as(path)] = f"not used: {error}"
        return b""
