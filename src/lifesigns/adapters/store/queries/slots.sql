-- Slots of agents and their owners, for PostgreSQL alone: one hub on a file owns everything.
-- Locks are taken in one order, here and in commits: hubs by name, slots by number, then the ledger.

-- make_slots --
-- Not a migration: only hubs that judge together have these.
ALTER TABLE hubs ADD COLUMN IF NOT EXISTS format integer NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS slots (
    slot integer PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    owner text COLLATE "C" NOT NULL DEFAULT '',
    format integer NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS slot_epochs (one boolean PRIMARY KEY DEFAULT true CHECK (one), epoch bigint NOT NULL);
INSERT INTO slots (slot) SELECT generate_series(0, 255) ON CONFLICT DO NOTHING;
INSERT INTO slot_epochs (epoch) VALUES (0) ON CONFLICT DO NOTHING;

-- renew_slot_hub --
UPDATE hubs SET beat = beat + 1, format = $2 WHERE name = $1 RETURNING beat;

-- slot_hubs --
SELECT name, beat, format, drained FROM hubs ORDER BY name;

-- slots --
-- A statement of its own, after the renewal: a claim that was made before it is seen.
SELECT slot, epoch, owner, format FROM slots ORDER BY slot;

-- lock_slot_hubs --
-- An owner that renews its row waits here until the claim is made, or the claim until the owner has renewed its row.
SELECT name, beat FROM hubs WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE;

-- lock_slots --
SELECT slot, epoch, owner FROM slots WHERE slot = ANY ($1::integer[]) ORDER BY slot FOR UPDATE;

-- next_slot_epoch --
-- Agents have heard the epoch of the store, if a hub led alone before.
UPDATE slot_epochs SET epoch = greatest(slot_epochs.epoch, (SELECT epoch FROM hub)) + 1 RETURNING epoch;

-- own_slots --
UPDATE slots SET epoch = $1, owner = changed.owner
FROM unnest($2::integer[], $3::text[]) AS changed (slot, owner) WHERE slots.slot = changed.slot;
