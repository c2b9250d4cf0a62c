-- What workers say of themselves: agents that tell how many tasks they have room for. NULL for all others.
ALTER TABLE minutes ADD COLUMN status text;
ALTER TABLE minutes ADD COLUMN tasks bigint;
ALTER TABLE minutes ADD COLUMN capacity bigint;
ALTER TABLE minutes ADD COLUMN tasks_completed bigint;
ALTER TABLE minutes ADD COLUMN tasks_failed bigint;
ALTER TABLE minutes ADD COLUMN uptime_s double precision;
ALTER TABLE hours ADD COLUMN status text;
ALTER TABLE hours ADD COLUMN tasks bigint;
ALTER TABLE hours ADD COLUMN capacity bigint;
ALTER TABLE hours ADD COLUMN tasks_completed bigint;
ALTER TABLE hours ADD COLUMN tasks_failed bigint;
ALTER TABLE hours ADD COLUMN uptime_s double precision;
