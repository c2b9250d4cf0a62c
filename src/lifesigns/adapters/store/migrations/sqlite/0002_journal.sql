-- What the hub heard, packed by the hub, for a short while. In the order it was kept.
CREATE TABLE journal (
    position INTEGER PRIMARY KEY,
    from_at REAL NOT NULL,
    to_at REAL NOT NULL,
    signals INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
