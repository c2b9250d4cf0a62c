"""Alerting: which events are alerts, and which channels get a notice, and when.

    events ──► reading ──► Alerts ──► routing, silences ──► grouping ──► AlertGroups ─► notifier ──► channels
               (kinds)     open,                            one or a     one notice
                           closing                          whole group  at a time

All of it but `notifier.py` is pure: the time comes in, and notices go out on request.

No notice waits in a queue. An alert group knows what it last sent to a channel and what is true now; when the channel
is free, alerting decides whether the difference is worth a notice. So no outdated notice is ever sent, a channel that
is away for a day costs no memory, and after a restart everything continues from a few rows of the store.
"""
