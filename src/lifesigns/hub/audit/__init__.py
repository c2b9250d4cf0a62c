"""The audit log: it records every audited act, and no one can change the record unseen.

    records.py    which events are audited acts, and how one becomes an entry
    log.py        the log of a running hub: entries are in the commit of their event, seals vouch for them
    reading.py    reads the log from its beginning, after a start
    proofs.py     that an entry is in the log, and that a log extends an older one
    notes.py      seals as text: checkpoints in the form that other tools read, too
    seal_file.py  the newest seal outside of the database
    state.py      what a hub needs to continue the log, with a seal of all of it
    acceptance.py a person's decision to continue a changed log
    witnesses.py  send every seal elsewhere

Entries are the leaves of a Merkle tree (`core/merkle.py`). A *seal* is a signed checkpoint: the root of the tree,
signed with a key that is not in the database. To change, remove or swap entries changes the root; the room `audit`
compares a log with its seals.
"""
