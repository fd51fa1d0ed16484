"""Units: the parts of a file that citations count where it has no lines, such as the cells of a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_FRAGMENT: Final = re.compile(r"(.+)#([a-z]{1,20})=([0-9]{1,15})(?:-([0-9]{1,15}))?", re.DOTALL)


class Fragment(NamedTuple):
    """What a citation such as `tides.ipynb#cell=3-5` names in a file."""

    unit: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.unit}={self.first}" + (f"-{self.last}" if self.last != self.first else "")


class Units(NamedTuple):
    """The units of a file in their order, each with its number, counted from 1. An empty one may be missing."""

    name: str
    """What is counted, such as `cell`."""
    texts: Iterable[tuple[int, str]]


def parse_fragment(text: str) -> tuple[str, Fragment] | None:
    """Return path and fragment of a citation such as `a.ipynb#cell=3`; None for any other text."""
    found = _FRAGMENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    path, unit, first, last = found.groups()
    fragment = Fragment(unit, int(first), int(last or first))
    return (path, fragment) if 1 <= fragment.first <= fragment.last else None
