"""The contract between the engine and its stores: four roles, and the values that they exchange.

`records` is the source of truth: transactions, consistent snapshots and a feed of changes. `keyword`, `vector` and
`graph` are indexes that are derived from the feed. A `Backend` binds the four.

Every change has a number from one counter. A record is identified by its key, which is the number of the change that
wrote it: an update is a new key, and no key is used twice. These rules hold for every backend:

- Scores: higher is better. A BM25 score is at least 0; a cosine lies from -1 to 1. An index that cannot promise one of
  these scales returns scores that only their order has a meaning (`Capabilities.scores`). No score that `search`
  returns is nan. In `scores`, nan means that the index has no score for a key, and 0 that the record does not match.
- Order: best first. Equal scores are ordered by id, as UTF-8. No key appears twice.
- Limit: `search` returns fewer keys than its limit only when no other record matches. A filter is applied before the
  limit, never after it.
- Visibility: every answer is of the snapshot that it was asked with. A record that was deleted or replaced before it, or
  written after it, or that its audience may not see, never returns, and has no influence on a score that is promised
  per audience.
- Freshness: a write that was confirmed before a snapshot began is found with it. What an index has not applied yet is
  searched in the process (`stores/buffered_index.py`).

Each role has a module; read them in this order: `answers`, `capabilities`, `feed`, `models` and `files` have the values,
`snapshot` and `records` the source of truth, `keyword`, `vector` and `graph` the indexes, `servers` an index elsewhere,
and `backend` all of them together. Other packages import the names from here.
"""

from sennit.stores.contract.answers import Floats, Keys, Mask, MatchedKeys, PartialKeys, ScoredKeys
from sennit.stores.contract.backend import Backend, Cancelled, Check, CheckProgress, TableCopy, Upkeep
from sennit.stores.contract.capabilities import FILTER_OPERATORS, Capabilities
from sennit.stores.contract.feed import Change, Changes
from sennit.stores.contract.files import FileManifest, FileRow
from sennit.stores.contract.graph import GraphRole, GraphView, LabelledText
from sennit.stores.contract.keyword import BM25, BufferStatistics, KeywordQuery, KeywordRole
from sennit.stores.contract.models import (
    NO_VECTORS,
    Embed,
    Model,
    ModelProgress,
    Models,
    NewVectors,
    UnusedVectors,
)
from sennit.stores.contract.records import RecordsRole, State, Transaction, WritableState, WriteResult
from sennit.stores.contract.servers import (
    Document,
    IndexOf,
    IndexServer,
    ServerAnswer,
    ServerIndex,
    ServerSearch,
    SteppedIndex,
    Steps,
)
from sennit.stores.contract.snapshot import Snapshot
from sennit.stores.contract.vector import VectorRole

__all__ = [
    "BM25",
    "FILTER_OPERATORS",
    "NO_VECTORS",
    "Backend",
    "BufferStatistics",
    "Cancelled",
    "Capabilities",
    "Change",
    "Changes",
    "Check",
    "CheckProgress",
    "Document",
    "Embed",
    "FileManifest",
    "FileRow",
    "Floats",
    "GraphRole",
    "GraphView",
    "IndexOf",
    "IndexServer",
    "Keys",
    "KeywordQuery",
    "KeywordRole",
    "LabelledText",
    "Mask",
    "MatchedKeys",
    "Model",
    "ModelProgress",
    "Models",
    "NewVectors",
    "PartialKeys",
    "RecordsRole",
    "ScoredKeys",
    "ServerAnswer",
    "ServerIndex",
    "ServerSearch",
    "Snapshot",
    "State",
    "SteppedIndex",
    "Steps",
    "TableCopy",
    "Transaction",
    "UnusedVectors",
    "Upkeep",
    "VectorRole",
    "WritableState",
    "WriteResult",
]
