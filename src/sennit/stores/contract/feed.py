"""The feed of changes, from which every index is derived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple


class Change(NamedTuple):
    """One change of the feed. Applying it twice does no harm."""

    number: int
    key: int
    action: Literal["put", "delete", "vector"]
    """`put`: the record with this key was written. `delete`: it was removed or replaced. `vector`: it got a vector that
    it did not have when it was written."""


class Changes(NamedTuple):
    """A part of the feed, in order."""

    changes: Sequence[Change]
    through: int
    """Every change up to this number is in this part or an earlier one. A record that was deleted since appears only
    as `delete`."""
