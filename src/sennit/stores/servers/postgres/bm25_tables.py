"""Keyword tables that an extension of Postgres ranks by BM25: pg_search or pg_textsearch.

The words of a row are the hashes of our own terms, so both find the records that every other index finds. The extension
computes the scores, with the statistics of the whole table. For documents that are not in the table yet, this process
computes them: the weight of a term comes from the score of one row that has the term.
"""

from __future__ import annotations

import logging
import math
import struct
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import psycopg

from sennit.analysis import index_terms, term_hash
from sennit.filters import EVERYTHING, Filter
from sennit.records import Record
from sennit.settings.servers import PostgresSettings
from sennit.stores.contract import BM25, Document, Floats, KeywordQuery, ScoredKeys
from sennit.stores.servers.postgres.client import Client, Raw, Result
from sennit.stores.servers.postgres.sql_filters import sql_condition
from sennit.stores.servers.postgres.statements import Statement
from sennit.stores.servers.postgres.tables import CREATION_LOCK, REGISTRY, IndexTable

log = logging.getLogger("sennit.store")

Extension: TypeAlias = Literal["pg_search", "pg_textsearch"]
EXTENSIONS: Final[tuple[Extension, ...]] = ("pg_search", "pg_textsearch")

TITLE_REPEATS: Final = round(BM25().title_weight)
"""A word of the title counts as this many words of the text. Neither extension weighs fields in one score."""

WEIGHT_SECONDS: Final = 60.0
"""How long the weight of a term is used before the server is asked again."""

MAX_CACHED_WEIGHTS: Final = 20_000

FILTER_CANDIDATES: Final = 8
"""How many times the limit pg_search finds before the filter is applied; if that is too few, it finds all."""

MAX_REPEATS: Final = 8

DAMAGE: Final = (
    psycopg.errors.InternalError_,
    psycopg.errors.DataCorrupted,
    psycopg.errors.IndexCorrupted,
)
"""What a damaged index is reported as."""

USUAL_LENGTH: Final = 100.0
"""The average length of a text in terms, while the table is empty."""

LENGTH_EFFECT: Final[dict[Extension, float]] = {"pg_search": 0.75, "pg_textsearch": BM25().b}
"""The parameter b. That of pg_search is fixed; the other index is created with ours."""


class Bm25Table(IndexTable):
    """A keyword table of one extension."""

    def __init__(
        self, client: Client, settings: PostgresSettings, *, name: str, table: str, extension: Extension
    ) -> None:
        super().__init__(client, settings, name=name, table=table)
        self._engine = extension
        self._b = LENGTH_EFFECT[extension]
        self._weights_lock = threading.Lock()
        self._weights: dict[str, tuple[float, float]] = {}
        """The weight of each word, and when it was computed."""
        self._sizes = (0.0, 0, 0)
        """When they were read: the rows and the sum of their lengths."""

    def column_definitions(self) -> Sequence[str]:
        return ("words text NOT NULL", "length integer NOT NULL")

    def column_names(self) -> Sequence[str]:
        return ("words", "length")

    def column_types(self) -> Sequence[str]:
        return ("text", "int4")

    def column_values(self, document: Document) -> Sequence[object]:
        words = words_of(document.record)
        return " ".join(words), len(words)

    def create_with_table(self, raw: Raw) -> None:
        """Create the index, which every search needs."""
        table = self.table
        if self._engine == "pg_textsearch":
            options = f"text_config = 'simple', k1 = {BM25().k1}, b = {self._b}"
            columns = "words"
        else:
            fields = '{"words": {"tokenizer": {"type": "whitespace"}, "record": "freq"}}'
            options, columns = f"key_field = 'key', text_fields = '{fields}'", "key, words"
        raw.execute(f"CREATE INDEX {table}_bm25 ON {table} USING bm25 ({columns}) WITH ({options})".encode())

    def search_indexes(self) -> Sequence[str]:
        return ()

    def total_length(self, raw: Raw, keys: Sequence[int]) -> int:
        found: Any = raw.execute(
            f"SELECT coalesce(sum(length), 0)::bigint FROM {self.table} WHERE key = ANY($1)".encode(), (keys,)
        ).fetchone()
        return int(found[0])

    def statements(self, query: KeywordQuery, limit: int, where: Filter, *, exact: bool) -> list[Statement]:
        statement = Statement()
        weighted = {word_of(term): weight for term, weight in query.terms}
        test = "" if where == EVERYTHING else sql_condition(where, statement)
        columns = "key, {score} AS score"
        if self._engine == "pg_textsearch":
            statement.sql = self._textsearch_once(weighted, limit, test, statement)
        elif not test:
            statement.sql = self._search(weighted, limit, statement, columns)
        else:
            # pg_search cannot score a query with every condition. So it finds more, and they are filtered after it.
            found = self._search(weighted, None if exact else FILTER_CANDIDATES * limit, statement, columns)
            statement.sql = (
                f"WITH found AS MATERIALIZED ({found}) SELECT key, score, (SELECT count(*) FROM found) "
                f"FROM found JOIN {self.table} USING (key) WHERE {test} "
                f"ORDER BY score DESC LIMIT {statement.add(limit)}::bigint"
            )
        return [statement]

    def _search(
        self, weighted: dict[str, float], limit: int | None, statement: Statement, columns: str
    ) -> str:
        parts = (
            f"paradedb.boost({statement.add(weight)}::real, "
            f"paradedb.term('words', {statement.add(word)}::text))"
            for word, weight in weighted.items()
        )
        test = f"key @@@ paradedb.boolean(should => ARRAY[{', '.join(parts)}])"
        chosen = columns.format(score="paradedb.score(key)::float8")
        end = "" if limit is None else f" LIMIT {statement.add(limit)}::bigint"
        return f"SELECT {chosen} FROM {self.table} WHERE {test} ORDER BY paradedb.score(key) DESC{end}"

    def _textsearch(
        self, weighted: dict[str, float], limit: int, test: str, statement: Statement, columns: str
    ) -> str:
        # A repeated word counts again, which is as near to a weight as the extension comes.
        repeats = ((word, max(1, min(MAX_REPEATS, round(weight)))) for word, weight in weighted.items())
        text = statement.add(" ".join(word for word, times in repeats for _ in range(times)))
        score = f"words <@> to_bm25query({text}::text, '{self._index}')"
        chosen = columns.format(score=f"-({score})")
        condition = f"WHERE {test}" if test else ""
        inner = (
            f"SELECT {chosen}, {score} AS negative FROM {self.table} {condition} "
            f"ORDER BY {score} LIMIT {statement.add(limit)}::bigint"
        )
        # Rows without any of the words come last, with the score 0.
        return f"SELECT * FROM ({inner}) AS best WHERE negative < 0"

    def _textsearch_once(
        self, weighted: dict[str, float], limit: int, test: str, statement: Statement
    ) -> str:
        """A search that has each key once: an index of pg_textsearch 0.6 returns some rows twice."""
        found = self._textsearch(weighted, 2 * limit, test, statement, "key, {score} AS score")
        return (
            f"SELECT key, max(score) AS score FROM ({found}) AS found GROUP BY key "
            f"ORDER BY score DESC LIMIT {statement.add(limit)}::bigint"
        )

    @property
    def _index(self) -> str:
        return f"{self.settings.schema}.{self.table}_bm25"

    def applied(self) -> int:
        """As of every table, after the index has been checked."""
        known = super().applied()
        if known:
            statement = self._first_row(word_of(0))
            (result,) = self.client.run_many([[statement]])
            if isinstance(result, psycopg.Error) and not self.repair(result):
                raise self.client.error(result) from result
        return known

    def repair(self, error: psycopg.Error) -> bool:
        """Build the index again after an error that says it is damaged; whether it was.

        That of pg_textsearch 0.6 does not survive a crash of the server.
        """
        if not isinstance(error, DAMAGE):
            return False
        log.warning(
            "the index %s is damaged (%s); it is built again", self._index, error.diag.message_primary
        )
        with self.transaction() as raw:
            raw.execute("SELECT pg_advisory_xact_lock($1)", (CREATION_LOCK,))
            raw.execute(f"REINDEX INDEX {self._index}".encode())
        return True

    def read(self, result: Result, query: KeywordQuery) -> ScoredKeys:  # noqa: ARG002 - as the vector index
        rows = range(result.ntuples)
        keys = np.frombuffer(b"".join(result.get_value(row, 0) or b"" for row in rows), ">i8")
        scores = np.frombuffer(b"".join(result.get_value(row, 1) or b"" for row in rows), ">f8")
        return ScoredKeys(keys.astype(np.int64), scores.astype(np.float64))

    def is_full(self, result: Result, limit: int) -> bool:
        """Whether there is no more: always, unless rows were found before they were filtered."""
        if result.nfields < 3 or self._engine == "pg_textsearch" or result.ntuples >= limit:
            return True
        return result.ntuples > 0 and int.from_bytes(result.get_value(0, 2) or b"", "big") < (
            FILTER_CANDIDATES * limit
        )

    # Documents that are not in the table.

    def score(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        """BM25 with the weights that the extension uses."""
        weighted = {word_of(term): weight for term, weight in query.terms}
        weights, average = self._read_weights(list(weighted))
        out = np.full(len(documents), np.nan)
        for at, document in enumerate(documents):
            words = words_of(document.record)
            counts = Counter(words)
            shares = [
                weight * weights[word] * self._saturation(counts[word], len(words), average)
                for word, weight in weighted.items()
                if word in counts
            ]
            if shares:
                out[at] = sum(shares)
        return out

    def _saturation(self, count: int, length: int, average: float) -> float:
        k1 = BM25().k1
        norm = k1 * (1 - self._b + self._b * length / (average or USUAL_LENGTH))
        return count * (k1 + 1) / (count + norm)

    def _read_weights(self, words: Sequence[str]) -> tuple[dict[str, float], float]:
        """The weight of each word, and the average length."""
        now = time.monotonic()
        with self._weights_lock:
            known = {
                word: self._weights[word][0]
                for word in words
                if word in self._weights and now - self._weights[word][1] < WEIGHT_SECONDS
            }
            read_at, rows, total = self._sizes
        missing = [word for word in words if word not in known]
        if missing or now - read_at > WEIGHT_SECONDS:
            rows, total = self._read_sizes()
            found = self._ask_weights(missing, rows, total / rows if rows else 0.0)
            with self._weights_lock:
                if len(self._weights) > MAX_CACHED_WEIGHTS:
                    self._weights.clear()
                # An empty table says nothing about later.
                if rows:
                    self._weights.update((word, (weight, now)) for word, weight in found.items())
                    self._sizes = (now, rows, total)
            known |= found
        return known, total / rows if rows else 0.0

    def _read_sizes(self) -> tuple[int, int]:
        if not self.has_registry():
            return 0, 0
        statement = Statement()
        name = statement.add(self.table)
        statement.sql = f"SELECT rows, total_length FROM {REGISTRY} WHERE table_name = {name}::text"
        found = self.client.run(statement)
        if not found.ntuples:
            return 0, 0
        rows, total = (int.from_bytes(found.get_value(0, at) or b"", "big") for at in (0, 1))
        return rows, total

    def _first_row(self, word: str) -> Statement:
        """The words and the score of the best row with a word."""
        statement, columns = Statement(), "words, {score} AS score"
        if self._engine == "pg_search":
            statement.sql = self._search({word: 1.0}, 1, statement, columns)
        else:
            statement.sql = self._textsearch({word: 1.0}, 1, "", statement, columns)
        return statement

    def _ask_weights(self, words: Sequence[str], rows: int, average: float) -> dict[str, float]:
        """The score of one row with each word, divided by what its length and count contribute."""
        unseen = math.log(1 + (rows + 0.5) / 0.5)
        if not rows or not words:
            return dict.fromkeys(words, unseen)
        groups = []
        for word in words:
            statement = self._first_row(word)
            # The weight of a word comes from all rows, whoever asks.
            fence = Statement("SELECT set_config('sennit.every_tenant', 'on', true)")
            groups.append([fence, statement] if self.settings.row_security else [statement])
        out = {}
        for word, result in zip(words, self.client.run_many(groups), strict=True):
            if isinstance(result, psycopg.Error):
                raise self.client.error(result) from result
            out[word] = unseen
            if result.ntuples:
                row = str(result.get_value(0, 0) or b"", "utf-8").split()
                (score,) = struct.unpack(">d", result.get_value(0, 1) or b"")
                out[word] = score / self._saturation(row.count(word), len(row), average)
        return out


def word_of(term: int) -> str:
    """The word for the hash of a term: a letter first, so that no parser takes it for a number."""
    return f"t{term:x}"


def words_of(record: Record) -> list[str]:
    """The words of a record, those of its title repeated."""
    terms = [*index_terms(record.title) * TITLE_REPEATS, *index_terms(record.text)]
    return [word_of(term_hash(term)) for term in terms]
