"""Exit report: what we tell about an ended life: to people, to the watch, and to the next life."""

from __future__ import annotations

from typing import Any, Final

from lifesigns.agent.supervise.life import HANDOFF_MAX, Handoff, Life, cut
from lifesigns.agent.supervise.restarts import Next, Plan
from lifesigns.agent.supervise.settings import RestartPolicy
from lifesigns.agent.supervise.status_messages import StatusMessage
from lifesigns.core.signals import AgentLeft, ProcessExited
from lifesigns.core.words import duration, times
from lifesigns.events.catalogue import AGENT_TERMINATED

DETAIL_MAX: Final = 400
"""The wire carries 1 KiB of a detail, and a hub quotes it in a handoff of the same limit."""
LINES_SAID: Final = 20


class ExitReport:
    """The end of one life."""

    def __init__(self, agent_id: str, life: Life) -> None:
        assert life.end is not None
        self._agent_id = agent_id
        self._life = life
        self._end = life.end
        self._after = duration(life.lived_for(life.ended_at))

    def exited(self) -> ProcessExited:
        """For the watch: how it ended, and its last lines."""
        lines = self._life.tail.last(LINES_SAID, DETAIL_MAX)
        return ProcessExited(
            agent_id=self._agent_id,
            incarnation=self._life.incarnation,
            status=self._end.status,
            signal=self._end.signal,
            detail="Last output: " + " | ".join(lines) if lines else "",
        )

    def left(self) -> AgentLeft:
        """For the watch: its user ended it."""
        reason = f"ended by its user, with {self._end}"
        return AgentLeft(agent_id=self._agent_id, incarnation=self._life.incarnation, reason=reason)

    def ended(self, plan: Plan, policy: RestartPolicy) -> StatusMessage:
        """For people: it ended by itself."""
        then = "."
        if plan.next is Next.RESTART:
            of = f" ({plan.attempt} of {policy.crash_loop_max})" if self._end.failed else ""
            then = f"; restarting in {duration(plan.wait)}{of}."
        elif plan.next is Next.QUARANTINE:
            window = duration(policy.crash_loop_window)
            then = f"; it was restarted {times(plan.attempt)} within {window}, and is not restarted any more."
        details = self._details() | {"next": plan.next, "restart_in_s": round(plan.wait, 3)}
        quiet = not self._end.failed
        return StatusMessage("PROCESS_EXITED", f"{self._agent_id} {self._how()}{then}", quiet, details)

    def stopped(self, reason: str, *, forced: bool) -> StatusMessage:
        """For people: it was ended."""
        by_force = " It did not end when asked and was killed." if forced else ""
        text = f"{self._agent_id} was stopped after {self._after}: {reason.rstrip('.')}.{by_force}"
        return StatusMessage(
            AGENT_TERMINATED, text, details=self._details() | {"reason": reason, "forced": forced}
        )

    def inheritance(self, before: Handoff) -> Handoff:
        """For the next life."""
        told = f"The life before this one (attempt {before.attempt}) {self._how()}."
        lines = self._life.tail.last(bytes_max=HANDOFF_MAX - len(told.encode()) - 32)
        note = "\n".join([told, "Its last output:", *lines]) if lines else told
        checkpoint = self._life.checkpoint() or before.checkpoint
        return Handoff(before.attempt + 1, "", checkpoint, cut(note, HANDOFF_MAX))

    def _how(self) -> str:
        if self._end.signal is not None:
            return f"crashed: {self._end} after {self._after}"
        if self._end.failed:
            return f"failed: {self._end} after {self._after}"
        return f"ended with {self._end} after {self._after}"

    def _details(self) -> dict[str, Any]:
        life = self._life
        return {
            "incarnation": life.incarnation,
            "pid": life.child.pid,
            "status": self._end.status,
            "signal": self._end.signal,
            "after_s": round(life.lived_for(life.ended_at), 3),
            "last_output": life.tail.last(),
        }
