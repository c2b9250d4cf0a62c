"""Locks: issues that workers have claimed in an issue tracker, released when the worker is gone.

lock_watch.py       looks every minute: which locks there are, which are stale, what the comments should say
staleness.py        whether a lock is stale (pure)
holders.py          which workers may hold a lock, and what the engine knows of them
releasing.py        releases one, exactly once, however many monitors look
worker_comments.py  one comment for each issue that says how its workers are
wording.py          what is written into issues, and the marks by which we find it again (pure)
budget.py           how many comments may be written (pure)
rules.py            the configuration
"""
