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
UPDATE hub SET epoch = max(epoch + 1, ?) RETURNING epoch, page, event;

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

-- keep_chunks --
INSERT INTO journal (from_at, to_at, signals, data) VALUES (?, ?, ?, ?);

-- chunks --
-- Some of those in a range, after a position.
SELECT position, from_at, to_at, signals, data FROM journal
WHERE position > ? AND to_at >= ? AND from_at < ? ORDER BY position LIMIT ?;

-- drop_chunks --
-- Some of those before a moment.
DELETE FROM journal WHERE position IN (SELECT position FROM journal WHERE to_at < ? LIMIT ?);

-- drop_chunks_beyond --
-- Some of those which, with everything after them, are larger than so many bytes.
DELETE FROM journal WHERE position IN (
    SELECT position FROM (SELECT position, sum(length(data)) OVER (ORDER BY position DESC) AS size FROM journal)
    WHERE size > ? LIMIT ?
);

-- keep_audit_records --
-- What somebody else has put in the place of an entry to come is not in its way.
INSERT OR REPLACE INTO deeds (n, event_id, at, agent_id, who, leaf, entry) VALUES (?, ?, ?, ?, ?, ?, ?);

-- keep_seals --
INSERT OR REPLACE INTO seals VALUES (?, ?, ?);

-- audit_records --
-- Some in a range of numbers. They are few enough to look through for an agent or a person.
SELECT n, event_id, at, agent_id, who, leaf, entry FROM deeds
WHERE n > ?1 AND n < ?2 AND (?3 IS NULL OR agent_id = ?3) AND (?4 IS NULL OR who = ?4)
ORDER BY n LIMIT ?5;

-- newest_audit_records --
-- The same from the end.
SELECT n, event_id, at, agent_id, who, leaf, entry FROM deeds
WHERE n > ?1 AND n < ?2 AND (?3 IS NULL OR agent_id = ?3) AND (?4 IS NULL OR who = ?4)
ORDER BY n DESC LIMIT ?5;

-- retire_audit_records --
-- Those in a range of numbers that are not retired yet.
UPDATE deeds SET entry = NULL, agent_id = '', who = '' WHERE n >= ?1 AND n < ?2 AND entry IS NOT NULL;

-- seals --
SELECT size, at, note FROM seals WHERE size > ?1 ORDER BY size LIMIT ?2;

-- newest_seals --
SELECT size, at, note FROM seals WHERE size > ?1 ORDER BY size DESC LIMIT ?2;

-- drop_seals --
-- Some of those before a moment; never the newest.
DELETE FROM seals WHERE size IN (SELECT size FROM seals WHERE at < ?1 AND size < (SELECT max(size) FROM seals) LIMIT ?2);

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
