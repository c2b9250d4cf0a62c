-- The hubs on this store. One of them leads: the one that took over last.
CREATE TABLE hubs (
    name text COLLATE "C" PRIMARY KEY,
    beat bigint NOT NULL,
    url text NOT NULL,
    version text NOT NULL,
    epoch bigint NOT NULL
);
