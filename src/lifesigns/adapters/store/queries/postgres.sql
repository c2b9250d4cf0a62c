-- The queries of PostgresStore, all in the schema `lifesigns`. What a page changes in a table is one statement, however
-- many rows: the columns come as arrays. `event_filter.py` makes the query that has many shapes.

-- lock_migrations --
-- Two hubs that start at once migrate one after the other. The number is any that nobody else uses.
SELECT pg_advisory_xact_lock(7311862519);

-- has_schema --
SELECT to_regnamespace('lifesigns') IS NOT NULL;

-- make_schema --
CREATE SCHEMA lifesigns;

-- has_migrations --
SELECT to_regclass('lifesigns.migrations') IS NOT NULL;

-- make_migrations --
CREATE TABLE lifesigns.migrations (
    number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
);

-- version --
-- The number of the last migration.
SELECT coalesce(max(number), 0) FROM migrations;

-- record_migration --
INSERT INTO migrations (number, name) VALUES ($1, $2);

-- take_over --
-- The next hub: the pages of the one before are refused from here on.
UPDATE hub SET epoch = greatest(epoch + 1, $1) RETURNING epoch, page, event;

-- ledger --
-- Locked, so that nobody takes over while a page is written.
SELECT epoch, page, event FROM hub FOR UPDATE;

-- turn_page --
UPDATE hub SET page = $1, event = $2;

-- touch --
-- Changes nothing, but has to be written: whether the server takes a page is known by writing one.
UPDATE hub SET page = page;

-- beliefs --
SELECT kind, key, value FROM beliefs;

-- keep_beliefs --
INSERT INTO beliefs (kind, key, value)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[])
ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value;

-- drop_beliefs --
DELETE FROM beliefs USING unnest($1::text[], $2::text[]) AS gone (kind, key)
WHERE beliefs.kind = gone.kind AND beliefs.key = gone.key;

-- keep_events --
INSERT INTO events (id, at, type, agent_id, data)
SELECT * FROM unnest($1::bigint[], $2::float8[], $3::text[], $4::text[], $5::bytea[]);

-- drop_events --
-- Some of those before a moment.
DELETE FROM events WHERE id = ANY (ARRAY(SELECT id FROM events WHERE at < $1 LIMIT $2));

-- orders --
SELECT order_id, at, agent_id, data FROM orders ORDER BY at, position;

-- keep_orders --
INSERT INTO orders (order_id, at, agent_id, data)
SELECT * FROM unnest($1::text[], $2::float8[], $3::text[], $4::bytea[])
ON CONFLICT (order_id) DO UPDATE SET at = excluded.at, agent_id = excluded.agent_id, data = excluded.data;

-- settle_orders --
DELETE FROM orders WHERE order_id = ANY ($1::text[]);

-- keep_minutes --
INSERT INTO minutes
SELECT * FROM unnest(
    $1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::float8[], $6::float8[], $7::float8[], $8::bigint[],
    $9::float8[], $10::bigint[]
)
ON CONFLICT (minute, agent_id) DO UPDATE SET
    beats = excluded.beats, late_max = excluded.late_max, load = excluded.load, cpu_percent = excluded.cpu_percent,
    memory_mb = excluded.memory_mb, tokens = excluded.tokens, cost_usd = excluded.cost_usd, errors = excluded.errors;

-- keep_hours --
INSERT INTO hours
SELECT * FROM unnest(
    $1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::float8[], $6::float8[], $7::float8[], $8::bigint[],
    $9::float8[], $10::bigint[]
)
ON CONFLICT (hour, agent_id) DO UPDATE SET
    beats = excluded.beats, late_max = excluded.late_max, load = excluded.load, cpu_percent = excluded.cpu_percent,
    memory_mb = excluded.memory_mb, tokens = excluded.tokens, cost_usd = excluded.cost_usd, errors = excluded.errors;

-- samples_of --
-- One agent's hours and minutes in a range, in one statement and so of one moment. The key begins with the number, so
-- each is looked up; the first and the last that there are bound the range.
SELECT 3600 AS every, hours.* FROM hours WHERE agent_id = $1 AND hour = ANY (ARRAY(
    SELECT generate_series(greatest($2::bigint, first), least($3::bigint, last))
    FROM (SELECT min(hour), max(hour) FROM hours) AS known (first, last) WHERE first IS NOT NULL
))
UNION ALL
SELECT 60, minutes.* FROM minutes WHERE agent_id = $1 AND minute = ANY (ARRAY(
    SELECT generate_series(greatest($4::bigint, first), least($5::bigint, last))
    FROM (SELECT min(minute), max(minute) FROM minutes) AS known (first, last) WHERE first IS NOT NULL
))
ORDER BY 1 DESC, 2;

-- keep_chunks --
INSERT INTO journal (from_at, to_at, signals, data)
SELECT * FROM unnest($1::float8[], $2::float8[], $3::bigint[], $4::bytea[]);

-- chunks --
-- Some of those in a range, after a position.
SELECT position, from_at, to_at, signals, data FROM journal
WHERE position > $1 AND to_at >= $2 AND from_at < $3 ORDER BY position LIMIT $4;

-- drop_chunks --
-- Some of those before a moment.
DELETE FROM journal WHERE position = ANY (ARRAY(SELECT position FROM journal WHERE to_at < $1 LIMIT $2));

-- drop_chunks_beyond --
-- Some of those which, with everything after them, are larger than so many bytes.
DELETE FROM journal WHERE position = ANY (ARRAY(
    SELECT position FROM (
        SELECT position, sum(octet_length(data)) OVER (ORDER BY position DESC) AS size FROM journal
    ) AS sizes
    WHERE size > $1 LIMIT $2
));

-- keep_audit_records --
-- What somebody else has put in the place of an entry to come is not in its way.
INSERT INTO deeds (n, event_id, at, agent_id, who, leaf, entry)
SELECT * FROM unnest(
    $1::bigint[], $2::bigint[], $3::float8[], $4::text[], $5::text[], $6::bytea[], $7::bytea[]
)
ON CONFLICT (n) DO UPDATE SET
    event_id = excluded.event_id, at = excluded.at, agent_id = excluded.agent_id, who = excluded.who,
    leaf = excluded.leaf, entry = excluded.entry;

-- keep_seals --
INSERT INTO seals SELECT * FROM unnest($1::bigint[], $2::float8[], $3::text[])
ON CONFLICT (size) DO UPDATE SET at = excluded.at, note = excluded.note;

-- audit_records --
-- Some in a range of numbers. They are few enough to look through for an agent or a person.
SELECT n, event_id, at, agent_id, who, leaf, entry FROM deeds
WHERE n > $1 AND n < $2 AND ($3::text IS NULL OR agent_id = $3) AND ($4::text IS NULL OR who = $4)
ORDER BY n LIMIT $5;

-- newest_audit_records --
-- The same from the end.
SELECT n, event_id, at, agent_id, who, leaf, entry FROM deeds
WHERE n > $1 AND n < $2 AND ($3::text IS NULL OR agent_id = $3) AND ($4::text IS NULL OR who = $4)
ORDER BY n DESC LIMIT $5;

-- retire_audit_records --
-- Those in a range of numbers that are not retired yet.
UPDATE deeds SET entry = NULL, agent_id = '', who = '' WHERE n >= $1 AND n < $2 AND entry IS NOT NULL;

-- seals --
SELECT size, at, note FROM seals WHERE size > $1 ORDER BY size LIMIT $2;

-- newest_seals --
SELECT size, at, note FROM seals WHERE size > $1 ORDER BY size DESC LIMIT $2;

-- drop_seals --
-- Some of those before a moment; never the newest.
DELETE FROM seals WHERE size = ANY (ARRAY(
    SELECT size FROM seals WHERE at < $1 AND size < (SELECT max(size) FROM seals) LIMIT $2
));

-- oldest_minute --
SELECT min(minute) FROM minutes;

-- agents_in_minute --
SELECT agent_id FROM minutes WHERE minute = $1 ORDER BY agent_id;

-- thin_minutes --
-- Take the minutes of an hour, of some agents.
DELETE FROM minutes
WHERE minute = ANY (ARRAY(SELECT generate_series($1::bigint * 60, $1::bigint * 60 + 59)))
    AND agent_id >= $2 AND agent_id < $3
RETURNING minutes.*;

-- hours_to_thin --
-- What is there already of that hour, of the same agents.
SELECT * FROM hours WHERE hour = $1 AND agent_id >= $2 AND agent_id < $3;

-- drop_minutes --
-- Some of those before a minute.
DELETE FROM minutes WHERE ctid = ANY (ARRAY(SELECT ctid FROM minutes WHERE minute < $1 LIMIT $2));

-- drop_hours --
-- Some of those before an hour.
DELETE FROM hours WHERE ctid = ANY (ARRAY(SELECT ctid FROM hours WHERE hour < $1 LIMIT $2));

-- tokens --
SELECT id, digest, role, name, agents, made_at, expires_at, used_at FROM tokens ORDER BY made_at, id;

-- keep_token --
INSERT INTO tokens VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO UPDATE SET
    digest = excluded.digest, role = excluded.role, name = excluded.name, agents = excluded.agents,
    made_at = excluded.made_at, expires_at = excluded.expires_at, used_at = excluded.used_at;

-- drop_token --
DELETE FROM tokens WHERE id = $1;
