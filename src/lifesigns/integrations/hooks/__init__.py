"""Hooks: coding agents that tell of themselves, as agents of ours.

    the program ── event (JSON) ──► client.sh ── POST /hooks/NAME ──► events.py: read ──► NAME.py: signals
         ▲                              └── hub away: spool                                        │
         └── context, denial, stop ◄── answers.py ◄── open orders and breakers ◄── Hub ◄───────────┘
                                       registry.py: its process and transcript ── beats, tokens, exit ─►┘

A session of the program is an agent, and so is each of its subagents. Hooks are silent while the model thinks and when the
process is killed, so the hub also watches the process itself (`registry.py`): that is why hub and program share a machine.
"""
