-- The queries of SqliteStore and PostgresStore; `sqlite.sql` and `postgres.sql` have those that differ, and
-- `event_filter.py` builds the one with many forms. Each begins with its name. `sql.py` translates them to either dialect:
-- values are `$1`, for SQLite `?1`. Where the values of a row have types, one statement stores all rows of a commit: to
-- PostgreSQL the columns come as arrays.

-- version --
-- The number of the last migration.
SELECT coalesce(max(number), 0) FROM migrations;

-- take_over --
-- The next hub: commits of the previous one are refused from here on.
-- `$2` is the epoch that this hub has seen; -1 if it takes over from any.
UPDATE hub SET epoch = CASE WHEN epoch < $1 THEN $1 ELSE epoch + 1 END WHERE $2::bigint = -1 OR epoch = $2::bigint
RETURNING epoch, page, event;

-- lead --
UPDATE hubs SET epoch = $1 WHERE name = $2;

-- renew_hub --
INSERT INTO hubs (name, beat, url, version, zone, copied, epoch) VALUES ($1, 1, $2, $3, $4, $5, -1)
ON CONFLICT (name) DO UPDATE
SET beat = hubs.beat + 1, url = excluded.url, version = excluded.version, zone = excluded.zone, copied = excluded.copied;

-- drain_hub --
UPDATE hubs SET drained = $2 WHERE name = $1 RETURNING name;

-- release_hub --
DELETE FROM hubs WHERE name = $1 RETURNING name;

-- hubs --
-- With the epoch of the store: the hub of that epoch leads.
SELECT hub.epoch, name, beat, url, version, zone, copied, drained, hubs.epoch = hub.epoch
FROM hubs CROSS JOIN hub ORDER BY name;

-- turn_page --
UPDATE hub SET page = $1, event = $2;

-- touch --
-- Changes nothing, but has to be written: only a write shows whether a commit would succeed.
UPDATE hub SET page = page;

-- beliefs --
SELECT kind, key, value FROM beliefs;

-- belief --
SELECT value FROM beliefs WHERE kind = $1 AND key = $2;

-- belief_keys --
SELECT kind, key FROM beliefs;

-- beliefs_after --
-- Some, in the order of their keys.
SELECT kind, key, value FROM beliefs WHERE (kind, key) > ($1, $2) ORDER BY kind, key LIMIT $3;

-- events_after --
SELECT id, at, type, agent_id, data FROM events WHERE id > $1 ORDER BY id LIMIT $2;

-- minutes_after --
SELECT * FROM minutes WHERE (minute, agent_id) > ($1, $2) ORDER BY minute, agent_id LIMIT $3;

-- hours_after --
SELECT * FROM hours WHERE (hour, agent_id) > ($1, $2) ORDER BY hour, agent_id LIMIT $3;

-- count_rows --
-- Of all tables that a move takes along, in its order.
SELECT
    (SELECT count(*) FROM beliefs), (SELECT count(*) FROM events), (SELECT count(*) FROM orders),
    (SELECT count(*) FROM minutes), (SELECT count(*) FROM hours), (SELECT count(*) FROM journal),
    (SELECT count(*) FROM deeds), (SELECT count(*) FROM seals), (SELECT count(*) FROM tokens);

-- continue_ledger --
-- A store that was moved here goes on from where it was.
UPDATE hub SET epoch = $1, page = $2, event = $3;

-- keep_beliefs --
INSERT INTO beliefs (kind, key, value) VALUES ($1::text, $2::text, $3::bytea)
ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value;

-- keep_events --
INSERT INTO events (id, at, type, agent_id, data) VALUES ($1::bigint, $2::float8, $3::text, $4::text, $5::bytea);

-- orders --
SELECT order_id, at, agent_id, data FROM orders ORDER BY at, position;

-- keep_orders --
INSERT INTO orders (order_id, at, agent_id, data) VALUES ($1::text, $2::float8, $3::text, $4::bytea)
ON CONFLICT (order_id) DO UPDATE SET at = excluded.at, agent_id = excluded.agent_id, data = excluded.data;

-- keep_minutes --
INSERT INTO minutes
VALUES ($1::bigint, $2::text, $3::bigint, $4::float8, $5::float8, $6::float8, $7::float8, $8::bigint, $9::float8, $10::bigint,
    $11::text, $12::bigint, $13::bigint, $14::bigint, $15::bigint, $16::float8)
ON CONFLICT (minute, agent_id) DO UPDATE SET
    beats = excluded.beats, late_max = excluded.late_max, load = excluded.load, cpu_percent = excluded.cpu_percent,
    memory_mb = excluded.memory_mb, tokens = excluded.tokens, cost_usd = excluded.cost_usd, errors = excluded.errors,
    status = excluded.status, tasks = excluded.tasks, capacity = excluded.capacity,
    tasks_completed = excluded.tasks_completed, tasks_failed = excluded.tasks_failed, uptime_s = excluded.uptime_s;

-- keep_hours --
INSERT INTO hours
VALUES ($1::bigint, $2::text, $3::bigint, $4::float8, $5::float8, $6::float8, $7::float8, $8::bigint, $9::float8, $10::bigint,
    $11::text, $12::bigint, $13::bigint, $14::bigint, $15::bigint, $16::float8)
ON CONFLICT (hour, agent_id) DO UPDATE SET
    beats = excluded.beats, late_max = excluded.late_max, load = excluded.load, cpu_percent = excluded.cpu_percent,
    memory_mb = excluded.memory_mb, tokens = excluded.tokens, cost_usd = excluded.cost_usd, errors = excluded.errors,
    status = excluded.status, tasks = excluded.tasks, capacity = excluded.capacity,
    tasks_completed = excluded.tasks_completed, tasks_failed = excluded.tasks_failed, uptime_s = excluded.uptime_s;

-- keep_chunks --
INSERT INTO journal (from_at, to_at, signals, data) VALUES ($1::float8, $2::float8, $3::bigint, $4::bytea);

-- chunks --
-- Some of those in a range, after a position.
SELECT position, from_at, to_at, signals, data FROM journal
WHERE position > $1 AND to_at >= $2 AND from_at < $3 ORDER BY position LIMIT $4;

-- keep_audit_records --
-- Overwrites a row that somebody else has put under a future number.
INSERT INTO deeds (n, event_id, at, agent_id, who, leaf, entry)
VALUES ($1::bigint, $2::bigint, $3::float8, $4::text, $5::text, $6::bytea, $7::bytea)
ON CONFLICT (n) DO UPDATE SET
    event_id = excluded.event_id, at = excluded.at, agent_id = excluded.agent_id, who = excluded.who,
    leaf = excluded.leaf, entry = excluded.entry;

-- audit_records --
-- Some in a range of numbers. They are few enough to filter by agent or person without an index.
SELECT n, event_id, at, agent_id, who, leaf, entry FROM deeds
WHERE n > $1 AND n < $2 AND (cast($3 AS text) IS NULL OR agent_id = $3) AND (cast($4 AS text) IS NULL OR who = $4)
ORDER BY n LIMIT $5;

-- newest_audit_records --
-- The same from the end.
SELECT n, event_id, at, agent_id, who, leaf, entry FROM deeds
WHERE n > $1 AND n < $2 AND (cast($3 AS text) IS NULL OR agent_id = $3) AND (cast($4 AS text) IS NULL OR who = $4)
ORDER BY n DESC LIMIT $5;

-- retire_audit_records --
-- Those in a range of numbers that are not retired yet.
UPDATE deeds SET entry = NULL, agent_id = '', who = '' WHERE n >= $1 AND n < $2 AND entry IS NOT NULL RETURNING n;

-- keep_seals --
INSERT INTO seals (size, at, note) VALUES ($1::bigint, $2::float8, $3::text)
ON CONFLICT (size) DO UPDATE SET at = excluded.at, note = excluded.note;

-- seals --
SELECT size, at, note FROM seals WHERE size > $1 ORDER BY size LIMIT $2;

-- newest_seals --
SELECT size, at, note FROM seals WHERE size > $1 ORDER BY size DESC LIMIT $2;

-- oldest_minute --
SELECT min(minute) FROM minutes;

-- agents_in_minute --
SELECT agent_id FROM minutes WHERE minute = $1 ORDER BY agent_id;

-- hours_to_thin --
-- The existing rows of an hour, for some agents.
SELECT * FROM hours WHERE hour = $1 AND agent_id >= $2 AND agent_id < $3;

-- tokens --
SELECT id, digest, role, name, agents, made_at, expires_at, used_at, mac FROM tokens ORDER BY made_at, id;

-- keep_token --
INSERT INTO tokens VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (id) DO UPDATE SET
    digest = excluded.digest, role = excluded.role, name = excluded.name, agents = excluded.agents,
    made_at = excluded.made_at, expires_at = excluded.expires_at, used_at = excluded.used_at,
    mac = excluded.mac;

-- drop_token --
DELETE FROM tokens WHERE id = $1 RETURNING id;

-- drop_chunks --
-- Some of those before a moment.
DELETE FROM journal WHERE position IN (SELECT position FROM journal WHERE to_at < $1 LIMIT $2) RETURNING position;

-- drop_chunks_beyond --
-- Some of the chunks beyond a total size, counted from the newest.
DELETE FROM journal WHERE position IN (
    SELECT position FROM (
        SELECT position, sum(octet_length(data)) OVER (ORDER BY position DESC) AS size FROM journal
    ) AS sizes
    WHERE size > $1 LIMIT $2
) RETURNING position;

-- drop_seals --
-- Some of those before a moment; never the newest.
DELETE FROM seals WHERE size IN (
    SELECT size FROM seals WHERE at < $1 AND size < (SELECT max(size) FROM seals) LIMIT $2
) RETURNING size;
