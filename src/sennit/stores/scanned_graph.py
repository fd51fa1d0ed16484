"""Names and facts by a scan of the records: the graph role of a backend that has no index for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from sennit.filters import EVERYTHING, Filter
from sennit.graph.entity_linking import NameMatches
from sennit.graph.names import DECLARED, MAX_TEXT_CHARACTERS, Hashes, as_signed, record_names, words_of
from sennit.graph.traversal import Edge
from sennit.stores.contract import Keys, LabelledText, Mask, Snapshot
from sennit.stores.graph_rows import EdgeRow, edge_rows, microseconds
from sennit.stores.scanned_reads import ScannedIndex


class ScannedGraph(ScannedIndex):
    """The graph role: names and facts, derived from all visible records at every question."""

    def view(self, snapshot: Snapshot) -> ScannedGraphView:
        return ScannedGraphView(snapshot)


class ScannedGraphView:
    """The names and facts of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._records = snapshot.records(snapshot.keys(EVERYTHING).tolist())
        self._names = {key: dict(record_names(record)) for key, record in self._records.items()}
        self._edges: list[EdgeRow] = [
            edge for key, record in self._records.items() for edge in edge_rows(key, record)
        ]
        self.has_names = any(self._names.values())
        self.has_facts = bool(self._edges)

    def entities_named(self, names: Hashes, where: Filter = EVERYTHING) -> NameMatches:
        found = [
            (which, key, own[name])
            for which, name in enumerate(as_signed(names).tolist())
            for key, own in sorted(self._names.items())
            if name in own and self._snapshot.matches(key, where)
        ]
        columns = np.array(found, np.int64).reshape(-1, 3).T
        return NameMatches(columns[0].astype(np.intp), columns[1], columns[2].astype(np.uint8))

    def labelled_texts(self, rows: list[int]) -> dict[int, LabelledText]:
        found = {row: self._records[row] for row in rows}
        texts = {row: words_of(one.text[:MAX_TEXT_CHARACTERS]) for row, one in found.items()}
        return {row: LabelledText(one.title or one.id, texts[row]) for row, one in found.items()}

    def synonyms(self, names: Keys, where: Filter) -> dict[int, list[int]]:
        out: dict[int, list[int]] = {}
        found = self.entities_named(names.view(np.uint64), where)
        for which, row, flags in zip(*(column.tolist() for column in found), strict=True):
            if flags & DECLARED:
                known = out.setdefault(int(names[which]), [])
                known += [name for name in sorted(self._names[row]) if name not in known]
        return out

    def known_endpoints(self, names: Keys) -> Mask:
        return np.isin(names, np.array([edge[0] for edge in self._edges], np.int64))

    def edges(
        self, names: Sequence[int], count: int, at: datetime, where: Filter, *, history: bool = False
    ) -> list[list[Edge]]:
        now = microseconds(at)
        valid = [
            (edge[0], Edge(-edge[3], -edge[2], edge[4]))
            for edge in self._edges
            if edge[1] > now
            and not (history and edge[5] is not None and edge[5] > now)
            and self._snapshot.matches(-edge[3], where)
        ]
        own = ([edge for endpoint, edge in valid if endpoint == name] for name in names)
        return [sorted(edges, key=lambda edge: (-edge.weight, -edge.row))[:count] for edges in own]
