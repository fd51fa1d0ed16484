"""The keyword and the vector index on a Postgres server."""

from __future__ import annotations

import contextlib
import hashlib
import struct
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import psycopg
from numpy.typing import NDArray

from sennit.analysis import ANALYSIS_ID
from sennit.errors import SourceError
from sennit.filters import EVERYTHING, And, Equal, Exists, Filter, Not
from sennit.settings.attached import AttachedMapping
from sennit.settings.servers import PostgresSettings
from sennit.stores.buffered_index import cosine_scores
from sennit.stores.contract import (
    Capabilities,
    Document,
    Floats,
    IndexOf,
    KeywordQuery,
    Model,
    ScoredKeys,
    ServerAnswer,
    ServerSearch,
)
from sennit.stores.findings import Finding
from sennit.stores.servers.postgres.attached import AttachedTable
from sennit.stores.servers.postgres.bm25_tables import EXTENSIONS, Bm25Table, Extension
from sennit.stores.servers.postgres.client import Client, Result
from sennit.stores.servers.postgres.sql_filters import sql_condition
from sennit.stores.servers.postgres.statements import Statement
from sennit.stores.servers.postgres.tables import REGISTRY, IndexTable, missing_extension
from sennit.stores.servers.postgres.text_vectors import (
    LENGTH_NORMALISATION,
    encode_vector,
    field_weights,
    rank,
    signed,
    text_query,
    text_vector,
)

PARTLY: Final = ("patterns that ignore case, of texts outside ASCII", "patterns of texts with U+0000")

VECTOR: Final = "vector"
"""The extension pgvector."""

MIN_SERVER_VERSION: Final = 130000
MIN_VECTOR_VERSION: Final = (0, 8)
"""The first pgvector that goes on with a filtered search until it is full."""

MAX_EF_SEARCH: Final = 1000
"""The most that pgvector takes."""

MAX_INDEXED_DIMENSIONS: Final = 4000
MAX_DIMENSIONS: Final = 16_000
"""Of a half-precision vector: in an HNSW index, and at all."""

BINARY_CANDIDATES: Final = 8
"""With more dimensions the index holds one bit of each, and this many times the limit is compared in full."""

TEXT_INDEX_FROM: Final = 1000
"""With fewer rows, a scan is as fast as the index of the text."""


class _Searchable(Protocol):
    """How an index of this server is searched."""

    def statements(self, query: Any, limit: int, where: Filter, *, exact: bool) -> list[Statement]: ...

    def read(self, result: Result, query: Any) -> ScoredKeys: ...

    def is_full(self, result: Result, limit: int) -> bool: ...

    def repair(self, error: psycopg.Error) -> bool: ...


class PostgresIndexes:
    """The indexes of one database on a Postgres server."""

    def __init__(self, settings: PostgresSettings, database: str, *, url: str) -> None:
        """`database` names the database of the records; `url` is where the indexes are."""
        self._settings = settings
        self._database = database
        self._client = Client(
            url, schema=settings.schema, timeout_seconds=settings.timeout, ef_search=settings.ef_search
        )
        self._reader = Client(
            url, schema=None, timeout_seconds=settings.timeout, ef_search=settings.ef_search
        )
        """Connections that can only read, for the tables of others."""
        self._vectors: dict[str, VectorTable] = {}

    def keyword(self) -> IndexOf[KeywordQuery]:
        """The keyword role. Where the server cannot be asked yet, it promises what every kind of table keeps."""
        index = KeywordIndex(self, self._client, self._settings, self._database)
        is_plain = False
        with contextlib.suppress(SourceError):
            is_plain = isinstance(index.table(), KeywordTable)
        capabilities = Capabilities(
            scores="own",
            statistics="none" if is_plain else "whole",
            lags=True,
            partly=PARTLY,
            waits=True,
        )
        return IndexOf(self, capabilities, lambda _model: index)

    def vector(self) -> IndexOf[NDArray[np.float32]]:
        """The vector role."""
        capabilities = Capabilities(statistics="none", lags=True, partly=PARTLY, waits=True)
        return IndexOf(self, capabilities, self._vector_table)

    def attach(self, mapping: AttachedMapping) -> AttachedTable:
        """A table that somebody else owns and fills."""
        return AttachedTable(self._reader, self._settings, mapping)

    def _vector_table(self, model: Model | None) -> VectorTable | None:
        if model is None:
            return None
        found = self._vectors.get(model.fingerprint)
        if found is None:
            found = VectorTable(self, self._client, self._settings, self._database, model)
            self._vectors = {**self._vectors, model.fingerprint: found}
        return found

    def search_many(self, searches: Sequence[ServerSearch]) -> list[ServerAnswer]:
        """The answers of all searches in one round trip; those that an index cut short in a second one."""
        answers: list[ServerAnswer] = [ScoredKeys.empty()] * len(searches)
        open_ = [at for at, search in enumerate(searches) if not _is_empty(search.query)]
        for exact in (False, True):
            if not open_:
                break
            groups = [self._group(searches[at], exact=exact) for at in open_]
            results = self._client.run_many(groups)
            again = []
            for at, result in zip(open_, results, strict=True):
                index: _Searchable = searches[at].index  # type: ignore[assignment]
                if isinstance(result, psycopg.Error):
                    if not exact and index.repair(result):
                        again.append(at)
                    else:
                        answers[at] = self._client.error(result)
                elif exact or index.is_full(result, searches[at].limit):
                    answers[at] = index.read(result, searches[at].query)
                else:
                    again.append(at)
            open_ = again
        return answers

    def _group(self, search: ServerSearch, *, exact: bool) -> list[Statement]:
        index: _Searchable = search.index  # type: ignore[assignment]
        own = index.statements(search.query, search.limit, search.where, exact=exact)
        return [_fence(search.where), *own] if self._settings.row_security else own

    def check(self) -> list[Finding]:
        """Whether the server answers, and has what the indexes need."""
        statement = Statement(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version'), "
            "current_setting('server_encoding'), "
            "(SELECT extversion FROM pg_extension WHERE extname = 'vector'), "
            "EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector'), "
            f"to_regclass('{self._settings.schema}.{REGISTRY}') IS NOT NULL"
        )
        try:
            row = self._client.run(statement)
            found = [_check_server(self._client.location, row), *_check_vector(self._client.location, row)]
            if row.get_value(0, 5) == b"\x01":
                found += self._check_tables()
            return found
        except SourceError as error:
            return [Finding("postgres", "problem", str(error))]

    def _check_tables(self) -> list[Finding]:
        statement = Statement()
        pattern = statement.add(f"%\\_{_digest(self._database)}%")
        statement.sql = (
            "SELECT index_name, rows::text, to_regclass(quote_ident(table_name)) IS NOT NULL "
            f"FROM {REGISTRY} WHERE table_name LIKE {pattern}::text ORDER BY table_name"
        )
        result = self._client.run(statement)
        out = []
        for row in range(result.ntuples):
            name, rows = (str(result.get_value(row, at) or b"", "utf-8") for at in range(2))
            if result.get_value(row, 2) == b"\x01":
                # How far the table is behind, `engine/checks.py` says for every server alike.
                out.append(Finding("postgres", "ok", f"{name}: {int(rows):,} rows"))
            else:
                out.append(
                    Finding(
                        "postgres", "problem", f"{name}: its table is gone; the next flush builds it again"
                    )
                )
        return out

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._reader.close()


class KeywordIndex:
    """The keyword index: in a table of a BM25 extension, if the database has one, else in one with a tsvector."""

    def __init__(
        self, server: PostgresIndexes, client: Client, settings: PostgresSettings, database: str
    ) -> None:
        # Another analysis has other terms, so it has another table.
        own = hashlib.blake2b(ANALYSIS_ID.encode(), digest_size=4).hexdigest()
        self._table_name = f"keyword_{_digest(database)}_{own}"
        self.name = f"postgres {self._table_name}"
        self.server = server
        self._client = client
        self._settings = settings
        self._table: KeywordTable | Bm25Table | None = None

    def table(self) -> KeywordTable | Bm25Table:
        """The table, which depends on the extensions of the database."""
        if self._table is None:
            extension = self._find_extension()
            if extension is None:
                self._table = KeywordTable(
                    self._client, self._settings, name=self.name, table=self._table_name
                )
            else:
                self._table = Bm25Table(
                    self._client,
                    self._settings,
                    name=self.name,
                    table=f"{self._table_name}_{extension[3:]}",
                    extension=extension,
                )
        return self._table

    def _find_extension(self) -> Extension | None:
        wanted = self._settings.bm25
        if wanted == "none":
            return None
        result = self._client.run(Statement("SELECT extname::text FROM pg_extension"))
        installed = {str(result.get_value(row, 0) or b"", "utf-8") for row in range(result.ntuples)}
        if wanted == "auto":
            return next((one for one in EXTENSIONS if one in installed), None)
        if wanted not in installed:
            raise SourceError(
                f"{self._client.location} has no extension {wanted} (postgres.bm25). Create it, or set auto or none."
            )
        return wanted

    def applied(self) -> int:
        return self.table().applied()

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        self.table().apply(documents, deleted, through)

    def reset(self) -> None:
        self.table().reset()

    def score(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        """The scores of documents in the buffer."""
        return self.table().score(query, documents)

    def statements(self, query: KeywordQuery, limit: int, where: Filter, *, exact: bool) -> list[Statement]:
        return self.table().statements(query, limit, where, exact=exact)

    def read(self, result: Result, query: KeywordQuery) -> ScoredKeys:
        return self.table().read(result, query)

    def is_full(self, result: Result, limit: int) -> bool:
        return self.table().is_full(result, limit)

    def repair(self, error: psycopg.Error) -> bool:
        return self.table().repair(error)


class KeywordTable(IndexTable):
    """Finds records by the terms in a tsvector."""

    searchable_from = TEXT_INDEX_FROM

    def column_definitions(self) -> Sequence[str]:
        return ("terms tsvector NOT NULL", "more_terms bigint[]")

    def column_names(self) -> Sequence[str]:
        return ("terms", "more_terms")

    def column_types(self) -> Sequence[str]:
        return ("bytea", "int8[]")

    def column_values(self, document: Document) -> Sequence[object]:
        vector = text_vector(document.record.title, document.record.text)
        return encode_vector(vector), sorted(map(signed, vector.more)) or None

    def search_indexes(self) -> Sequence[str]:
        table = self.table
        return (
            f"CREATE INDEX {table}_terms ON {table} USING gin (terms)",
            f"CREATE INDEX {table}_more ON {table} USING gin (more_terms) WHERE more_terms IS NOT NULL",
        )

    def statements(
        self,
        query: KeywordQuery,
        limit: int,
        where: Filter,
        *,
        exact: bool,  # noqa: ARG002 - always is
    ) -> list[Statement]:
        settings, statement = self.settings, Statement()
        weights = f"{statement.add(field_weights(query.bm25))}::float4[]"
        any_of = f"{statement.add(text_query(query, '|'))}::tsquery"
        score = (
            f"greatest({settings.rank}({weights}, terms, {any_of}, {LENGTH_NORMALISATION}), 1e-20::float4)"
        )
        if settings.match == "all_first":
            all_of = f"{statement.add(text_query(query, '&'))}::tsquery"
            score = f"({score} + (terms @@ {all_of})::int::float4)"
        more = statement.add([signed(term) for term, _ in query.terms])
        test = f"(terms @@ {any_of} OR more_terms && {more}::bigint[])"
        if where != EVERYTHING:
            test += f" AND {sql_condition(where, statement)}"
        statement.sql = (
            f"SELECT key, {score} AS score FROM {self.table} WHERE {test} "
            f"ORDER BY score DESC, key LIMIT {statement.add(limit)}::bigint"
        )
        return [statement]

    def read(self, result: Result, query: KeywordQuery) -> ScoredKeys:  # noqa: ARG002 - as the vector index
        rows = range(result.ntuples)
        keys = np.frombuffer(b"".join(result.get_value(row, 0) or b"" for row in rows), ">i8")
        scores = np.frombuffer(b"".join(result.get_value(row, 1) or b"" for row in rows), ">f4")
        return ScoredKeys(keys.astype(np.int64), scores.astype(np.float64))

    def is_full(self, result: Result, limit: int) -> bool:  # noqa: ARG002 - as the vector index
        """The search looks at every record with a term."""
        return True

    def score(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        """The rank of documents in the buffer."""
        function, all_first = self.settings.rank, self.settings.match == "all_first"
        return np.array(
            [rank(query, document.record, function, all_first=all_first) for document in documents],
            np.float64,
        )


class VectorTable(IndexTable):
    """Finds records by the cosine of half-precision vectors of one model.

    The server chooses the candidates. Their cosines are computed here, from the stored vectors and the query in single
    precision, so that they are those of every other index.
    """

    extension = VECTOR

    def __init__(
        self,
        server: PostgresIndexes,
        client: Client,
        settings: PostgresSettings,
        database: str,
        model: Model,
    ) -> None:
        own = hashlib.blake2b(model.fingerprint.encode(), digest_size=4).hexdigest()
        table = f"vector_{_digest(database)}_{own}"
        super().__init__(client, settings, name=f"postgres {table}", table=table)
        self.server = server
        self.searchable_from = settings.hnsw_from
        self._model = model
        self._dimensions = model.dimensions

    def column_definitions(self) -> Sequence[str]:
        if self._dimensions > MAX_DIMENSIONS:
            raise SourceError(
                f"the model {self._model.name} has {self._dimensions:,} dimensions, and pgvector holds at most "
                f"{MAX_DIMENSIONS:,}. Use fewer with embedding.dimensions, or another binding of roles.vector."
            )
        return (f"embedding halfvec({self._dimensions}) NOT NULL",)

    def column_names(self) -> Sequence[str]:
        return ("embedding",)

    def column_types(self) -> Sequence[str]:
        return ("bytea",)

    def column_values(self, document: Document) -> Sequence[object] | None:
        return (encode_halves(document.vector),) if document.vector.any() else None

    def search_indexes(self) -> Sequence[str]:
        column, operators = "embedding", "halfvec_cosine_ops"
        if self._dimensions > MAX_INDEXED_DIMENSIONS:
            column, operators = f"({self._bits('embedding')})", "bit_hamming_ops"
        options = f"m = {self.settings.hnsw_m}, ef_construction = {self.settings.hnsw_ef_construction}"
        return (
            f"CREATE INDEX {self._graph} ON {self.table} USING hnsw ({column} {operators}) WITH ({options})",
        )

    @property
    def _graph(self) -> str:
        return f"{self.table}_hnsw"

    def _bits(self, vector: str) -> str:
        return f"binary_quantize({vector})::bit({self._dimensions})"

    def statements(
        self, query: NDArray[np.float32], limit: int, where: Filter, *, exact: bool
    ) -> list[Statement]:
        statement = Statement()
        vector = f"{statement.add(encode_halves(query))}::halfvec({self._dimensions})"
        rows = f"FROM {self.table}"
        if where != EVERYTHING:
            rows += f" WHERE {sql_condition(where, statement)}"
        candidates = limit
        if self._dimensions > MAX_INDEXED_DIMENSIONS and not exact:
            candidates = BINARY_CANDIDATES * limit
            bits = f"ORDER BY {self._bits('embedding')} <~> {self._bits(vector)}"
            rows = f"FROM (SELECT key, embedding {rows} {bits} LIMIT {statement.add(candidates)}::bigint) AS near"
        graph = statement.add(f"{self.settings.schema}.{self._graph}")
        has_graph = f"(SELECT to_regclass({graph}::text) IS NOT NULL)"
        statement.sql = (
            f"SELECT key, embedding, {has_graph} {rows} ORDER BY embedding <=> {vector} "
            f"LIMIT {statement.add(limit)}::bigint"
        )
        if exact:
            return [Statement("SELECT set_config('enable_indexscan', 'off', true)"), statement]
        if candidates > self.settings.ef_search:
            setting = Statement()
            value = setting.add(str(min(candidates, MAX_EF_SEARCH)))
            setting.sql = f"SELECT set_config('hnsw.ef_search', {value}::text, true)"
            return [setting, statement]
        return [statement]

    def is_full(self, result: Result, limit: int) -> bool:
        """Whether there is no more. A search in the graph may end early; then all that the filter admits is compared."""
        return result.ntuples >= limit or (result.ntuples > 0 and result.get_value(0, 2) == b"\x00")

    def read(self, result: Result, query: NDArray[np.float32]) -> ScoredKeys:
        if not result.ntuples:
            return ScoredKeys.empty()
        rows = range(result.ntuples)
        keys = np.frombuffer(b"".join(result.get_value(row, 0) or b"" for row in rows), ">i8")
        encoded = b"".join(result.get_value(row, 1) or b"" for row in rows)
        vectors = np.frombuffer(encoded, ">f2").reshape(len(keys), -1)[:, 2:].astype(np.float32)
        scores = np.einsum("ij,j->i", vectors, query).astype(np.float64)
        best = np.argsort(-scores, kind="stable")
        return ScoredKeys(keys.astype(np.int64)[best], scores[best])

    def score(self, query: NDArray[np.float32], documents: Sequence[Document]) -> Floats:
        """The cosine of documents in the buffer."""
        return cosine_scores(query, documents)


def encode_halves(vector: NDArray[np.float32]) -> bytes:
    """The binary form of a halfvec."""
    return struct.pack(">hh", len(vector), 0) + vector.astype(">f2").tobytes()


def _digest(database: str) -> str:
    return hashlib.blake2b(database.encode(), digest_size=8).hexdigest()


def _is_empty(query: Any) -> bool:
    return isinstance(query, KeywordQuery) and not query.terms


def tenant_of(where: Filter) -> str | None:
    """The one tenant whose records a filter admits, empty for those without; None if it admits several."""
    for part in where.parts if isinstance(where, And) else (where,):
        match part:
            case Equal("tenant", value) if isinstance(value, str):
                return value
            case Not(Exists("tenant")):
                return ""
    return None


def _fence(where: Filter) -> Statement:
    """Tells the server whose rows the transaction may see."""
    tenant = tenant_of(where)
    statement = Statement()
    named, every = statement.add(tenant or ""), statement.add("on" if tenant is None else "off")
    statement.sql = (
        f"SELECT set_config('sennit.tenant', {named}::text, true), "
        f"set_config('sennit.every_tenant', {every}::text, true)"
    )
    return statement


def _check_server(location: str, row: Result) -> Finding:
    number = int.from_bytes(row.get_value(0, 0) or b"", "big")
    version, encoding = (str(row.get_value(0, at) or b"", "utf-8") for at in (1, 2))
    if number < MIN_SERVER_VERSION:
        return Finding(
            "postgres",
            "problem",
            f"{location} is Postgres {version}; the indexes need 13 or newer. Upgrade it.",
        )
    if encoding != "UTF8":
        return Finding(
            "postgres",
            "problem",
            f"{location} has the encoding {encoding}, which cannot hold every text. Use a database with UTF8.",
        )
    return Finding("postgres", "ok", f"{location} answers: Postgres {version}")


def _check_vector(location: str, row: Result) -> list[Finding]:
    version = row.get_value(0, 3)
    if version is None:
        is_available = row.get_value(0, 4) == b"\x01"
        if is_available:
            # It is created with the first vectors, if the user may.
            return [
                Finding("postgres", "ok", "pgvector is available; the first vectors create the extension")
            ]
        return [Finding("postgres", "note", missing_extension(location, VECTOR, is_available=False))]
    text = str(version, "utf-8")
    if tuple(int(part) for part in text.split(".")[:2]) < MIN_VECTOR_VERSION:
        return [
            Finding(
                "postgres",
                "note",
                f"{location} has pgvector {text}. From 0.8 on, a filtered search is filled by the index; before, such a "
                "search compares every vector that the filter admits. Upgrade the extension.",
            )
        ]
    return [Finding("postgres", "ok", f"{location} has pgvector {text}")]
