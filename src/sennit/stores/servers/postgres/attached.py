"""A Postgres table that somebody else owns and fills, searched as it is: in transactions that can only read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql

from sennit.errors import SourceError
from sennit.filters import Condition, Equal, Filter, In, Range
from sennit.filters.expression import type_rank
from sennit.settings.attached import AttachedMapping
from sennit.settings.servers import PostgresSettings
from sennit.stores.attached import AttachedRow, AttachedSearch, check_dimensions, is_uuid, rank_rows
from sennit.stores.contract import KeywordQuery
from sennit.stores.findings import Finding
from sennit.stores.servers.postgres.client import Client
from sennit.stores.servers.postgres.text_vectors import LENGTH_NORMALISATION
from sennit.stores.servers.supersets import translate

TEXT_TYPES: Final = ("text", "character varying", "citext", "name")
INTEGER_TYPES: Final = ("smallint", "integer", "bigint")
NUMBER_TYPES: Final = (*INTEGER_TYPES, "numeric", "real", "double precision")
TIME_TYPES: Final = ("timestamp with time zone", "timestamp without time zone", "date")
VECTOR_TYPES: Final = ("vector", "halfvec")

MAX_BIGINT: Final = (1 << 63) - 1

_CONFIGURATION: Final = re.compile(r"to_tsvector\('(?P<name>(?:[^']|'')+)'::regconfig")

_COLUMNS: Final = """
    SELECT a.attname::text, format_type(a.atttypid, NULL), a.atttypmod, pg_get_expr(d.adbin, d.adrelid)
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
"""


class _Column(NamedTuple):
    """A column of the table."""

    kind: str
    """Its type, without a length."""
    modifier: int
    """The dimensions of a vector; -1 for any."""
    expression: str
    """What a generated column is computed from."""


class AttachedTable:
    """A table with a tsvector or a text, with vectors, or with both."""

    def __init__(self, client: Client, settings: PostgresSettings, mapping: AttachedMapping) -> None:
        """`client` opens connections that can only read."""
        self._client = client
        self._settings = settings
        self._mapping = mapping
        self._table = sql.Identifier(*mapping.source.split("."))
        self._columns: Mapping[str, _Column] = {}

    def search(self, search: AttachedSearch) -> list[AttachedRow]:
        """The best rows for words or for a vector."""
        if isinstance(search.query, KeywordQuery):
            return self._search_words(search.query.text, search.limit, search.where)
        return self._search_vectors(search.query, search.limit, search.where)

    def get(self, ids: Sequence[str]) -> list[AttachedRow]:
        """The rows with these ids."""
        kind = self._column(self._mapping.id).kind
        column = sql.Identifier(self._mapping.id)
        values: list[Any] = list(ids)
        test = sql.SQL("{} = ANY ($1)").format(column)
        if kind in INTEGER_TYPES:
            # An id that is no number of this size has no row.
            values = [
                int(one) for one in ids if re.fullmatch(r"-?[0-9]{1,19}", one) and abs(int(one)) <= MAX_BIGINT
            ]
            test = sql.SQL("{}::bigint = ANY ($1::bigint[])").format(column)
        elif kind == "uuid":
            values = [one for one in ids if is_uuid(one)]
            test = sql.SQL("{} = ANY ($1::uuid[])").format(column)
        elif kind not in TEXT_TYPES:
            test = sql.SQL("{}::text = ANY ($1::text[])").format(column)
        values = [one for one in values if not isinstance(one, str) or "\0" not in one]
        if not values:
            return []
        statement = sql.SQL("SELECT {}, 1.0::float8 FROM {} WHERE {}").format(
            self._selected(), self._table, test
        )
        return self._rows(statement, [values])

    def check(self, dimensions: int = 0) -> list[Finding]:
        """Whether the table and its columns are there, and of types that can be searched."""
        name = f"attached.{self._mapping.name}"
        try:
            self._columns = {}
            for column in self._mapping.columns:
                self._column(column)
            if self._mapping.keyword:
                self._text_expression()
            if self._mapping.vector:
                self._vector_column(dimensions)
        except SourceError as error:
            return [Finding(name, "problem", str(error))]
        return [
            Finding(
                name, "ok", f"the table {self._mapping.source} of {self._client.location} can be searched"
            )
        ]

    # Words.

    def _search_words(self, text: str, limit: int, where: Filter) -> list[AttachedRow]:
        text = text.replace("\0", " ")
        if not text.strip():
            return []
        document, configuration = self._text_expression()
        every = sql.SQL("plainto_tsquery({}$1::text)").format(configuration)
        # The same lexemes, connected by or. A lexeme of the parser has no spaces.
        some = sql.SQL("replace({}::text, ' & ', ' | ')::tsquery").format(every)
        rank = sql.SQL("{}({}, {}, {})").format(
            sql.Identifier(self._settings.rank), document, some, sql.Literal(LENGTH_NORMALISATION)
        )
        score = sql.SQL("greatest({}, 1e-20::float4)::float8").format(rank)
        if self._settings.match == "all_first":
            score = sql.SQL("({} + ({} @@ {})::int)").format(score, document, every)
        values: list[Any] = [text, limit]
        test = self._condition(where, values)
        statement = sql.SQL(
            "SELECT {}, {} AS score FROM {} WHERE {} @@ {} AND {} ORDER BY score DESC, {} LIMIT $2"
        ).format(self._selected(), score, self._table, document, some, test, sql.Identifier(self._mapping.id))
        return self._rows(statement, values)

    def _text_expression(self) -> tuple[sql.Composable, sql.Composable]:
        """The tsvector that is searched, and the text-search configuration as the first argument of a function.

        The configuration is that of a generated column; otherwise the database's own.
        """
        found = self._column(self._mapping.keyword)
        column = sql.Identifier(self._mapping.keyword)
        if found.kind == "tsvector":
            named = _CONFIGURATION.search(found.expression)
            name = named["name"].replace("''", "'") if named else ""
            argument = sql.SQL("{}::regconfig, ").format(sql.Literal(name)) if name else sql.SQL("")
            return column, argument
        if found.kind in TEXT_TYPES:
            return sql.SQL("to_tsvector({})").format(column), sql.SQL("")
        raise SourceError(
            f"attached.{self._mapping.name}: the column {self._mapping.keyword} is of the type {found.kind}; words are "
            "searched in a tsvector or a text"
        )

    # Vectors.

    def _search_vectors(self, query: NDArray[np.float32], limit: int, where: Filter) -> list[AttachedRow]:
        found = self._vector_column(len(query))
        column = sql.Identifier(self._mapping.vector)
        distance = sql.SQL("{} <=> $1::{}").format(column, sql.SQL(found.kind))
        values: list[Any] = [_format_vector(query), limit]
        test = self._condition(where, values)
        statement = sql.SQL(
            "SELECT {}, 1 - ({}) AS score FROM {} WHERE {} IS NOT NULL AND {} ORDER BY {} LIMIT $2"
        ).format(self._selected(), distance, self._table, column, test, distance)
        rows = self._rows(statement, values)
        if len(rows) < limit:
            # An approximate index may end early; the table as a whole does not.
            rows = self._rows(statement, values, exact=True)
        return rank_rows(rows)

    def _vector_column(self, dimensions: int) -> _Column:
        found = self._column(self._mapping.vector)
        if found.kind not in VECTOR_TYPES:
            raise SourceError(
                f"attached.{self._mapping.name}: the column {self._mapping.vector} is of the type {found.kind}, not one "
                "of vectors of pgvector"
            )
        check_dimensions(self._mapping, max(0, found.modifier), dimensions)
        return found

    # Filters.

    def _condition(self, where: Filter, values: list[Any]) -> sql.Composable:
        """The condition for a filter. What cannot be compared in SQL is left out: more rows, never fewer."""
        found = translate(where, _TableFilters(self._compare, values))
        return sql.SQL("TRUE" if found else "FALSE") if isinstance(found, bool) else found

    def _compare(self, where: Condition, values: list[Any]) -> sql.Composable:
        name = self._mapping.column(where.field)
        kind = self._column(name).kind
        column: sql.Composable = sql.Identifier(name)
        if where.field == "timestamp" or kind in TIME_TYPES:
            if where.field != "timestamp" or kind not in (*TIME_TYPES, *NUMBER_TYPES):
                return sql.SQL("TRUE")
            if kind in TIME_TYPES:
                moment = "{} AT TIME ZONE 'UTC'" if kind == "timestamp without time zone" else "{}"
                column = sql.SQL(f"extract(epoch FROM {moment})").format(column)
            return _test(where, sql.SQL("{}::float8").format(column), 1, "float8", values)
        if kind in TEXT_TYPES:
            return _test(where, sql.SQL('{}::text COLLATE "C"').format(column), 2, "text", values)
        if kind in NUMBER_TYPES and where.field in self._mapping.metadata:
            return _test(where, sql.SQL("{}::numeric").format(column), 1, "numeric", values)
        if kind == "boolean" and where.field in self._mapping.metadata:
            return _test(where, column, 0, "boolean", values)
        return sql.SQL("TRUE")

    # The table.

    def _column(self, name: str) -> _Column:
        if not self._columns:
            self._columns = {
                row[0]: _Column(row[1].rpartition(".")[2], row[2], row[3] or "")
                for row in self._client.fetch(_COLUMNS, [self._table.as_string()])
            }
        if not self._columns:
            raise SourceError(
                f"attached.{self._mapping.name}: there is no table {self._mapping.source} in {self._client.location}, or "
                "the user may not see it"
            )
        found = self._columns.get(name)
        if found is None:
            raise SourceError(
                f"attached.{self._mapping.name}: the table {self._mapping.source} has no column {name}; it has "
                f"{', '.join(self._columns)}"
            )
        return found

    def _selected(self) -> sql.Composable:
        for name in self._mapping.columns:
            self._column(name)
        return sql.SQL(", ").join(map(sql.Identifier, self._mapping.columns))

    def _rows(
        self, statement: sql.Composed, values: Sequence[Any], *, exact: bool = False
    ) -> list[AttachedRow]:
        try:
            found = self._client.fetch(statement.as_string(), values, exact=exact)
        except psycopg.errors.UndefinedColumn as error:
            self._columns = {}
            raise self._client.error(error) from error
        return [
            AttachedRow(dict(zip(self._mapping.columns, map(_plain, row), strict=False)), float(row[-1]))
            for row in found
        ]


class _TableFilters:
    """How SQL writes filters. A condition is never a plain true or false: its values are parameters already."""

    def __init__(self, compare: Callable[[Condition, list[Any]], sql.Composable], values: list[Any]) -> None:
        self._compare = compare
        self._values = values

    def condition(self, condition: Condition, *, is_negated: bool) -> sql.Composable | None:  # noqa: ARG002
        return self._compare(condition, self._values)

    def all_of(self, parts: Sequence[sql.Composable]) -> sql.Composable:
        return sql.SQL("({})").format(sql.SQL(" AND ").join(parts))

    def any_of(self, parts: Sequence[sql.Composable]) -> sql.Composable:
        return sql.SQL("({})").format(sql.SQL(" OR ").join(parts))

    def none_of(self, part: sql.Composable) -> None:
        """A row without a value means another thing to SQL, so a negation is the engine's."""


def _test(
    where: Condition, column: sql.Composable, rank: int, kind: str, values: list[Any]
) -> sql.Composable:
    """A comparison with values of one type; those of another are never equal."""

    def add(value: Any, cast: str) -> sql.Composable:
        values.append(value)
        return sql.SQL(f"${len(values)}::{cast}")

    def fits(value: Any) -> bool:
        return type_rank(value) == rank and not (isinstance(value, str) and "\0" in value)

    match where:
        case Equal(_, value):
            return sql.SQL("{} = {}").format(column, add(value, kind)) if fits(value) else sql.SQL("FALSE")
        case In(_, listed):
            kept = [value for value in listed if fits(value)]
            if not kept:
                return sql.SQL("FALSE")
            return sql.SQL("{} = ANY ({})").format(column, add(kept, f"{kind}[]"))
        case Range(_, low, high, include_low, include_high):
            tests = []
            for bound, sign, includes in ((low, ">", include_low), (high, "<", include_high)):
                if bound is not None and not fits(bound):
                    return sql.SQL("TRUE" if isinstance(bound, str) and rank == 2 else "FALSE")
                if bound is not None:
                    operator = sql.SQL(f"{sign}{'=' if includes else ''}")
                    tests.append(sql.SQL("{} {} {}").format(column, operator, add(bound, kind)))
            return sql.SQL(" AND ").join(tests)
        case _:
            return sql.SQL("TRUE")


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _format_vector(vector: NDArray[np.float32]) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
