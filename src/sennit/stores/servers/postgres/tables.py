"""The table of one index: its columns, its rows, and how far the feed was applied to it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import psycopg

from sennit.errors import SourceError
from sennit.settings.servers import PostgresSettings
from sennit.stores.buffered_index import BATCH_CHANGES
from sennit.stores.contract import Document
from sennit.stores.servers.postgres.client import Client, Raw
from sennit.stores.servers.postgres.sql_filters import COLUMNS, NUMBER_COLUMNS, column_values, metadata_json
from sennit.stores.servers.postgres.statements import Statement, escape_text

REGISTRY: Final = "indexes"
"""The table of all index tables."""

CREATION_LOCK: Final = 0x736E6978
"""The advisory lock under which tables are created: 'snix'."""

FILTER_INDEXES_FROM: Final = 1000
"""With fewer rows, a scan is as fast as an index."""

REQUIRED_ENCODING: Final = "UTF8"

_CREATE_REGISTRY: Final = f"""
    CREATE TABLE IF NOT EXISTS {REGISTRY} (
        table_name text PRIMARY KEY,
        index_name text NOT NULL,
        applied bigint NOT NULL DEFAULT 0, -- every change up to this number is in the table
        rows bigint NOT NULL DEFAULT 0,
        total_length bigint NOT NULL DEFAULT 0, -- of all rows, where the role needs it
        is_indexed boolean NOT NULL DEFAULT false, -- has indexes for filters
        is_searchable boolean NOT NULL DEFAULT false -- has the index of its role
    )
"""

POLICY: Final = """
    current_setting('sennit.every_tenant', true) = 'on'
    OR coalesce(tenant, '') = current_setting('sennit.tenant', true)
"""
"""A session that names no tenant sees no row."""


class IndexTable:
    """One table. A subclass knows the column of its role and the index on it."""

    def __init__(self, client: Client, settings: PostgresSettings, *, name: str, table: str) -> None:
        self.client = client
        self.settings = settings
        self.name = name
        self.table = table
        """Quoted nowhere: it consists of lower-case letters, digits and underscores."""

    # What a subclass defines.

    extension: str | None = None
    """The extension that the column needs."""
    searchable_from: int = 1
    """From how many rows on the index of the role is worth its upkeep."""

    def column_definitions(self) -> Sequence[str]:
        """The columns besides the key and those for filters."""
        raise NotImplementedError

    def column_names(self) -> Sequence[str]:
        raise NotImplementedError

    def column_types(self) -> Sequence[str]:
        """The types by which psycopg writes the values in binary form."""
        raise NotImplementedError

    def column_values(self, document: Document) -> Sequence[object] | None:
        """The values of the columns; None for a document that is not in this index."""
        raise NotImplementedError

    def search_indexes(self) -> Sequence[str]:
        """The statements that create the index of the role."""
        raise NotImplementedError

    def repair(self, error: psycopg.Error) -> bool:  # noqa: ARG002 - for indexes that an error can tell to be damaged
        """Repair the index, if an error says that it is damaged; whether it was."""
        return False

    def create_with_table(self, raw: Raw) -> None:
        """Create what the role needs from the first row on."""

    def total_length(self, raw: Raw, keys: Sequence[int]) -> int:  # noqa: ARG002 - for roles that count it
        """The sum of the lengths of these rows."""
        return 0

    # The contract.

    def applied(self) -> int:
        """The number of the last change that the table has; 0 where there is none."""
        if not self.has_registry():
            return 0
        statement = Statement()
        name = statement.add(self.table)
        statement.sql = (
            f"SELECT applied, rows, is_indexed, is_searchable FROM {REGISTRY} WHERE table_name = {name}::text "
            "AND to_regclass(quote_ident(table_name)) IS NOT NULL"
        )
        found = self.client.run(statement)
        if not found.ntuples:
            return 0
        applied, rows = (int.from_bytes(found.get_value(0, at) or b"", "big") for at in (0, 1))
        is_indexed, is_searchable = (found.get_value(0, at) == b"\x01" for at in (2, 3))
        if self._lacks_indexes(rows, is_indexed, is_searchable):
            # The last batch was a full one, and nothing came after it.
            with self.transaction() as raw:
                raw.execute("SELECT set_config('sennit.every_tenant', 'on', true)")
                self._build_indexes(raw, rows, is_indexed, is_searchable)
        return applied

    def _lacks_indexes(self, rows: int, is_indexed: bool, is_searchable: bool) -> bool:
        return (not is_indexed and rows >= FILTER_INDEXES_FROM) or (
            not is_searchable and rows >= self.searchable_from
        )

    def has_registry(self) -> bool:
        """Whether any index is on the server."""
        statement = Statement()
        exists = statement.add(f"{self.settings.schema}.{REGISTRY}")
        statement.sql = f"SELECT to_regclass({exists}::text) IS NOT NULL"
        return self.client.run(statement).get_value(0, 0) == b"\x01"

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        """Replace and delete rows and move the number, in one transaction."""
        with self.transaction() as raw:
            self._ensure_table(raw)
            keys = [*deleted, *(document.key for document in documents)]
            length = -self.total_length(raw, keys)
            rows = -raw.execute(f"DELETE FROM {self.table} WHERE key = ANY($1)".encode(), (keys,)).rowcount
            rows += self._copy(raw, documents)
            length += self.total_length(raw, keys)
            found = raw.execute(
                f"UPDATE {REGISTRY} SET applied = greatest(applied, $2), rows = rows + $3, "
                "total_length = total_length + $4 WHERE table_name = $1 "
                "RETURNING rows, is_indexed, is_searchable".encode(),
                (self.table, through, rows, length),
            ).fetchone()
            assert found is not None
            # While a full batch comes, more follow: an index is built faster when they are there.
            if len(keys) < BATCH_CHANGES or found[0] > 20 * self.searchable_from:
                self._build_indexes(raw, *found)

    def reset(self) -> None:
        """Drop the table."""
        with self.transaction() as raw:
            self._lock(raw)
            raw.execute(f"DROP TABLE IF EXISTS {self.table}".encode())
            if self._exists(raw, REGISTRY):
                raw.execute(f"DELETE FROM {REGISTRY} WHERE table_name = $1".encode(), (self.table,))

    def transaction(self) -> AbstractContextManager[Raw]:
        """A write transaction that sees the rows of every tenant."""
        return self.client.transaction()

    # The table.

    def _exists(self, raw: Raw, table: str) -> bool:
        found = raw.execute("SELECT to_regclass($1)", (f"{self.settings.schema}.{table}",)).fetchone()
        return found is not None and found[0] is not None

    def _lock(self, raw: Raw) -> None:
        raw.execute("SELECT pg_advisory_xact_lock($1)", (CREATION_LOCK,))

    def _ensure_table(self, raw: Raw) -> None:
        """Create the table if it is missing, and set its row-level security as the settings say."""
        raw.execute("SELECT set_config('sennit.every_tenant', 'on', true)")
        if not self._exists(raw, self.table):
            self._lock(raw)
            # Another process may have created it meanwhile.
            if not self._exists(raw, self.table):
                self._create(raw)
        found = raw.execute(
            "SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass($1)",
            (f"{self.settings.schema}.{self.table}",),
        ).fetchone()
        if found is not None and found[0] != self.settings.row_security:
            self._set_row_security(raw)

    def _create(self, raw: Raw) -> None:
        encoding = raw.execute("SELECT current_setting('server_encoding')").fetchone()
        if encoding != (REQUIRED_ENCODING,):
            raise SourceError(
                f"{self.client.location} has the encoding {encoding and encoding[0]}, which cannot hold every text. "
                f"Create the database with ENCODING '{REQUIRED_ENCODING}'."
            )
        if not self._has_schema(raw):
            raw.execute(f"CREATE SCHEMA IF NOT EXISTS {self.settings.schema}".encode())
        if self.extension is not None:
            self._create_extension(raw, self.extension)
        raw.execute(_CREATE_REGISTRY.encode())
        columns = ", ".join(
            [
                "key bigint PRIMARY KEY",
                *(f'"{name}" {kind}' for name, kind in COLUMNS.items()),
                "metadata jsonb NOT NULL",
                *self.column_definitions(),
            ]
        )
        raw.execute(f"CREATE TABLE {self.table} ({columns})".encode())
        self.create_with_table(raw)
        raw.execute(f"DELETE FROM {REGISTRY} WHERE table_name = $1".encode(), (self.table,))
        raw.execute(
            f"INSERT INTO {REGISTRY} (table_name, index_name) VALUES ($1, $2)".encode(),
            (self.table, self.name),
        )

    def _has_schema(self, raw: Raw) -> bool:
        found = raw.execute("SELECT 1 FROM pg_namespace WHERE nspname = $1", (self.settings.schema,))
        return found.fetchone() is not None

    def _create_extension(self, raw: Raw, extension: str) -> None:
        if raw.execute("SELECT 1 FROM pg_extension WHERE extname = $1", (extension,)).fetchone():
            return
        available = raw.execute("SELECT 1 FROM pg_available_extensions WHERE name = $1", (extension,))
        if not available.fetchone():
            raise SourceError(missing_extension(self.client.location, extension, is_available=False))
        try:
            with raw.transaction():
                raw.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}".encode())
        except psycopg.errors.InsufficientPrivilege as error:
            raise SourceError(
                missing_extension(self.client.location, extension, is_available=True)
            ) from error

    def _set_row_security(self, raw: Raw) -> None:
        self._lock(raw)
        raw.execute(f"DROP POLICY IF EXISTS tenants ON {self.table}".encode())
        if self.settings.row_security:
            raw.execute(f"CREATE POLICY tenants ON {self.table} USING ({POLICY})".encode())
        word = "ENABLE" if self.settings.row_security else "DISABLE"
        force = "FORCE" if self.settings.row_security else "NO FORCE"
        raw.execute(
            f"ALTER TABLE {self.table} {word} ROW LEVEL SECURITY, {force} ROW LEVEL SECURITY".encode()
        )

    def _copy(self, raw: Raw, documents: Sequence[Document]) -> int:
        names = ", ".join(["key", *(f'"{name}"' for name in COLUMNS), "metadata", *self.column_names()])
        types = [
            "int8",
            *(
                "float8" if name == "timestamp" else "int8" if name in NUMBER_COLUMNS else "text"
                for name in COLUMNS
            ),
            "bytea",
            *self.column_types(),
        ]
        rows = 0
        with (
            raw.cursor() as cursor,
            cursor.copy(f"COPY {self.table} ({names}) FROM STDIN (FORMAT binary)".encode()) as copy,
        ):
            copy.set_types(types)
            for document in documents:
                values = self.column_values(document)
                if values is None:
                    continue
                own = (
                    escape_text(value) if isinstance(value, str) else value
                    for value in column_values(document.record)
                )
                # Before the text of a jsonb in binary form comes its version.
                metadata = b"\x01" + metadata_json(document.record).encode()
                copy.write_row((document.key, *own, metadata, *values))
                rows += 1
        return rows

    def _build_indexes(self, raw: Raw, rows: int, is_indexed: bool, is_searchable: bool) -> None:
        statements: list[str] = []
        table = self.table
        if not is_indexed and rows >= FILTER_INDEXES_FROM:
            is_indexed = True
            statements += [
                f"CREATE INDEX {table}_metadata ON {table} USING gin (metadata jsonb_path_ops)",
                f'CREATE INDEX {table}_time ON {table} ("timestamp") WHERE "timestamp" IS NOT NULL',
                # A hash takes a text of any length.
                f"CREATE INDEX {table}_parent ON {table} USING hash (parent) WHERE parent IS NOT NULL",
                f"CREATE INDEX {table}_tenant ON {table} USING hash (tenant) WHERE tenant IS NOT NULL",
            ]
        if not is_searchable and rows >= self.searchable_from:
            is_searchable = True
            statements += self.search_indexes()
        if not statements:
            return
        self._lock(raw)
        state = raw.execute(
            f"SELECT is_indexed, is_searchable FROM {REGISTRY} WHERE table_name = $1".encode(), (table,)
        ).fetchone()
        if state == (is_indexed, is_searchable):
            # Another process has built them meanwhile.
            return
        memory: Any = f"{self.settings.build_memory_mb}MB"
        raw.execute("SELECT set_config('maintenance_work_mem', $1, true)", (memory,))
        for statement in (*statements, f"ANALYZE {table}"):
            raw.execute(statement.encode())
        raw.execute(
            f"UPDATE {REGISTRY} SET is_indexed = $2, is_searchable = $3 WHERE table_name = $1".encode(),
            (table, is_indexed, is_searchable),
        )


def missing_extension(location: str, extension: str, *, is_available: bool) -> str:
    """What to do about an extension that the database does not have."""
    if is_available:
        return (
            f"{location} has no extension {extension}, and the user may not create it. Let an administrator run "
            f"CREATE EXTENSION {extension} in this database."
        )
    return f"the server of {location} has no extension {extension}. Install it on the server, for example as a package."
