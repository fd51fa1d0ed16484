"""Every naughty string through every field, filter and identifier of a binding. Many go into one request, to save time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np

import sennit
from sennit.analysis import query_terms
from sennit.errors import SennitError
from sennit.filters import EVERYTHING, Equal, Exists, Filter, In, Or, Scalar, flatten
from sennit.graph.names import name_hash
from sennit.records import MAX_ID_BYTES, Record
from sennit.stores.contract import BM25, Keys, KeywordQuery, Snapshot
from sennit.stores.scanned_graph import ScannedGraph

RARE: Final = "quixotry"
"""A word of every record, so that a search finds all that match a filter."""

AT_ONCE: Final = 60
"""Values or conditions in one filter."""

FIELDS: Final = ("title", "kind", "path", "url", "parent", "collection", "scope", "sensitivity")
FILTERED: Final = (*FIELDS, "id", "tenant", "value", "list")


class Case(NamedTuple):
    """A filter, and the full ids of the records that it matches."""

    where: Filter
    expected: set[str]


def naughty_records(strings: Sequence[str]) -> list[Record]:
    """For each string: a record that has it in every field that takes it, one with it as id, and one as tenant."""
    records: dict[str, Record] = {}
    for at, string in enumerate(strings):
        text = f"{RARE} {string}"
        values: dict[str, Any] = {"id": f"all-{at}", "text": text}
        for name in FIELDS:
            with contextlib.suppress(SennitError):
                Record(**{**values, name: string})
                values[name] = string
        metadata: dict[str, Any] = {"value": string, "list": [string]}
        if 0 < len(string.encode()) <= MAX_ID_BYTES:
            metadata |= {string: "there", "in": {string: string}}
        made = [Record(**values, metadata=metadata)]
        for name, tenant in ((string, ""), (f"tenant-{at}", string)):
            with contextlib.suppress(SennitError):
                made.append(Record(id=name, text=text, tenant=tenant))
        records |= {record.full_id: record for record in made}
    return list(records.values())


def naughty_filters(records: Sequence[Record], keys_one_in: int) -> Iterator[Case]:
    """Filters with every value of every field, and with every key of the metadata or one in some."""
    holding: dict[str, dict[Scalar, set[str]]] = {}
    for record in records:
        for name, value in flatten(record):
            holding.setdefault(name, {}).setdefault(value, set()).add(record.full_id)
    for name in FILTERED:
        for values in _batches(list(holding[name])):
            yield Case(In(name, tuple(values)), set().union(*(holding[name][one] for one in values)))
    keys = [name for name in holding if name not in FILTERED][::keys_one_in]
    for names in _batches(keys):
        conditions = tuple(Equal(name, value) for name in names for value in holding[name])
        having = set().union(*(ids for name in names for ids in holding[name].values()))
        yield Case(Or(conditions), having)
        yield Case(Or(tuple(map(Exists, names))), having)


def assert_survives(db: sennit.Database, strings: Sequence[str], *roles: str, keys_one_in: int = 1) -> None:
    """Store every string everywhere; each of the roles then finds by each string exactly what has it.

    `keys_one_in` is for a server on which each key of the metadata that a filter names costs time.
    """
    records = naughty_records(strings)
    for name in FILTERED:
        values = {value for record in records for field, value in flatten(record) if field == name}
        assert len(values.intersection(strings)) > len(strings) * 9 // 10, name
    db.add(records)
    db.admin.flush()
    cases = list(naughty_filters(records, keys_one_in))
    with db.store.snapshot() as snapshot:
        stored = snapshot.records(snapshot.keys(EVERYTHING).tolist())
        assert {one.full_id: one for one in stored.values()} == {one.full_id: one for one in records}
        for role in roles:
            index = getattr(db.backend, role)
            assert index.applied(snapshot) == snapshot.seq, role
            query = _query(db, snapshot, role, RARE)
            found = index.search(snapshot, query, len(records) + 1)
            indexed = _indexed(snapshot, role)
            assert _ids(snapshot, found.keys) == indexed
            for where, expected in cases:
                found = index.search(snapshot, query, len(expected) + 1, where)
                assert _ids(snapshot, found.keys) == expected & indexed, (role, where)
            for string in strings if role == "keyword" else ():
                # Of a query for vectors, no server gets the text.
                asked = _query(db, snapshot, role, string)
                assert len(index.search(snapshot, asked, 3).keys) <= 3


def _indexed(snapshot: Snapshot, role: str) -> set[str]:
    """The ids of the records that an index has: a text may begin with so much noise that it has no vector."""
    keys = snapshot.keys(EVERYTHING)
    if role == "vector":
        has_vector = snapshot.vectors(keys).any(axis=1)
        assert np.count_nonzero(~has_vector) <= 1
        keys = keys[has_vector]
    return _ids(snapshot, keys)


def _query(db: sennit.Database, snapshot: Snapshot, role: str, text: str) -> Any:
    if role == "vector":
        return db.embeddings.embed_query(snapshot.model, text)
    return KeywordQuery([(term.hash, float(term.count)) for term in query_terms(text)], BM25(), text)


def _ids(snapshot: Snapshot, keys: Keys) -> set[str]:
    return {name.decode() for name in snapshot.ids(keys)}


def _batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))


def naughty_facts(strings: Sequence[str], tenants_one_in: int) -> list[sennit.Fact]:
    """For each string a fact that has it in every part that takes it; some have it as tenant too."""
    facts = []
    for at, text in enumerate(strings):
        values: dict[str, Any] = {"subject": "Ana", "relation": "knows", "object": "Ana", "id": f"f{at}"}
        parts: tuple[dict[str, Any], ...] = (
            {"subject": f"Ana {text}"},
            {"object": f"Ana {strings[at - 1]}"},
            {"relation": text},
            {"text": text},
            {"metadata": {"note": text}},
            {"metadata": {"note": text, text: "key"}},
            {"id": f"id {text}"},
            {"kind": text},
            {} if at % tenants_one_in else {"tenant": text},
        )
        for part in parts:
            with contextlib.suppress(SennitError):
                sennit.Fact(**values | part)
                values |= part
        facts.append(sennit.Fact(**values))
    return facts


def assert_facts_survive(db: sennit.Database, strings: Sequence[str], tenants_one_in: int) -> None:
    """Store facts with every string; the graph then follows exactly the facts that a scan of the records finds."""
    facts = naughty_facts(strings, tenants_one_in)
    ends = ((name_hash(fact.subject), name_hash(fact.object)) for fact in facts)
    # A name of too many words is none, and a fact with such a name is no edge.
    names = list({name for pair in ends if None not in pair for name in pair if name is not None})
    assert len(names) > len(strings) // 2
    db.add_facts(facts)
    db.admin.flush()
    with db.store.snapshot() as snapshot:
        assert db.backend.graph.applied(snapshot) == snapshot.seq
        now = datetime.now(UTC)
        views = db.backend.graph.view(snapshot), ScannedGraph().view(snapshot)
        for batch in _batches(names):
            ours, theirs = (view.edges(batch, 5, now, EVERYTHING) for view in views)
            assert ours == theirs
            assert all(ours)
