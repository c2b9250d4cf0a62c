"""An engine that judges a part of the fleet: others know how the rest of each group is, and it is careful."""

from __future__ import annotations

from typing import Any

import pytest

from lifesigns.core.effects import Escalate, Flip, Intervention, Respawn, Stage, Terminate
from lifesigns.core.fleet import NOT_ALL_SEEN
from lifesigns.core.health import Health
from lifesigns.core.policy import MINUTE, FleetPolicy, Policy
from lifesigns.core.profiles import profile
from lifesigns.core.signals import ProcessExited, TerminationRequested
from lifesigns.core.watching import HELD_FOR_MIN
from tests.core.harness import Watch

POLICY = profile("swift")


def a_part(policy: Policy | None = POLICY, *, alone: bool = False) -> Watch:
    watch = Watch(policy, fleet=FleetPolicy(canary_every=0, acted_share=1.0))
    if not alone:
        watch.engine.judges_a_part(1 / 8)
    return watch


def convicted_at(watch: Watch) -> float:
    (flip,) = [flip for flip in watch.facts(Flip, "a") if flip.now is Health.DISCONNECTED]
    return flip.at


def silent(watch: Watch, **fields: Any) -> Watch:
    """One agent falls silent beside others that beat."""
    watch.beat("a", **fields)
    watch.beat("b", host="elsewhere")
    watch.live(watch.now + 60, "a", "b", every=1.0)
    watch.live(watch.now + 120, "b", every=1.0)
    return watch


def test_silence_on_a_host_gets_the_time_that_a_late_host_gets() -> None:
    """Others on it may be late too, and be judged elsewhere."""
    alone, part = convicted_at(silent(a_part(alone=True), host="h")), convicted_at(silent(a_part(), host="h"))
    assert part - alone == pytest.approx(max(HELD_FOR_MIN, POLICY.silence.timeout), abs=1.0)


def test_an_agent_without_a_host_is_found_as_soon_as_ever() -> None:
    assert convicted_at(silent(a_part())) == convicted_at(silent(a_part(alone=True)))


def test_nobody_is_ended_or_started_anew_unasked() -> None:
    def silence(watch: Watch) -> Watch:
        watch.beat()
        watch.run_until(watch.now + 60 * MINUTE)
        return watch

    def crash(watch: Watch) -> Watch:
        watch.beat(incarnation="i-1")
        watch.hear(ProcessExited(agent_id="a", incarnation="i-1", status=1))
        watch.run_until(watch.now + 60 * MINUTE)
        return watch

    assert silence(Watch()).orders(Terminate)
    part = silence(a_part(policy=None))
    assert part.orders(Escalate), "people are asked"
    assert not part.orders(Terminate)
    held = [fact for fact in part.facts(Intervention) if fact.stage is Stage.HELD]
    assert {fact.text for fact in held} == {NOT_ALL_SEEN}
    assert crash(Watch()).orders(Respawn)
    assert not crash(a_part(policy=None)).orders(Respawn)


def test_a_person_may_end_an_agent() -> None:
    part = a_part()
    part.beat("a")
    part.hear(TerminationRequested(agent_id="a", by="anna", reason="enough"))
    assert part.orders(Terminate)
