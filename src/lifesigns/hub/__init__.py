"""The hub: runs the engine for a fleet.

    receivers (web, bus) ──► inbox ──► engine ──► commit ──► store ──► dispatcher ──► agents, people
                               ▲                                        │
                               └────────── outcomes of orders ──────────┘

`hub.py` is the loop. It decides nothing: it drains the inbox, lets the engine judge, stores the commit, and carries out
what was stored.
"""
