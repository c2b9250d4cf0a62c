-- By which a hub knows that it has written this row.
ALTER TABLE tokens ADD COLUMN mac bytea NOT NULL DEFAULT '';
