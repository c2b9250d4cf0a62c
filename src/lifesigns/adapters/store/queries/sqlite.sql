-- The queries of SqliteStore. Each begins with its name; `event_filter.py` makes the one that has many shapes.

-- make_migrations --
CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at REAL NOT NULL) STRICT;

-- version --
-- The number of the last migration.
SELECT coalesce(max(number), 0) FROM migrations;

-- record_migration --
INSERT INTO migrations (number, name, applied_at) VALUES (?, ?, unixepoch('subsec'));

-- take_over --
-- The next hub: the pages of the one before are refused from here on.
UPDATE hub SET epoch = epoch + 1 RETURNING epoch, page, event;

-- ledger --
SELECT epoch, page, event FROM hub;

-- turn_page --
UPDATE hub SET page = ?, event = ?;

-- touch --
-- Changes nothing, but has to be written: whether the disk takes a page is known by writing one.
UPDATE hub SET page = page;

-- beliefs --
SELECT kind, key, value FROM beliefs;

-- keep_beliefs --
INSERT INTO beliefs (kind, key, value) VALUES (?, ?, ?)
ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value;

-- drop_beliefs --
DELETE FROM beliefs WHERE kind = ? AND key = ?;

-- keep_events --
INSERT INTO events (id, at, type, agent_id, data) VALUES (?, ?, ?, ?, ?);

-- drop_events --
-- Some of those before a moment.
DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at < ? LIMIT ?);

-- orders --
SELECT order_id, at, agent_id, data FROM orders ORDER BY at, position;

-- keep_orders --
INSERT INTO orders (order_id, at, agent_id, data) VALUES (?, ?, ?, ?)
ON CONFLICT (order_id) DO UPDATE SET at = excluded.at, agent_id = excluded.agent_id, data = excluded.data;

-- settle_orders --
DELETE FROM orders WHERE order_id = ?;

-- keep_minutes --
INSERT OR REPLACE INTO minutes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- keep_hours --
INSERT OR REPLACE INTO hours VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- minutes_of --
-- One agent's minutes in a range. The key begins with the minute, so each is looked up; the first and the last that
-- there are bound the range.
WITH RECURSIVE asked (minute) AS (
    SELECT max(?1, (SELECT min(minute) FROM minutes))
    UNION ALL
    SELECT minute + 1 FROM asked WHERE minute < min(?2, (SELECT max(minute) FROM minutes))
)
SELECT minutes.* FROM asked CROSS JOIN minutes
WHERE minutes.minute = asked.minute AND minutes.minute <= ?2 AND agent_id = ?3
ORDER BY minutes.minute;

-- hours_of --
-- One agent's hours in a range, as `minutes_of`.
WITH RECURSIVE asked (hour) AS (
    SELECT max(?1, (SELECT min(hour) FROM hours))
    UNION ALL
    SELECT hour + 1 FROM asked WHERE hour < min(?2, (SELECT max(hour) FROM hours))
)
SELECT hours.* FROM asked CROSS JOIN hours
WHERE hours.hour = asked.hour AND hours.hour <= ?2 AND agent_id = ?3
ORDER BY hours.hour;

-- oldest_minute --
SELECT min(minute) FROM minutes;

-- agents_in_minute --
SELECT agent_id FROM minutes WHERE minute = ? ORDER BY agent_id;

-- minutes_to_thin --
-- The minutes of an hour, of some agents.
WITH RECURSIVE asked (minute) AS (
    SELECT ?1 * 60 UNION ALL SELECT minute + 1 FROM asked WHERE minute < ?1 * 60 + 59
)
SELECT minutes.* FROM asked CROSS JOIN minutes
WHERE minutes.minute = asked.minute AND agent_id >= ?2 AND agent_id < ?3;

-- hours_to_thin --
-- What is there already of that hour, of the same agents.
SELECT * FROM hours WHERE hour = ? AND agent_id >= ? AND agent_id < ?;

-- drop_thinned --
DELETE FROM minutes WHERE minute = ? AND agent_id >= ? AND agent_id < ?;

-- drop_minutes --
-- Some of those before a minute.
DELETE FROM minutes WHERE (minute, agent_id) IN (SELECT minute, agent_id FROM minutes WHERE minute < ? LIMIT ?);

-- drop_hours --
-- Some of those before an hour.
DELETE FROM hours WHERE (hour, agent_id) IN (SELECT hour, agent_id FROM hours WHERE hour < ? LIMIT ?);

-- tokens --
SELECT id, digest, role, name, agents, made_at, expires_at, used_at FROM tokens ORDER BY made_at, id;

-- keep_token --
INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- drop_token --
DELETE FROM tokens WHERE id = ?;
