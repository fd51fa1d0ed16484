"""The tables of the primary store, and the migrations of older SQLite files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sennit.stores.sql.dialect import Dialect

APPLICATION_ID: Final = 0x736E6974
"""'snit' in the SQLite header: the file of another program is refused before anything is written to it."""

TABLES: Final = """
    -- 'seq' numbers every change. A record's row is the sequence number of the change that wrote it. So the
    -- records written after n are a range of rows, and no two versions of a record share a row.
    CREATE TABLE state (key {text} PRIMARY KEY, value {integer} NOT NULL){clustered};
    -- 'origin' identifies the database, so that an index folder of another one is not used by mistake.
    INSERT INTO state VALUES ('seq', 0), ('purged', 0), ('model', 0), ('origin', {random});

    CREATE TABLE records (
        row            {key},
        id             {text} NOT NULL UNIQUE,
        collection     {text} NOT NULL,
        kind           {text} NOT NULL,
        timestamp      {integer}, -- microseconds since 1970: an integer, so that the value round-trips exactly
        parent         {text},
        position       {integer},
        sensitivity    {text} NOT NULL,
        scope          {text} NOT NULL,
        content_hash   {bytes} NOT NULL,
        embedding_hash {bytes} NOT NULL,
        path           {text},
        url            {text},
        first_line     {integer},
        last_line      {integer},
        title          {text} NOT NULL,
        metadata       {text} NOT NULL,
        text           {text} NOT NULL
    );
    CREATE INDEX records_parent ON records ({parent}, position) WHERE parent IS NOT NULL;
    CREATE INDEX records_embedding_hash ON records (embedding_hash);

    -- Deleted rows that derived indexes may still contain.
    CREATE TABLE tombstones (seq {key}, row {integer} NOT NULL);

    CREATE TABLE models (
        number      {never_reused},
        fingerprint {text} NOT NULL UNIQUE,
        name        {text} NOT NULL,
        spec        {text} NOT NULL,
        dimensions  {integer} NOT NULL,
        state       {text} NOT NULL CHECK (state IN ('active', 'building', 'retired'))
    );
    -- Content-addressed: one text has one vector per model, no matter how many records share the text.
    CREATE TABLE vectors (
        number  {numbered},
        model   {integer} NOT NULL,
        hash    {bytes} NOT NULL,
        vector  {bytes} NOT NULL,
        created {real} NOT NULL,
        UNIQUE (model, hash)
    );
    -- Vectors whose last record an index run has replaced or deleted: a branch may bring the text back. `parent` is the
    -- hash of the record's parent, so that a removal on request also removes what earlier versions have left.
    CREATE TABLE unused_vectors (hash {bytes}, parent {bytes}, since {real} NOT NULL, PRIMARY KEY (hash, parent)){clustered};
    CREATE INDEX unused_vectors_parent ON unused_vectors (parent);
    -- Records that lack a vector, and vectors that were added after their record.
    CREATE TABLE pending_vectors (model {integer}, row {integer}, PRIMARY KEY (model, row)){clustered};
    CREATE TABLE late_vectors (seq {key}, model {integer} NOT NULL, row {integer} NOT NULL);

    -- Readings of indexed files, and files that could not be read as text; the columns show whether a file has changed.
    CREATE TABLE files (
        folder        {text},
        path          {text}, -- relative to the folder
        target        {text}, -- the collection of an additional reading
        place         {text} NOT NULL, -- the parent of its records
        other_parents {text} NOT NULL,
        reader        {text} NOT NULL,
        size          {integer} NOT NULL,
        mtime_ns      {integer} NOT NULL,
        ctime_ns      {integer} NOT NULL,
        inode         {integer} NOT NULL,
        hash          {bytes} NOT NULL,
        records       {integer} NOT NULL,
        problem       {text},
        PRIMARY KEY (folder, path, target)
    ){clustered};
    -- The state of the repositories: tokens, indexed folders, plans.
    CREATE TABLE entries (key {bytes} PRIMARY KEY, value {bytes} NOT NULL){clustered};

    -- The names of records, each as a hash.
    CREATE TABLE names (row {integer}, name {integer}, flags {integer} NOT NULL, PRIMARY KEY (row, name)){clustered};

    -- Every fact, once from each endpoint. In key order, the current facts of a name come heaviest first, and of
    -- equal weight newest first. So reading the top facts is cheap even if a name has a hundred thousand.
    CREATE TABLE edges (
        name            {integer}, -- hash of this endpoint's name
        valid_until     {integer}, -- microseconds since 1970, or the largest integer while the fact is valid
        negative_weight {real},
        negative_row    {integer}, -- of the fact's record
        other_name      {integer} NOT NULL,
        valid_from      {integer},
        PRIMARY KEY (name, valid_until, negative_weight, negative_row)
    ){clustered};
"""
"""The newest schema. A word in braces stands for what each dialect writes in its place."""

MIGRATIONS: Final[tuple[str, ...]] = (
    """
    -- 'seq' numbers every change. A record's row is the sequence number of the change that wrote it. So the
    -- records written after n are a range of rows, and no two versions of a record share a row.
    CREATE TABLE state (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    -- 'origin' identifies the database, so that an index folder of another one is not used by mistake.
    INSERT INTO state VALUES ('seq', 0), ('purged', 0), ('model', 0), ('origin', random());

    CREATE TABLE records (
        row            INTEGER PRIMARY KEY,
        id             TEXT NOT NULL UNIQUE,
        collection     TEXT NOT NULL,
        kind           TEXT NOT NULL,
        timestamp      INTEGER, -- microseconds since 1970: an integer, so that the value round-trips exactly
        parent         TEXT,
        position       INTEGER,
        sensitivity    TEXT NOT NULL,
        scope          TEXT NOT NULL,
        content_hash   BLOB NOT NULL,
        embedding_hash BLOB NOT NULL,
        path           TEXT,
        url            TEXT,
        first_line     INTEGER,
        last_line      INTEGER,
        title          TEXT NOT NULL,
        metadata       TEXT NOT NULL,
        text           TEXT NOT NULL
    );
    CREATE INDEX records_parent ON records (parent, position) WHERE parent IS NOT NULL;
    CREATE INDEX records_embedding_hash ON records (embedding_hash);

    -- Deleted rows that derived indexes may still contain.
    CREATE TABLE tombstones (seq INTEGER PRIMARY KEY, row INTEGER NOT NULL);

    CREATE TABLE models (
        number      INTEGER PRIMARY KEY AUTOINCREMENT,
        fingerprint TEXT NOT NULL UNIQUE,
        name        TEXT NOT NULL,
        spec        TEXT NOT NULL,
        dimensions  INTEGER NOT NULL,
        state       TEXT NOT NULL CHECK (state IN ('active', 'building', 'retired'))
    );
    -- Content-addressed: one text has one vector per model, no matter how many records share the text.
    CREATE TABLE vectors (
        number  INTEGER PRIMARY KEY,
        model   INTEGER NOT NULL,
        hash    BLOB NOT NULL,
        vector  BLOB NOT NULL,
        created REAL NOT NULL,
        UNIQUE (model, hash)
    );
    -- Records that lack a vector, and vectors that were added after their record.
    CREATE TABLE pending_vectors (model INTEGER, row INTEGER, PRIMARY KEY (model, row)) WITHOUT ROWID;
    CREATE TABLE late_vectors (seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, row INTEGER NOT NULL);

    -- Every value of every field, for filters.
    CREATE TABLE field_names (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE fields (
        field INTEGER, type INTEGER, value, row INTEGER, PRIMARY KEY (field, type, value, row)
    ) WITHOUT ROWID;

    -- Indexed files, and files that could not be read as text; the columns show whether a file has changed.
    CREATE TABLE files (
        path       TEXT PRIMARY KEY,
        collection TEXT NOT NULL,
        reader     TEXT NOT NULL,
        size       INTEGER NOT NULL,
        mtime_ns   INTEGER NOT NULL,
        ctime_ns   INTEGER NOT NULL,
        inode      INTEGER NOT NULL,
        hash       BLOB NOT NULL,
        records    INTEGER NOT NULL,
        problem    TEXT
    ) WITHOUT ROWID;
    """,
    """
    -- Folders that were indexed as a whole. By default, grep may search them and files in them may be read.
    CREATE TABLE folders (path TEXT PRIMARY KEY) WITHOUT ROWID;

    -- Access tokens. Only the hash of a token is stored.
    CREATE TABLE tokens (
        hash    BLOB PRIMARY KEY,
        name    TEXT NOT NULL UNIQUE,
        caller  TEXT NOT NULL,
        created REAL NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    -- The names of records, each as a hash. Opening a database fills this table (stores/embedded/graph.py).
    CREATE TABLE names (row INTEGER, name INTEGER, flags INTEGER NOT NULL, PRIMARY KEY (row, name)) WITHOUT ROWID;

    -- Every fact, once from each endpoint. In key order, the current facts of a name come heaviest first, and of
    -- equal weight newest first. So reading the top facts is cheap even if a name has a hundred thousand.
    CREATE TABLE edges (
        name            INTEGER, -- hash of this endpoint's name
        valid_until     INTEGER, -- microseconds since 1970, or the largest integer while the fact is valid
        negative_weight REAL,
        negative_row    INTEGER, -- of the fact's record
        other_name      INTEGER NOT NULL,
        valid_from      INTEGER,
        PRIMARY KEY (name, valid_until, negative_weight, negative_row)
    ) WITHOUT ROWID;
    """,
    """
    -- Hydration plans by episode and turn, and the keys that each plan put into the prompt. They hold no text of a
    -- record, so that a removed record leaves nothing behind.
    CREATE TABLE plans (
        tenant   TEXT,
        episode  TEXT,
        turn     INTEGER,
        plan     TEXT NOT NULL,
        audience TEXT NOT NULL, -- the caller's audience as a filter expression
        created  REAL NOT NULL,
        PRIMARY KEY (tenant, episode, turn)
    ) WITHOUT ROWID;
    CREATE TABLE hydrated (
        tenant   TEXT,
        episode  TEXT,
        turn     INTEGER,
        position INTEGER,
        key      TEXT NOT NULL,
        PRIMARY KEY (tenant, episode, turn, position)
    ) WITHOUT ROWID;
    """,
    """
    -- Filters read fields from the records and store them in the field index (stores/embedded/field_index.py).
    DROP TABLE fields;
    DROP TABLE field_names;
    """,
    """
    -- Tokens, folders and plans are keys and values of the repositories (sennit/repositories). No version with the
    -- tables was released, so they are not converted.
    CREATE TABLE entries (key {bytes} PRIMARY KEY, value {bytes} NOT NULL){clustered};
    DROP TABLE tokens;
    DROP TABLE folders;
    DROP TABLE hydrated;
    DROP TABLE plans;
    """,
    """
    -- Paths are relative to the indexed folder, and a file may have several readings. Files are indexed again.
    DROP TABLE files;
    -- Readings of indexed files, and files that could not be read as text; the columns show whether a file has changed.
    CREATE TABLE files (
        folder        {text},
        path          {text}, -- relative to the folder
        target        {text}, -- the collection of an additional reading
        place         {text} NOT NULL, -- the parent of its records
        other_parents {text} NOT NULL,
        reader        {text} NOT NULL,
        size          {integer} NOT NULL,
        mtime_ns      {integer} NOT NULL,
        ctime_ns      {integer} NOT NULL,
        inode         {integer} NOT NULL,
        hash          {bytes} NOT NULL,
        records       {integer} NOT NULL,
        problem       {text},
        PRIMARY KEY (folder, path, target)
    ){clustered};
    """,
    """
    -- Vectors that stay for some time without a record, so that a branch that comes back is not embedded again.
    CREATE TABLE unused_vectors (hash {bytes}, parent {bytes}, since {real} NOT NULL, PRIMARY KEY (hash, parent)){clustered};
    CREATE INDEX unused_vectors_parent ON unused_vectors (parent);
    """,
)
"""Step n migrates the tables from version n to n + 1. A released step is never edited. Postgres began with version 5; the
steps after that are written for both dialects, as TABLES is."""

UNFINISHED: Final = b"migration"
"""The key of the entry that a database has while another is copied into it."""

SERVER_NAME: Final = b"server name"
"""The key of the entry with the name of the database on servers. A copy of the database has its own."""

APPLIED: Final = "applied "
BOUND: Final = "bound "
OF_INDEXES: Final = (APPLIED, BOUND)
"""What keys of the table `state` begin with: the last change that an index on a server has applied, and when it was last
bound, in seconds since 1970. The name of the index follows."""

VERSION: Final = len(MIGRATIONS)
"""The version of TABLES."""


def migrate_statements(dialect: Dialect, version: int) -> Iterator[str]:
    """The statements that bring tables of an older version up to date."""
    for step in MIGRATIONS[version:]:
        yield from split_statements(step.format_map(dialect.types))


def create_statements(dialect: Dialect) -> Iterator[str]:
    """The statements that create the newest schema in an empty database."""
    return split_statements(TABLES.format_map(dialect.types))


def split_statements(script: str) -> Iterator[str]:
    """The statements of a script, each of which ends with a semicolon at the end of a line."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if line.partition("--")[0].rstrip().endswith(";"):
            yield statement
            statement = ""
