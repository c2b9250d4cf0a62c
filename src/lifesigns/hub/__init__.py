"""The hub: runs the engine for a fleet.

    doors (web, bus) ──► inbox ──► engine ──► page ──► store ──► dispatcher ──► agents, people
                            ▲                                        │
                            └────────── outcomes of orders ──────────┘

`hub.py` is the loop. It decides nothing: it drains what came in, lets the engine judge, keeps the page, and carries
out what was kept.
"""
