"""Stores: memory, SQLite, PostgreSQL. All pass one contract suite, so that a user may exchange them.

    memory.py          MemoryStore: in this process, shared by name
    sql_store.py       SqlStore: everything the SQL stores share except the connection
    sqlite.py          SqliteStore, and sqlite_file.py: one connection to a file, reopened when it breaks
    postgres.py        PostgresStore, and postgres_line.py: one connection to a server, reconnected when it is lost
    ledger.py          the next commit, and the hub that may write it
    rows.py            the rows of the databases, in the same columns
    event_filter.py    the filter of an event query
    sampling.py        minutes, and the hours made of them
    values.py          texts and numbers that a database does not take unchanged
    sql.py             queries and migrations, read from queries/*.sql and migrations/*/*.sql

`sqlite*.py` and `postgres*.py` load their driver; the others load nothing outside the standard library.
"""
