"""Monitor: the health of agents in this very process. The same engine judges them, in a thread of its own.

    monitor.py          the front: watch, on, health, metrics
    monitor_thread.py   the thread: hears reports, looks, judges, tells
    loops.py            an event loop and its agents: does it still answer, and what holds it up
    tasks.py threads.py processes.py emitters.py     what each kind of agent shows of itself
    attachment.py       what these share
    watched.py          one agent: the handle for its owner
    listeners.py        callbacks, in a thread of theirs

The laws: a sign of life costs an agent an attribute write. We ask a loop once a tick, however many agents live on it.
Only time in which we looked counts against an agent. A callback can neither delay nor disturb the judging.
"""

from __future__ import annotations

from lifesigns.agent.monitor.aliases import AgentHealthMonitor
from lifesigns.agent.monitor.events import AgentMetrics, Event
from lifesigns.agent.monitor.monitor import Monitor
from lifesigns.agent.monitor.watched import WatchedAgent

__all__ = ["AgentHealthMonitor", "AgentMetrics", "Event", "Monitor", "WatchedAgent"]
