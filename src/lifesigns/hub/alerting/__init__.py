"""Alerting: which events are alerts, who is told, and when.

    events ──► reading ──► Alerts ──► routing, silences ──► grouping ──► AlertGroups ─► notifier ──► channels
               (kinds)     open,                            one or a     one notice
                           closing                          whole group  at a time

All of it but `notifier.py` is pure: the time comes in, and nothing goes out but notices for those who ask for them.
Nothing that is to be told waits in a queue. An alert group knows what it last told a channel and what is true now, and whether
the difference is worth a notice is seen when the channel has time for one: so what is outdated is never told, a channel
that is away for a day costs no memory, and after a restart everything goes on from a few rows of the store.
"""
