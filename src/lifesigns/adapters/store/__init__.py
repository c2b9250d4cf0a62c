"""Stores: memory, SQLite, PostgreSQL. They pass one contract suite, so that a user may change one for another.

    memory.py          MemoryStore: in this process, shared by name
    sql_store.py       SqlStore: all that the stores in a database do, but reach it
    sqlite.py          SqliteStore, and sqlite_file.py: one connection to a file, given up when it breaks
    postgres.py        PostgresStore, and postgres_line.py: one connection to a server, looked for again when it is lost
    ledger.py          which page is next, and whose turn it is
    rows.py            what the databases keep, in the same columns
    event_filter.py    which events are asked for
    sampling.py        minutes, of which hours are made
    values.py          texts and numbers that a database would not take as they are
    sql.py             queries and migrations, read from queries/*.sql and migrations/*/*.sql

`sqlite*.py` and `postgres*.py` load their driver; the others load nothing outside the standard library.
"""
