-- How far this store is written, and by whom: one row.
CREATE TABLE hub (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    page INTEGER NOT NULL,
    event INTEGER NOT NULL
) STRICT;
INSERT INTO hub VALUES (1, 0, 0, 0);

-- With a rowid: values are large, and a tree of large rows is deep.
CREATE TABLE beliefs (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT;
-- Each ends in the id by itself.
CREATE INDEX events_of_agent ON events (agent_id);
CREATE INDEX events_of_type ON events (type);
CREATE INDEX events_at ON events (at);

CREATE TABLE orders (
    position INTEGER PRIMARY KEY,
    order_id TEXT NOT NULL UNIQUE,
    at REAL NOT NULL,
    agent_id TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE minutes (
    minute INTEGER NOT NULL,
    agent_id TEXT NOT NULL,
    beats INTEGER NOT NULL,
    late_max REAL NOT NULL,
    load REAL,
    cpu_percent REAL,
    memory_mb REAL,
    tokens INTEGER,
    cost_usd REAL,
    errors INTEGER,
    PRIMARY KEY (minute, agent_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE hours (
    hour INTEGER NOT NULL,
    agent_id TEXT NOT NULL,
    beats INTEGER NOT NULL,
    late_max REAL NOT NULL,
    load REAL,
    cpu_percent REAL,
    memory_mb REAL,
    tokens INTEGER,
    cost_usd REAL,
    errors INTEGER,
    PRIMARY KEY (hour, agent_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    digest BLOB NOT NULL,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    agents TEXT NOT NULL,
    made_at REAL NOT NULL,
    expires_at REAL,
    used_at REAL
) STRICT;
