-- The hubs on this store. One of them leads: the one that took over last.
CREATE TABLE hubs (
    name TEXT PRIMARY KEY,
    beat INTEGER NOT NULL,
    url TEXT NOT NULL,
    version TEXT NOT NULL,
    epoch INTEGER NOT NULL
) STRICT;
