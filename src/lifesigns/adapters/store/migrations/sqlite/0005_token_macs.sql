-- By which a hub knows that it has written this row.
ALTER TABLE tokens ADD COLUMN mac BLOB NOT NULL DEFAULT x'';
