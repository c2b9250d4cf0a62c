-- The queries for SQLite alone: see `common.sql`.

-- make_migrations --
CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at REAL NOT NULL) STRICT;

-- record_migration --
INSERT INTO migrations (number, name, applied_at) VALUES ($1, $2, unixepoch('subsec'));

-- ledger --
-- The transaction has the file's lock: no hub takes over during a commit.
SELECT epoch, page, event FROM hub;

-- belief_mark --
SELECT '', page, '', (SELECT count(*) FROM beliefs) FROM hub;

-- beliefs_since --
-- All of them, whatever the mark: a file has one hub, and nobody follows it.
SELECT kind, key, value FROM beliefs WHERE $1 IS NULL OR TRUE;

-- drop_beliefs --
DELETE FROM beliefs WHERE kind = $1 AND key = $2;

-- settle_orders --
DELETE FROM orders WHERE order_id = $1;

-- samples_of --
-- One agent's hours and minutes in a range, in one statement and so of one moment. The key begins with the number, so
-- each is looked up; the first and the last existing number bound the range.
WITH RECURSIVE asked_hours (hour) AS (
    SELECT max($2, (SELECT min(hour) FROM hours))
    UNION ALL
    SELECT hour + 1 FROM asked_hours WHERE hour < min($3, (SELECT max(hour) FROM hours))
), asked_minutes (minute) AS (
    SELECT max($4, (SELECT min(minute) FROM minutes))
    UNION ALL
    SELECT minute + 1 FROM asked_minutes WHERE minute < min($5, (SELECT max(minute) FROM minutes))
)
SELECT 3600 AS every, hours.* FROM asked_hours CROSS JOIN hours
WHERE hours.hour = asked_hours.hour AND hours.hour <= $3 AND agent_id = $1
UNION ALL
SELECT 60, minutes.* FROM asked_minutes CROSS JOIN minutes
WHERE minutes.minute = asked_minutes.minute AND minutes.minute <= $5 AND agent_id = $1
ORDER BY 1 DESC, 2;

-- thin_minutes --
-- Take the minutes of an hour, of some agents.
DELETE FROM minutes
WHERE minute IN (
    WITH RECURSIVE asked (minute) AS (
        SELECT $1 * 60 UNION ALL SELECT minute + 1 FROM asked WHERE minute < $1 * 60 + 59
    )
    SELECT minute FROM asked
) AND agent_id >= $2 AND agent_id < $3
RETURNING *;

-- drop_events --
-- Some of those before an id.
DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id < $1 ORDER BY id LIMIT $2) RETURNING id;

-- drop_minutes --
-- Some of those before a minute.
DELETE FROM minutes WHERE (minute, agent_id) IN (SELECT minute, agent_id FROM minutes WHERE minute < $1 LIMIT $2)
RETURNING minute;

-- drop_hours --
-- Some of those before an hour.
DELETE FROM hours WHERE (hour, agent_id) IN (SELECT hour, agent_id FROM hours WHERE hour < $1 LIMIT $2) RETURNING hour;
