"""The files of the web page, which are part of the package, and the headers that confine what a page may do."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import Final

CONTENT_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text can become markup or code, not even by a mistake of ours.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""The page loads only its own files, calls only its own service, and runs no inline script or style."""

PAGE_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": SECURITY_POLICY,
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class Asset:
    """A file of the page."""

    body: bytes
    content_type: str

    @cached_property
    def compressed(self) -> bytes:
        """The file, compressed with gzip, always to the same bytes."""
        return gzip.compress(self.body, mtime=0)


def _load_assets() -> Mapping[str, Asset]:
    folder = files("sennit.apps") / "web"
    found = {
        file.name: Asset(file.read_bytes(), CONTENT_TYPES[suffix])
        for file in folder.iterdir()
        if (suffix := "." + file.name.rpartition(".")[2]) in CONTENT_TYPES
    }
    pages = {"/": "index.html", "/docs": "docs.html"}
    return MappingProxyType(
        {path: found.pop(name) for path, name in pages.items()}
        | {f"/web/{name}": asset for name, asset in sorted(found.items())}
    )


ASSETS: Final = _load_assets()
"""Every file of the page by its path on the service. They need no token: they hold nothing of the database."""
