"""Units: the parts of a file that citations count where it has no lines, such as the cells of a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Units(NamedTuple):
    """The units of a file in their order, each with its number, counted from 1. An empty one may be missing."""

    name: str
    """What is counted, such as `cell`."""
    texts: Iterable[tuple[int, str]]
