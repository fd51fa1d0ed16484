"""Merges candidates of different sources that overlap in one file into one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from sennit.places import FOLDER_FIELD, record_place
from sennit.ranking.stages import CandidateList, Floats, Keys, ListStageOutput, StageContext, stage
from sennit.records import Record
from sennit.results import Dropped


class LineRange(NamedTuple):
    """Lines of a file."""

    path: str
    first: int
    last: int

    def overlap(self, other: LineRange) -> int:
        """Return how many lines two ranges of one file have in common."""
        return min(self.last, other.last) - max(self.first, other.first) + 1


@stage
@dataclass(frozen=True, slots=True)
class MergeOverlaps:
    """Gives candidates of different lists that overlap in one file one key, so that they become one result."""

    name: ClassVar[str] = "merge_overlaps"
    runs: ClassVar[Literal["before_fusion"]] = "before_fusion"

    def apply(self, lists: Sequence[CandidateList], context: StageContext) -> ListStageOutput:
        ranges: dict[int, LineRange | None] = {}

        def read_ranges(keys: Keys) -> list[LineRange | None]:
            records = context.records(keys.tolist())
            ranges.update((key, _line_range(records.get(key))) for key in keys.tolist())
            return [ranges[key] for key in keys.tolist()]

        merged, merged_into = merge_overlaps([(one.keys, one.scores) for one in lists], read_ranges)
        out = [
            one._replace(keys=keys, scores=scores) for one, (keys, scores) in zip(lists, merged, strict=True)
        ]
        dropped = self._explain(out, merged_into, ranges, context) if context.explain else {}
        return ListStageOutput(out, dropped, merged_into=merged_into)

    def _explain(
        self,
        lists: Sequence[CandidateList],
        merged_into: Mapping[int, int],
        ranges: Mapping[int, LineRange | None],
        context: StageContext,
    ) -> dict[int, Dropped]:
        """Return what no list has any more, with the number of lines that it shares with the winner."""
        # A record that one list merged may still stand for itself in another.
        remaining = {key for one in lists for key in one.keys.tolist()}
        lost = [(key, winner) for key, winner in merged_into.items() if key not in remaining]
        if not lost:
            return {}
        winners = context.ids(np.array([winner for _, winner in lost], np.int64))
        dropped = {}
        for (key, winner), winner_id in zip(lost, winners, strict=True):
            lines, other = ranges[key], ranges[winner]
            shared = lines.overlap(other) if lines is not None and other is not None else 0
            reason = f"it overlaps {winner_id}, which is shown for both"
            dropped[key] = Dropped(self.name, reason, float(shared), 0.0, winner)
        return dropped


def _line_range(record: Record | None) -> LineRange | None:
    if record is None or record.path is None or record.lines is None:
        return None
    place = record_place(record.metadata.get(FOLDER_FIELD), record.path)
    return LineRange(place or record.path, *record.lines)


def merge_overlaps(
    lists: Sequence[tuple[Keys, Floats]], read_ranges: Callable[[Keys], Sequence[LineRange | None]]
) -> tuple[list[tuple[Keys, Floats]], dict[int, int]]:
    """Return the lists with overlapping candidates under one key, and which key was merged into which.

    A candidate takes the key of the candidate of an earlier list that it shares most lines with. Candidates of
    one list are never merged with each other: overlapping chunks would chain a whole file together.
    """
    heads: dict[str, list[tuple[LineRange, int]]] = defaultdict(list)
    out: list[tuple[Keys, Floats]] = []
    merged_into: dict[int, int] = {}
    for keys, scores in lists:
        ranges = read_ranges(keys)
        merged: dict[int, float] = {}
        unmerged: list[tuple[LineRange, int]] = []
        for key, score, lines in zip(keys.tolist(), scores.tolist(), ranges, strict=True):
            head = key if lines is None else _best_overlap(heads[lines.path], lines, key)
            if head != key:
                merged_into[key] = head
            elif lines is not None:
                unmerged.append((lines, key))
            # The list is in descending order, so the first of several that become one has the best rank and score.
            merged.setdefault(head, score)
        for lines, key in unmerged:
            heads[lines.path].append((lines, key))
        out.append((np.fromiter(merged, np.int64, len(merged)), np.fromiter(merged.values(), np.float64)))
    return out, merged_into


def _best_overlap(heads: Sequence[tuple[LineRange, int]], lines: LineRange, key: int) -> int:
    """Return the key of the range with most lines in common; `key` itself if none overlaps."""
    shared, _, head = max(
        ((lines.overlap(other), -other.first, head) for other, head in heads), default=(0, 0, key)
    )
    return head if shared > 0 else key
