-- How far a hub that stands by has read, and which hubs are to hand over and not to judge.
ALTER TABLE hubs ADD COLUMN copied bigint NOT NULL DEFAULT -1;
ALTER TABLE hubs ADD COLUMN drained boolean NOT NULL DEFAULT false;
