-- The zone of each hub: hubs in other zones are asked before a verdict of silence. Empty if it has none.
ALTER TABLE hubs ADD COLUMN zone text NOT NULL DEFAULT '';
