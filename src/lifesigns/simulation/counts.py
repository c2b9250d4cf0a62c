"""Counts: the numbers of a running world."""

from __future__ import annotations

from dataclasses import dataclass, field

from lifesigns.core import effects as e


@dataclass(slots=True)
class Counts:
    """Counts of what the monitor said and did."""

    nudges: int = 0
    escalations: int = 0
    terminations: int = 0
    respawns: int = 0
    recovered: int = 0
    given_up: int = 0
    false_terminations: int = 0
    reasoned_findings: int = 0
    """Findings that a healthy agent gives reason for: one that polls may be degraded, one that retries may be escalated."""
    false_findings: list[tuple[float, str, e.Finding]] = field(default_factory=list)

    def ordered(self, order: e.Order) -> None:
        match order:
            case e.SendNudge():
                self.nudges += 1
            case e.Escalate():
                self.escalations += 1
            case e.Terminate():
                self.terminations += 1
            case e.Respawn():
                self.respawns += 1
            case _:
                pass

    def recovery(self, fact: e.Recovery, *, over: bool) -> None:
        """`over`: its last life has really ended. If it lives, the engine asks people whether to replace it, which is
        no recovery."""
        if fact.stage is e.Recovered.COMPLETED:
            self.recovered += 1
        elif fact.stage is e.Recovered.FAILED and over:
            self.given_up += 1
