"""Walking a folder: lists its files without opening them or following links, and skips what git would ignore."""

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
from sennit.ingest.default_ignores import reason_to_ignore, reason_to_leave
from sennit.ingest.file_reader import UnreadableFile, read_regular_file
from sennit.ingest.ignore import IgnoreRules
from sennit.places import path_to_text

IGNORE_FILES: Final = (".gitignore", ".ignore", ".sennitignore")
"""Later names take precedence, and rules of a deeper folder take precedence over those above it."""

SETTINGS_FILE: Final = "sennit.toml"

DEFAULT_MAX_BYTES: Final = 32 * 1024 * 1024
"""Larger files are mostly logs and dumps, whose records would outnumber all others."""

MAX_DEPTH: Final = 128
"""Nested folders; real trees are at most about thirty deep."""

MAX_RULES_BYTES: Final = 1024 * 1024
"""A longer ignore file or sennit.toml is not used."""

_MAX_INT64: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which files of a folder are indexed."""

    hidden: bool = False
    ignore_files: bool = True
    default_ignores: bool = True
    """Whether to ignore what programs write and nobody reads, such as virtual environments and lock files."""
    include: tuple[str, ...] = ()
    """If not empty, only files that match one of these patterns, written as in .gitignore."""
    exclude: tuple[str, ...] = ()
    max_bytes: int = DEFAULT_MAX_BYTES

    def __post_init__(self) -> None:
        if type(self.max_bytes) is not int or self.max_bytes < 1:
            raise InvalidInput(f"max_bytes must be a number of bytes of at least 1, not {self.max_bytes!r}")
        for name in ("include", "exclude"):
            for pattern in getattr(self, name):
                if not isinstance(pattern, str) or pattern.startswith("!") or not pattern.strip():
                    raise InvalidInput(f"{name} takes patterns such as '*.log' or 'build/', not {pattern!r}")


class FileEntry(NamedTuple):
    """A file that a walk found, with its status."""

    os_path: str
    """The path to open, which may hold bytes that are not UTF-8."""
    path: str
    """The path as text, for records and messages."""
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass(slots=True)
class WalkResult:
    """The files that a walk found, and what it skipped."""

    files: dict[str, FileEntry] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """By path, the reason why a file that is not ignored is skipped."""
    ignored: dict[str, str] = field(default_factory=dict)
    """By path, the reason why a file or folder is ignored by default."""
    unreadable_folders: list[str] = field(default_factory=list)
    """Folders that could not be listed. The records of their files stay."""


@dataclass(frozen=True, slots=True)
class Subtrees:
    """Some paths of a tree, each with everything below it."""

    paths: frozenset[str]
    ancestors: frozenset[str]
    """The folders above the paths."""

    @classmethod
    def of(cls, paths: Iterable[str]) -> Subtrees:
        tops = frozenset(paths)
        return cls(tops, frozenset(str(parent) for path in tops for parent in Path(path).parents))

    def within(self, root: str) -> list[str]:
        """The subtrees at or below a root; the root itself if it is inside one of them."""
        if not self.paths.isdisjoint((root, *map(str, Path(root).parents))):
            return [root]
        return [path for path in self.paths if Path(root) in Path(path).parents]


class _FolderRules(NamedTuple):
    """The rules of a folder. A path is relative to it without its first `prefix_length` characters."""

    prefix_length: int
    rules: IgnoreRules


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    depth: int
    ignore_rules: tuple[_FolderRules, ...]
    """Rules of ignore files, the deepest folder first. The first that matches decides."""
    exclude_rules: tuple[_FolderRules, ...]
    """Rules of the scope and of sennit.toml files. No other rule can include again what they exclude."""
    max_bytes: int
    subtrees: Subtrees | None
    """The only parts to visit; None for everything."""
    wanted: bool
    """Whether it was named, or an ignore file includes it again, so that no default keeps it out."""


def walk(
    root: str,
    scope: Scope,
    tree: WalkResult,
    *,
    skip_folders: Sequence[str] = (),
    subtrees: Subtrees | None = None,
) -> None:
    """Add the files at or below a real, absolute path to `tree`. Folders in `skip_folders` are not entered."""
    if subtrees is not None:
        inside = subtrees.within(root)
        if not inside:
            return
        subtrees = None if root in inside else subtrees
    try:
        status = Path(root).lstat()
    except OSError as error:
        _skip_unreadable(tree, root, error)
        return
    if not stat.S_ISDIR(status.st_mode):
        _add_entry(tree, root, status, scope.max_bytes)
        return
    prefix_length = len(root.rstrip(os.sep)) + 1
    above = tuple(_rules_above(root)) if scope.ignore_files else ()
    excluded = IgnoreRules(scope.exclude)
    included = IgnoreRules(scope.include)
    exclude_rules = (_FolderRules(prefix_length, excluded),) if excluded else ()
    first = _Folder(root, 0, above, exclude_rules, scope.max_bytes, subtrees, wanted=True)
    pending = [first]
    while pending:
        folder = pending.pop()
        pending += reversed(list(_visit(folder, scope, included, prefix_length, tree, skip_folders)))


def _visit(
    folder: _Folder,
    scope: Scope,
    included: IgnoreRules,
    prefix_length: int,
    tree: WalkResult,
    skip_folders: Sequence[str],
) -> Iterator[_Folder]:
    """Add the files of a folder to the tree; yields the folders inside it."""
    try:
        with os.scandir(folder.path) as entries:
            listed = sorted(entries, key=attrgetter("name"))
    except OSError as error:
        _skip_unreadable(tree, folder.path, error)
        return
    names = {entry.name for entry in listed}
    if scope.default_ignores and not folder.wanted and (reason := reason_to_leave(names)):
        tree.ignored[path_to_text(folder.path)] = reason
        return
    ignore_rules, exclude_rules, max_bytes = _rules_inside(folder, names, scope, tree)
    for entry in listed:
        name = entry.name
        if (name[0] == "." and not scope.hidden) or name == ".git":
            continue
        path = entry.path
        is_folder = entry.is_dir(follow_symlinks=False)
        subtrees = folder.subtrees
        if subtrees is not None:
            if path in subtrees.paths:
                subtrees = None
            elif not is_folder or path not in subtrees.ancestors:
                continue
        excluded = _is_excluded(path, name, is_folder, ignore_rules, exclude_rules)
        if excluded or (is_folder and path in skip_folders):
            continue
        if excluded is None and _is_ignored_by_default(path, name, is_folder, names, scope, tree):
            continue
        if is_folder:
            if folder.depth + 1 >= MAX_DEPTH:
                tree.skipped[path_to_text(path)] = f"nested deeper than {MAX_DEPTH} folders"
                continue
            yield _Folder(
                path,
                folder.depth + 1,
                ignore_rules,
                exclude_rules,
                max_bytes,
                subtrees,
                wanted=excluded is False,
            )
            continue
        if included and not included.decide(path[prefix_length:], name, is_folder=False):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError as error:
            _skip_unreadable(tree, path, error)
            continue
        _add_entry(tree, path, status, max_bytes)


def _rules_inside(
    folder: _Folder, names: set[str], scope: Scope, tree: WalkResult
) -> tuple[tuple[_FolderRules, ...], tuple[_FolderRules, ...], int]:
    """The ignore rules, exclude rules and size limit inside a folder, with those of its own files."""
    ignore_rules, exclude_rules, max_bytes = folder.ignore_rules, folder.exclude_rules, folder.max_bytes
    prefix_length = len(folder.path.rstrip(os.sep)) + 1
    if scope.ignore_files and not names.isdisjoint(IGNORE_FILES):
        lines = _read_lines(folder.path, [name for name in IGNORE_FILES if name in names], tree)
        rules = IgnoreRules(lines)
        if rules.dropped:
            tree.skipped[path_to_text(f"{folder.path}{os.sep}.gitignore")] = (
                f"{rules.dropped} of its patterns are not used: too long or too many"
            )
        if rules:
            ignore_rules = (_FolderRules(prefix_length, rules), *ignore_rules)
    if SETTINGS_FILE in names:
        exclude, limit = _read_settings(f"{folder.path}{os.sep}{SETTINGS_FILE}", tree)
        if exclude:
            exclude_rules = (*exclude_rules, _FolderRules(prefix_length, IgnoreRules(exclude)))
        max_bytes = min(max_bytes, limit)
    return ignore_rules, exclude_rules, max_bytes


def _is_excluded(
    path: str,
    name: str,
    is_folder: bool,
    ignore_rules: Sequence[_FolderRules],
    exclude_rules: Sequence[_FolderRules],
) -> bool | None:
    """True to exclude the path, False if an ignore file includes it again, None if no rule matches."""
    if any(rules.decide(path[start:], name, is_folder=is_folder) for start, rules in exclude_rules):
        return True
    for start, rules in ignore_rules:
        decided = rules.decide(path[start:], name, is_folder=is_folder)
        if decided is not None:
            return decided
    return None


def _is_ignored_by_default(
    path: str, name: str, is_folder: bool, siblings: set[str], scope: Scope, tree: WalkResult
) -> bool:
    reason = reason_to_ignore(name, siblings, is_folder=is_folder) if scope.default_ignores else None
    if reason is not None:
        tree.ignored[path_to_text(path)] = reason
    return reason is not None


def _add_entry(tree: WalkResult, os_path: str, status: os.stat_result, max_bytes: int) -> None:
    path = path_to_text(os_path)
    mode = status.st_mode
    if not stat.S_ISREG(mode):
        tree.skipped[path] = f"{_describe_type(mode)}, not a file"
    elif status.st_size > max_bytes:
        tree.skipped[path] = f"{status.st_size:,} bytes; the limit is {max_bytes:,}"
    elif path in tree.files and tree.files[path].os_path != os_path:
        tree.skipped[path] = "another file has the same path as text"
    else:
        tree.files[path] = FileEntry(
            os_path, path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & _MAX_INT64
        )


def _describe_type(mode: int) -> str:
    for test, kind in (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISDIR, "a folder"),
    ):
        if test(mode):
            return kind
    return "a device"


def _skip_unreadable(tree: WalkResult, os_path: str, error: OSError) -> None:
    path = path_to_text(os_path)
    tree.skipped[path] = f"cannot be accessed: {error.strerror}"
    tree.unreadable_folders.append(path)


def _rules_above(root: str) -> Iterator[_FolderRules]:
    """The rules of ignore files above a folder, up to the top of its git repository, the deepest first.

    An ignore file that ignores the folder itself is left out: whoever names the folder wants what is in it.
    """
    above = Path(root).parents
    if os.path.lexists(f"{root}{os.sep}.git"):
        return
    top = next((index for index, folder in enumerate(above) if (folder / ".git").exists()), None)
    if top is None:
        return
    for folder in above[: top + 1]:
        names = [name for name in IGNORE_FILES if (folder / name).is_file()]
        rules = IgnoreRules(_read_lines(str(folder), names, None))
        if rules and not _ignores(rules, Path(root).relative_to(folder)):
            yield _FolderRules(len(str(folder).rstrip(os.sep)) + 1, rules)


def _ignores(rules: IgnoreRules, folder: Path) -> bool:
    """Whether rules ignore a folder, or one that it is in; its path is relative to that of the rules."""
    steps = (folder, *folder.parents[:-1])
    return any(rules.decide(str(step), step.name, is_folder=True) for step in steps)


def _read_lines(folder: str, names: Sequence[str], tree: WalkResult | None) -> Iterator[str]:
    for name in names:
        data = _read_small_file(f"{folder}{os.sep}{name}", tree)
        yield from data.decode("utf-8-sig", "surrogateescape").split("\n")


def _read_settings(path: str, tree: WalkResult) -> tuple[list[str], int]:
    """The settings that a sennit.toml inside an indexed folder may have: patterns to exclude, and a size limit."""
    exclude: list[str] = []
    limit = _MAX_INT64
    try:
        table = tomllib.loads(_read_small_file(path, tree).decode())
    except (ValueError, RecursionError) as error:
        tree.skipped[path_to_text(path)] = f"not used, because it is not valid TOML: {str(error)[:200]}"
        return exclude, limit
    section = table.get("ingest")
    if isinstance(section, dict):
        patterns, size = section.get("exclude"), section.get("max_bytes")
        if isinstance(patterns, list):
            exclude = [p for p in patterns if isinstance(p, str) and not p.startswith("!")]
        if type(size) is int and size >= 0:
            limit = size
    return exclude, limit


def _read_small_file(path: str, tree: WalkResult | None) -> bytes:
    """Read an ignore file or a settings file; if that fails, report it and return no bytes."""
    try:
        return read_regular_file(path, MAX_RULES_BYTES).data
    except UnreadableFile as error:
        if tree is not None:
            tree.skipped[path_to_text(path)] = f"not used: {error}"
        return b""
