-- What workers say of themselves: agents that tell how many tasks they have room for. NULL for all others.
ALTER TABLE minutes ADD COLUMN status TEXT;
ALTER TABLE minutes ADD COLUMN tasks INTEGER;
ALTER TABLE minutes ADD COLUMN capacity INTEGER;
ALTER TABLE minutes ADD COLUMN tasks_completed INTEGER;
ALTER TABLE minutes ADD COLUMN tasks_failed INTEGER;
ALTER TABLE minutes ADD COLUMN uptime_s REAL;
ALTER TABLE hours ADD COLUMN status TEXT;
ALTER TABLE hours ADD COLUMN tasks INTEGER;
ALTER TABLE hours ADD COLUMN capacity INTEGER;
ALTER TABLE hours ADD COLUMN tasks_completed INTEGER;
ALTER TABLE hours ADD COLUMN tasks_failed INTEGER;
ALTER TABLE hours ADD COLUMN uptime_s REAL;
