"""Verifies the audit log from outside: whether it is what the hub has written.

    keys.py         the key of a hub, and its public half for verifiers
    checkpoints.py  stored checkpoints
    verifying.py    whether a log is what was sealed, and if not, what was done to it
    stored.py       the log in the store, beside a hub that may run
    export.py       the log as a file
    proved.py       the log of a remote hub, by its proofs

The hub owns the log itself: `hub/audit`. Nothing here writes to it.
"""
