"""The truth: tables of the SQLite file, and the steps from one version to the next."""

from __future__ import annotations

from typing import Final

APPLICATION_ID: Final = 0x77656674
"""'sennit' in the SQLite header: a file that is not ours is refused before anything is written."""

MIGRATIONS: Final[tuple[str, ...]] = (
    """
    -- One counter for every change. A record's row is the number of the change that wrote it, so
    -- 'what is new since n' is a range of rows, and a newer version never shares a row with an older.
    CREATE TABLE state (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    -- The origin tells databases apart: an index folder that came from another one is not taken for ours.
    INSERT INTO state VALUES ('seq', 0), ('purged', 0), ('model', 0), ('origin', random());

    CREATE TABLE records (
        row         INTEGER PRIMARY KEY,
        id          TEXT NOT NULL UNIQUE,
        collection  TEXT NOT NULL,
        kind        TEXT NOT NULL,
        timestamp   INTEGER, -- microseconds since 1970: whole, so that every moment comes back as it was
        parent      TEXT,
        position    INTEGER,
        sensitivity TEXT NOT NULL,
        scope       TEXT NOT NULL,
        content     BLOB NOT NULL,
        embedding   BLOB NOT NULL,
        path        TEXT,
        url         TEXT,
        first_line  INTEGER,
        last_line   INTEGER,
        title       TEXT NOT NULL,
        metadata    TEXT NOT NULL,
        text        TEXT NOT NULL
    );
    CREATE INDEX records_parent ON records (parent, position) WHERE parent IS NOT NULL;
    CREATE INDEX records_embedding ON records (embedding);

    -- Rows that derived indexes may still hold.
    CREATE TABLE removals (seq INTEGER PRIMARY KEY, row INTEGER NOT NULL);

    CREATE TABLE models (
        number      INTEGER PRIMARY KEY AUTOINCREMENT,
        fingerprint TEXT NOT NULL UNIQUE,
        name        TEXT NOT NULL,
        spec        TEXT NOT NULL,
        dimensions  INTEGER NOT NULL,
        state       TEXT NOT NULL CHECK (state IN ('active', 'building', 'retired'))
    );
    -- Content-addressed: one text has one vector per model, however many records hold it.
    CREATE TABLE vectors (
        number  INTEGER PRIMARY KEY,
        model   INTEGER NOT NULL,
        hash    BLOB NOT NULL,
        vector  BLOB NOT NULL,
        created REAL NOT NULL,
        UNIQUE (model, hash)
    );
    -- Records that still want a vector, and vectors that came after their record.
    CREATE TABLE pending (model INTEGER, row INTEGER, PRIMARY KEY (model, row)) WITHOUT ROWID;
    CREATE TABLE arrivals (seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, row INTEGER NOT NULL);

    -- Every value of every field, for filters.
    CREATE TABLE field_names (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE fields (
        field INTEGER, type INTEGER, value, row INTEGER, PRIMARY KEY (field, type, value, row)
    ) WITHOUT ROWID;

    -- Files whose text became records, and files that could not: what is needed to know that one changed.
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
    -- Folders that were indexed as a whole: by default, what may be searched by grep and read.
    CREATE TABLE folders (path TEXT PRIMARY KEY) WITHOUT ROWID;

    -- Who may ask from outside. A token itself is never kept.
    CREATE TABLE tokens (
        hash    BLOB PRIMARY KEY,
        name    TEXT NOT NULL UNIQUE,
        caller  TEXT NOT NULL,
        created REAL NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    -- What records are called, by the number of each name; filled by stores/embedded/graph.py when opened.
    CREATE TABLE names (row INTEGER, name INTEGER, flags INTEGER NOT NULL, PRIMARY KEY (row, name)) WITHOUT ROWID;

    -- Facts from both of their ends. In this order the heaviest facts of a name that still hold come first, and
    -- of equal ones the newest, so that a name with a hundred thousand of them costs no more than it gives.
    CREATE TABLE edges (
        name   INTEGER, -- of this end
        until  INTEGER, -- microseconds since 1970, or the largest number there is
        rank   REAL,    -- the weight below zero
        newest INTEGER, -- the record's row below zero
        other  INTEGER NOT NULL,
        since  INTEGER,
        PRIMARY KEY (name, until, rank, newest)
    ) WITHOUT ROWID;
    """,
    """
    -- Plans of what went into a prompt, by episode and turn, and the keys that each took in. No text of a record is
    -- copied here: what is removed is gone.
    CREATE TABLE plans (
        tenant   TEXT,
        episode  TEXT,
        turn     INTEGER,
        plan     TEXT NOT NULL,
        audience TEXT NOT NULL, -- of whoever asked, as a filter in text form
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
    -- Filters read fields from the records, and keep what they read in files (stores/embedded/fields.py).
    DROP TABLE fields;
    DROP TABLE field_names;
    """,
)
"""Step n takes a database from version n to n + 1. A step that has been released is never edited."""

VERSION: Final = len(MIGRATIONS)
