"""The audit log: every audited act is on record, and the record cannot be changed unseen.

    records.py    which events are audited acts, and how one becomes an entry
    log.py        the log of a running hub: entries go on the page of their event, seals vouch for them
    reading.py    the log read from its beginning, after a start
    proofs.py     that an entry is in the log, and that a log goes on from an older one
    notes.py      seals as text: checkpoints in the form that other tools read, too
    seal_file.py  the newest seal outside of the database
    state.py      what a hub needs to go on with the log, with a seal of all of it
    acceptance.py a person's word that a changed log is gone on with
    witnesses.py  those who keep every seal elsewhere

Entries are the leaves of a Merkle tree (`core/merkle.py`). A *seal* is a signed checkpoint: the root of the tree, signed
with a key that is not in the database; whether a log is what was sealed, the room `audit` finds out. Who changes, removes or swaps entries changes the root.
"""
