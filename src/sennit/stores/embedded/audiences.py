"""The keyword index as an audience sees it: hidden records count as deleted, in scores and in statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from sennit.filters import EVERYTHING, Filter
from sennit.stores.embedded.bm25 import CorpusStatistics, collect_statistics
from sennit.stores.embedded.segment_reader import SegmentReader
from sennit.stores.embedded.selection import FilterBitmap, select_positions

KeywordState: TypeAlias = tuple[Sequence[SegmentReader], CorpusStatistics]

MAX_CACHED_VIEWS: Final = 64
"""Audiences whose views are cached until the next change."""


class AudienceViews:
    """The views of one store's keyword index, by audience."""

    def __init__(self) -> None:
        self._views: dict[Filter, tuple[Sequence[SegmentReader], Filter, KeywordState]] = {}

    def view_for(
        self, audience: Filter, whole: KeywordState, bitmap: Callable[[], FilterBitmap]
    ) -> tuple[Filter, KeywordState]:
        """The audience and its view; the audience becomes EVERYTHING when no record is hidden from it."""
        if audience == EVERYTHING:
            return audience, whole
        known = self._views.get(audience)
        if known is None or known[0] is not whole[0]:
            readers = _hide_records(whole[0], bitmap())
            view = whole if readers is whole[0] else (readers, collect_statistics(readers))
            known = (whole[0], EVERYTHING if view is whole else audience, view)
            if len(self._views) >= MAX_CACHED_VIEWS:
                self._views.clear()
            self._views[audience] = known
        return known[1], known[2]


def _hide_records(readers: Sequence[SegmentReader], bitmap: FilterBitmap) -> Sequence[SegmentReader]:
    """Readers for which the records outside the bitmap are deleted; the same sequence when none is hidden."""
    out = []
    changed = False
    for reader in readers:
        selection = select_positions(reader.rows, reader.live, bitmap)
        assert selection is not None
        live = selection.mask
        hides = not live.all() if reader.live is None else not np.array_equal(live, reader.live)
        out.append(replace(reader, live=live) if hides else reader)
        changed |= hides
    return out if changed else readers
