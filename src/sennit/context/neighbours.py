"""The parts of a whole around a part that was found."""

from __future__ import annotations

from sennit.records import Record
from sennit.stores.embedded.snapshot import Snapshot


def around(snapshot: Snapshot, record: Record, reach: int) -> tuple[Record, ...]:
    """A part with up to `reach` parts on either side, in order; empty for what is no part of a whole.

    What may not be seen is not there: it leaves no gap that could be told from the edge of the whole.
    """
    if record.parent is None or record.position is None or reach < 1:
        return ()
    first, last = max(0, record.position - reach), record.position + reach
    return tuple(snapshot.siblings(record, first, last))
