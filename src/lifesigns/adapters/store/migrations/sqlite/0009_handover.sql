-- How far a hub that stands by has read, and which hubs are to hand over and not to judge.
ALTER TABLE hubs ADD COLUMN copied INTEGER NOT NULL DEFAULT -1;
ALTER TABLE hubs ADD COLUMN drained INTEGER NOT NULL DEFAULT 0;
