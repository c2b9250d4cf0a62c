-- The audit log, entry by entry; its place is its number. An entry is retired after a year or so, its leaf never.
CREATE TABLE deeds (
    n bigint PRIMARY KEY,
    event_id bigint NOT NULL,
    at double precision NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    who text COLLATE "C" NOT NULL,
    leaf bytea NOT NULL,
    entry bytea
);

-- Its signed checkpoints.
CREATE TABLE seals (
    size bigint PRIMARY KEY,
    at double precision NOT NULL,
    note text NOT NULL
);
