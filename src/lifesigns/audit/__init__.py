"""The audit log, looked at from outside: whether it is what the hub has written.

    keys.py         the key of a hub, and its public half for those who verify
    checkpoints.py  checkpoints that somebody kept
    verifying.py    whether a log is what was sealed, and if not, what was done to it
    stored.py       the log in the store, beside a hub that may run
    export.py       the log as a file
    proved.py       the log of a hub elsewhere, by its proofs

The log itself is the hub's: `hub/audit`. Nothing here writes to it.
"""
