-- Texts are compared byte by byte: ids are no words of a language, and this is faster.

-- How far this store is written, and by whom: one row.
CREATE TABLE hub (
    one integer PRIMARY KEY CHECK (one = 1),
    epoch bigint NOT NULL,
    page bigint NOT NULL,
    event bigint NOT NULL
);
INSERT INTO hub VALUES (1, 0, 0, 0);

-- Room is left on its pages, so that a changed belief stays on its own and the index is left alone.
CREATE TABLE beliefs (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);

CREATE TABLE events (
    id bigint PRIMARY KEY,
    at double precision NOT NULL,
    type text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    data bytea NOT NULL
);
CREATE INDEX events_of_agent ON events (agent_id, id);
CREATE INDEX events_of_type ON events (type, id);
CREATE INDEX events_at ON events (at);

CREATE TABLE orders (
    position bigint GENERATED ALWAYS AS IDENTITY,
    order_id text COLLATE "C" PRIMARY KEY,
    at double precision NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    data bytea NOT NULL
);

CREATE TABLE minutes (
    minute bigint NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    beats bigint NOT NULL,
    late_max double precision NOT NULL,
    load double precision,
    cpu_percent double precision,
    memory_mb double precision,
    tokens bigint,
    cost_usd double precision,
    errors bigint,
    PRIMARY KEY (minute, agent_id)
);

CREATE TABLE hours (
    hour bigint NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    beats bigint NOT NULL,
    late_max double precision NOT NULL,
    load double precision,
    cpu_percent double precision,
    memory_mb double precision,
    tokens bigint,
    cost_usd double precision,
    errors bigint,
    PRIMARY KEY (hour, agent_id)
);

CREATE TABLE tokens (
    id text COLLATE "C" PRIMARY KEY,
    digest bytea NOT NULL,
    role text NOT NULL,
    name text NOT NULL,
    agents text NOT NULL,
    made_at double precision NOT NULL,
    expires_at double precision,
    used_at double precision
);
