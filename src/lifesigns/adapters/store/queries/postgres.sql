-- The queries for PostgreSQL alone, all in the schema `lifesigns`: see `common.sql`.

-- lock_migrations --
-- Two hubs that start at once migrate one after the other. The number is arbitrary and unused elsewhere.
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

-- made_at --
-- Two stores were not made within the same microsecond.
SELECT extract(epoch FROM applied_at)::float8 FROM migrations WHERE number = 1;

-- record_migration --
INSERT INTO migrations (number, name) VALUES ($1, $2);

-- ledger --
-- Locked, so that no hub takes over during a commit.
SELECT epoch, page, event FROM hub FOR UPDATE;

-- keep_commit --
-- The first part of a commit, which is one statement: the server never waits for a hub in the middle of it, holding locks.
-- Fails with a division by zero, and changes nothing, if it is not the turn of this commit.
WITH turn AS (
    UPDATE hub SET page = $2, event = event + $3
    WHERE epoch = $1 AND page = $2 - 1 AND ($4::bigint IS NULL OR event = $4 - 1)
    RETURNING page
)
SELECT 1 / count(*) FROM turn;

-- ledger_seen --
SELECT epoch, page, event FROM hub;

-- end_blockers --
-- The sessions of other hubs for which the server's process $1 waits.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = ANY (pg_blocking_pids($1)) AND application_name = current_setting('application_name');

-- renew_and_list_hubs --
-- `renew_hub` and `hubs` at once: a hub that stands by does this twice a second.
WITH mine AS (
    INSERT INTO hubs (name, beat, url, version, zone, copied, epoch) VALUES ($1, 1, $2, $3, $4, $5, -1)
    ON CONFLICT (name) DO UPDATE
    SET beat = hubs.beat + 1, url = excluded.url, version = excluded.version, zone = excluded.zone, copied = excluded.copied
    RETURNING name, beat, url, version, zone, copied, drained, epoch
), every AS (
    SELECT * FROM mine
    UNION ALL SELECT name, beat, url, version, zone, copied, drained, epoch FROM hubs WHERE name <> $1
)
SELECT hub.epoch, name, beat, url, version, zone, copied, drained, every.epoch = hub.epoch
FROM every CROSS JOIN hub ORDER BY name;

-- belief_mark --
-- Transactions before the oldest one in progress have ended: whoever reads from now on sees them.
SELECT pg_postmaster_start_time()::text, page, pg_snapshot_xmin(pg_current_snapshot())::xid::text,
    (SELECT count(*) FROM beliefs)
FROM hub;

-- beliefs_since --
-- Those that were written by a transaction which may not have ended at the mark; all without one. This reads the whole
-- table, but asks nothing of the hub that writes: no column, no index, no log of changes. `age` counts from the present
-- transaction backwards, as numbers of transactions begin anew after four billion.
SELECT kind, key, value FROM beliefs WHERE $1::text IS NULL OR age(xmin) <= age($1::text::xid);

-- drop_beliefs --
DELETE FROM beliefs USING unnest($1::text[], $2::text[]) AS gone (kind, key)
WHERE beliefs.kind = gone.kind AND beliefs.key = gone.key;

-- settle_orders --
DELETE FROM orders WHERE order_id = ANY ($1::text[]);

-- samples_of --
-- One agent's hours and minutes in a range, in one statement and so of one moment. The key begins with the number, so
-- each is looked up; the first and the last existing number bound the range.
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

-- thin_minutes --
-- Take the minutes of an hour, of some agents.
DELETE FROM minutes
WHERE minute = ANY (ARRAY(SELECT generate_series($1::bigint * 60, $1::bigint * 60 + 59)))
    AND agent_id >= $2 AND agent_id < $3
RETURNING minutes.*;

-- drop_events --
-- Some of those before an id. An array takes half the time of a join with the rows to drop.
DELETE FROM events WHERE id = ANY (ARRAY(SELECT id FROM events WHERE id < $1 ORDER BY id LIMIT $2)) RETURNING id;

-- drop_minutes --
-- Some of those before a minute.
DELETE FROM minutes WHERE ctid = ANY (ARRAY(SELECT ctid FROM minutes WHERE minute < $1 LIMIT $2))
RETURNING minute;

-- drop_hours --
-- Some of those before an hour.
DELETE FROM hours WHERE ctid = ANY (ARRAY(SELECT ctid FROM hours WHERE hour < $1 LIMIT $2)) RETURNING hour;

-- make_slot_summaries --
-- Not a migration: only a fleet that several hubs judge has it.
CREATE TABLE IF NOT EXISTS slot_summaries (slot integer PRIMARY KEY, beat bigint NOT NULL, data bytea NOT NULL);

-- keep_slot_summaries --
-- `slot_summaries`, with what is new of some slots.
WITH kept AS (
    INSERT INTO slot_summaries (slot, beat, data) SELECT slot, 1, data FROM unnest($1::integer[], $2::bytea[]) AS own (slot, data)
    ON CONFLICT (slot) DO UPDATE SET beat = slot_summaries.beat + 1, data = excluded.data
    RETURNING slot, beat, data
)
SELECT * FROM kept UNION ALL SELECT slot, beat, data FROM slot_summaries WHERE slot <> ALL ($1::integer[]);

-- renew_in_slot --
-- The first half of `renew_and_list_hubs`, in the schema of a slot; one of several in a statement.
mine_{slot} AS (
    INSERT INTO {schema}.hubs (name, beat, url, version, zone, copied, epoch) VALUES ($1, 1, $2, $3, $4, {copied}, -1)
    ON CONFLICT (name) DO UPDATE
    SET beat = hubs.beat + 1, url = excluded.url, version = excluded.version, zone = excluded.zone, copied = excluded.copied
    RETURNING name, beat, url, version, zone, copied, drained, epoch
);

-- hubs_of_slot --
-- And the second half.
SELECT {slot}, hub.epoch, name, beat, url, version, zone, copied, drained, every.epoch = hub.epoch
FROM (
    SELECT * FROM mine_{slot}
    UNION ALL SELECT name, beat, url, version, zone, copied, drained, epoch FROM {schema}.hubs WHERE name <> $1
) AS every CROSS JOIN {schema}.hub;
