"""What a page is called and where it is on the web: its front matter says, else its headings, else its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from sennit.records import Json

_INDEX: Final = frozenset({"index", "readme", "_index"})
"""Files that stand for their folder."""

_SEPARATORS: Final = re.compile(r"[-_\s]+")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ORDER: Final = re.compile(r"\d+[-_.]+(?=\D)")


def name_from_path(path: str) -> str:
    """`docs/getting-started.md` is called "Getting started"; an index is called like its folder."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts:
        return "Untitled"
    stem = _stem(parts[-1])
    if stem.lower() in _INDEX and len(parts) > 1:
        stem = parts[-2]
    words = _SEPARATORS.sub(" ", _ORDER.sub("", stem)).strip() or stem
    return words[:1].upper() + words[1:]


def page_url(path: str, front: Mapping[str, Json], urls: Mapping[str, str]) -> str | None:
    """The address of a page.

    `url`, `permalink` or `slug` of its front matter; else its path without the extension, under the address of the
    longest prefix in `urls`, or from the root of the site. A path of the machine that no prefix knows has none.
    """
    path = path.replace("\\", "/").removeprefix("./")
    base, rest = _under(path, urls)
    for name in ("url", "permalink", "slug"):
        value = front.get(name)
        if isinstance(value, str) and value.strip():
            return _joined(value.strip(), base, rest)
    if base is None:
        return None
    return _tidy(base, quote(_place(rest)))


def _under(path: str, urls: Mapping[str, str]) -> tuple[str | None, str]:
    """The address that a path is under, and the rest of the path."""
    known = [prefix for prefix in urls if _begins(path, prefix)]
    if known:
        prefix = max(known, key=len)
        return urls[prefix], path[len(prefix.rstrip("/")) :].lstrip("/") if prefix.strip(
            "/"
        ) else path.lstrip("/")
    absolute = path.startswith("/") or _SCHEME.match(path) is not None or path.startswith("../")
    return (None, path) if absolute else ("/", path)


def _begins(path: str, prefix: str) -> bool:
    stem = prefix.rstrip("/")
    return path == stem or path.startswith(f"{stem}/") or not stem


def _joined(value: str, base: str | None, rest: str) -> str:
    """An address of the front matter: whole, from the root of the site, or beside the page's own place."""
    if _SCHEME.match(value) or value.startswith("//"):
        return value
    if value.startswith("/"):
        site = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*", base or "")
        return f"{site[0] if site else ''}{value}"
    folder = rest.rpartition("/")[0]
    return _tidy(base or "/", f"{quote(folder)}/{value}" if folder else value)


def _place(rest: str) -> str:
    """A path as site builders publish it: no extension, and an index is its folder."""
    folder, slash, name = rest.rpartition("/")
    stem = _stem(name)
    return folder if stem.lower() in _INDEX else f"{folder}{slash}{stem}"


def _tidy(base: str, rest: str) -> str:
    return f"{base.rstrip('/')}/{rest}".rstrip("/") or "/"


def _stem(name: str) -> str:
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name
