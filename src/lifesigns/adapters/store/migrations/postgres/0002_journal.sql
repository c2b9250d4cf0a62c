-- What the hub heard, packed by the hub, for a short while. In the order it was kept.
CREATE TABLE journal (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    from_at double precision NOT NULL,
    to_at double precision NOT NULL,
    signals bigint NOT NULL,
    data bytea NOT NULL
);
-- It is compressed already.
ALTER TABLE journal ALTER COLUMN data SET STORAGE EXTERNAL;
