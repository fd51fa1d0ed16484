"""The name and the URL of a page, from its path and its front matter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from sennit.records import Json

_INDEX_NAMES: Final = frozenset({"index", "readme", "_index"})
"""Files that represent their folder."""

_SEPARATORS: Final = re.compile(r"[-_\s]+")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ORDER_PREFIX: Final = re.compile(r"\d+[-_.]+(?=\D)")


def name_from_path(path: str) -> str:
    """Return the name of a page: "Getting started" for `docs/getting-started.md`, the folder's name for an index."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts:
        return "Untitled"
    stem = _stem(parts[-1])
    if stem.lower() in _INDEX_NAMES and len(parts) > 1:
        stem = parts[-2]
    words = _SEPARATORS.sub(" ", _ORDER_PREFIX.sub("", stem)).strip() or stem
    return words[:1].upper() + words[1:]


def page_url(path: str, front_matter: Mapping[str, Json], urls: Mapping[str, str]) -> str | None:
    """Return the URL of a page.

    It is the `url`, `permalink` or `slug` of the front matter. Otherwise it is the path without its extension, below
    the URL of the longest matching prefix in `urls`, or below the root of the site. An absolute path without a
    matching prefix has no URL.
    """
    path = path.replace("\\", "/").removeprefix("./")
    base, rest = _split_base(path, urls)
    for name in ("url", "permalink", "slug"):
        value = front_matter.get(name)
        if isinstance(value, str) and value.strip():
            return _resolve(value.strip(), base, rest)
    if base is None:
        return None
    return _join_url(base, quote(_published_path(rest)))


def _split_base(path: str, urls: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the base URL of a path, and the rest of the path."""
    known = [prefix for prefix in urls if _has_prefix(path, prefix)]
    if known:
        prefix = max(known, key=len)
        return urls[prefix], path[len(prefix.rstrip("/")) :].lstrip("/") if prefix.strip(
            "/"
        ) else path.lstrip("/")
    absolute = path.startswith("/") or _SCHEME.match(path) is not None or path.startswith("../")
    return (None, path) if absolute else ("/", path)


def _has_prefix(path: str, prefix: str) -> bool:
    stem = prefix.rstrip("/")
    return path == stem or path.startswith(f"{stem}/") or not stem


def _resolve(value: str, base: str | None, rest: str) -> str:
    """Resolve a URL of the front matter: absolute, relative to the root of the site, or relative to the page."""
    if _SCHEME.match(value) or value.startswith("//"):
        return value
    if value.startswith("/"):
        site = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*", base or "")
        return f"{site[0] if site else ''}{value}"
    folder = rest.rpartition("/")[0]
    return _join_url(base or "/", f"{quote(folder)}/{value}" if folder else value)


def _published_path(rest: str) -> str:
    """Return a path as site generators publish it: without extension, and an index as its folder."""
    folder, slash, name = rest.rpartition("/")
    stem = _stem(name)
    return folder if stem.lower() in _INDEX_NAMES else f"{folder}{slash}{stem}"


def _join_url(base: str, rest: str) -> str:
    return f"{base.rstrip('/')}/{rest}".rstrip("/") or "/"


def _stem(name: str) -> str:
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name
