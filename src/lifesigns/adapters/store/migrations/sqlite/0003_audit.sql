-- The audit log, entry by entry; its place is its number. An entry is retired after a year or so, its leaf never.
CREATE TABLE deeds (
    n INTEGER PRIMARY KEY,
    event_id INTEGER NOT NULL,
    at REAL NOT NULL,
    agent_id TEXT NOT NULL,
    who TEXT NOT NULL,
    leaf BLOB NOT NULL,
    entry BLOB
) STRICT;

-- Its signed checkpoints.
CREATE TABLE seals (
    size INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    note TEXT NOT NULL
) STRICT;
