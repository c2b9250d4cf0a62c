"""Monitor: the health of agents in this very process, judged by the same engine, in a thread of its own.

    monitor.py     the front: watch, on, health, metrics
    monitor_thread.py the thread: hears what was said, looks, judges, tells
    loops.py       an event loop and those who live on it: does it still answer, and who holds it up
    tasks.py threads.py processes.py emitters.py     what each kind of agent shows of itself; attachment.py what they share
    watched.py     one agent: the handle its owner speaks through
    listeners.py   callbacks, in a thread of theirs

The laws: an agent pays an attribute write for a sign of life. A loop is asked once a tick, however many agents live on
it. Only time in which we looked counts against anybody. A callback can neither delay nor disturb the judging.
"""

from __future__ import annotations

from lifesigns.agent.monitor.aliases import AgentHealthMonitor
from lifesigns.agent.monitor.events import AgentMetrics, Event
from lifesigns.agent.monitor.monitor import Monitor
from lifesigns.agent.monitor.watched import WatchedAgent

__all__ = ["AgentHealthMonitor", "AgentMetrics", "Event", "Monitor", "WatchedAgent"]
