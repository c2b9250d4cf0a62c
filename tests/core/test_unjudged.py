"""Where nobody is judged, agents are heard and shown, people may act, and nothing else happens."""

from lifesigns.core.effects import FindingOpened, Order, SendNudge
from lifesigns.core.health import Health
from lifesigns.core.policy import HOUR, MINUTE, FleetPolicy, Policy
from lifesigns.core.signals import NudgeRequested, ProcessExited, TaskAssigned, ToolFinished
from tests.core.harness import START, Watch

OFF = FleetPolicy(canary_every=0, judging=False)
POLICY = Policy().with_changes({"silence": {"forget_after": 2 * HOUR}})


def test_neither_silence_nor_a_loop_is_found() -> None:
    watch = Watch(POLICY, fleet=OFF)
    watch.beat("a")
    for n in range(20):
        call = ToolFinished(agent_id="a", call_id=f"c{n}", tool="grep", args_digest="x", result_digest="y")
        watch.hear(call)
    watch.hear(TaskAssigned(agent_id="a", task_id="t", expected_for=MINUTE))
    watch.run_until(START + HOUR)
    assert watch.agent().health is Health.HEALTHY
    assert not watch.facts(FindingOpened)
    assert not watch.orders(Order)


def test_a_process_that_ends_has_ended_and_is_not_started_again() -> None:
    watch = Watch(POLICY, fleet=OFF)
    watch.beat("a")
    watch.hear(ProcessExited(agent_id="a", status=1))
    watch.run_until(START + HOUR)
    assert watch.agent().health is Health.TERMINATED
    assert not watch.orders(Order)


def test_what_a_person_orders_is_carried_out() -> None:
    watch = Watch(POLICY, fleet=OFF)
    watch.beat("a")
    watch.hear(NudgeRequested(agent_id="a", message="Hello?", by="ann"))
    assert [order.text for order in watch.orders(SendNudge)] == ["Hello?"]


def test_who_is_silent_for_long_is_forgotten() -> None:
    watch = Watch(POLICY, fleet=OFF)
    watch.beat("a")
    watch.run_until(START + 2 * HOUR - 1)
    assert watch.engine.agent("a") is not None
    watch.run_until(START + 2 * HOUR)
    assert watch.engine.agent("a") is None
