"""What is ignored without being asked: files and folders that a program writes and nobody reads.

An ignore file can include such a name again (`!dist/`), a path that is named is always indexed, and
`Scope(default_ignores=False)` turns all of it off.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Final

VIRTUAL_ENVIRONMENT: Final = "virtual environment"
CACHE: Final = "cache"
INSTALLED: Final = "installed packages"
OUTPUT: Final = "build output"
LOCK_FILE: Final = "lock file"
GENERATED: Final = "generated file"

_FOLDERS: Final = {
    **dict.fromkeys(("__pycache__", "__pypackages__", ".cache", ".eggs", ".gradle", ".hypothesis", ".ipynb_checkpoints",
                     ".mypy_cache", ".nox", ".parcel-cache", ".pytest_cache", ".ruff_cache", ".sass-cache", ".terraform",
                     ".tox", ".turbo"), CACHE),
    **dict.fromkeys(("node_modules", "bower_components", "jspm_packages"), INSTALLED),
    **dict.fromkeys((".next", ".nuxt", ".svelte-kit", ".output", "htmlcov"), OUTPUT),
    **dict.fromkeys((".hg", ".svn", ".bzr", "CVS"), "version control"),
    ".sennit": "a sennit database",
}  # fmt: skip

_PYTHON: Final = frozenset({"pyproject.toml", "setup.py", "setup.cfg"})
_JAVASCRIPT: Final = frozenset({"package.json"})
_JAVA: Final = frozenset({"build.gradle", "build.gradle.kts", "pom.xml", "build.sbt"})
_OUTPUT_BESIDE: Final = {
    "dist": _PYTHON | _JAVASCRIPT,
    "build": _PYTHON | _JAVASCRIPT | _JAVA | {"CMakeLists.txt", "pubspec.yaml", "meson.build"},
    "target": _JAVA | {"Cargo.toml"},
    "_build": frozenset({"conf.py", "mix.exs", "dune-project", "Makefile"}),
    "obj": frozenset({"Directory.Build.props"}),
}
"""Folders that are output only beside a file that says how it is built: a folder `build` may also hold sources."""

_FILES: Final = {
    **dict.fromkeys(("bun.lock", "bun.lockb", "Cargo.lock", "composer.lock", "deno.lock", "flake.lock", "Gemfile.lock",
                     "go.sum", "gradle.lockfile", "mix.lock", "npm-shrinkwrap.json", "package-lock.json",
                     "packages.lock.json", "pdm.lock", "Pipfile.lock", "pixi.lock", "pnpm-lock.yaml", "Podfile.lock",
                     "poetry.lock", "pubspec.lock", "uv.lock", "yarn.lock", ".terraform.lock.hcl"), LOCK_FILE),
    **dict.fromkeys((".DS_Store", "Thumbs.db", "desktop.ini", ".coverage"), GENERATED),
}  # fmt: skip

_GENERATED: Final = re.compile(r".\.(?:min\.(?:js|mjs|cjs|css)|(?:js|mjs|cjs|css)\.map|py[co]|class)\Z")

_MARKS: Final = {
    "pyvenv.cfg": VIRTUAL_ENVIRONMENT,
    "conda-meta": VIRTUAL_ENVIRONMENT,
    "CACHEDIR.TAG": CACHE,
}
"""Names inside a folder that say what it is, whatever it is called."""


def reason_to_ignore(name: str, siblings: AbstractSet[str], *, is_folder: bool) -> str | None:
    """Return why a file or folder with this name, beside these others, is ignored; None if it is not."""
    if not is_folder:
        return _FILES.get(name) or (GENERATED if _GENERATED.search(name) else None)
    if name in _FOLDERS:
        return _FOLDERS[name]
    if name in _OUTPUT_BESIDE and not _OUTPUT_BESIDE[name].isdisjoint(siblings):
        return OUTPUT
    return OUTPUT if name.endswith(".egg-info") else None


def reason_to_leave(names: AbstractSet[str]) -> str | None:
    """Return why a folder that contains these names is ignored; None if it is not."""
    return next((reason for mark, reason in _MARKS.items() if mark in names), None)
