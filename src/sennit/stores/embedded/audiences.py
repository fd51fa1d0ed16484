"""The keyword index as an audience sees it: what it may not see counts as removed, in scores and statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from sennit.filters import EVERYTHING, Filter
from sennit.stores.embedded.bm25 import Statistics, statistics
from sennit.stores.embedded.parts import Part
from sennit.stores.embedded.selection import Passing, visible

KeywordState: TypeAlias = tuple[Sequence[Part], Statistics]

KEPT: Final = 64
"""Audiences whose view is kept until the next change."""


class Audiences:
    """The views of one store's keyword index."""

    def __init__(self) -> None:
        self._known: dict[Filter, tuple[Sequence[Part], Filter, KeywordState]] = {}

    def seen(
        self, audience: Filter, whole: KeywordState, mask: Callable[[], Passing]
    ) -> tuple[Filter, KeywordState]:
        """The audience, which is everything where nothing is hidden from it, and its view."""
        if audience == EVERYTHING:
            return audience, whole
        known = self._known.get(audience)
        if known is None or known[0] is not whole[0]:
            parts = _seen(whole[0], mask())
            view = whole if parts is whole[0] else (parts, statistics(parts))
            known = (whole[0], EVERYTHING if view is whole else audience, view)
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[audience] = known
        return known[1], known[2]


def _seen(parts: Sequence[Part], mask: Passing) -> Sequence[Part]:
    """The parts with what the mask hides taken for removed; the same parts when it hides nothing."""
    out = []
    changed = False
    for part in parts:
        seen = visible(part.rows, part.live, mask)
        assert seen is not None
        live = seen.mask
        hides = not live.all() if part.live is None else not np.array_equal(live, part.live)
        out.append(replace(part, live=live) if hides else part)
        changed |= hides
    return out if changed else parts
