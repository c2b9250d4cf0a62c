"""What a bus delivers twice happened once; and who uses one id for all its calls has made each of them."""

from lifesigns.core.health import Health
from lifesigns.core.signals import ModelFinished, ModelStarted, ToolFinished, ToolStarted
from tests.core.harness import Watch


def fetch(watch: Watch, call_id: str, after: float, *, begun: bool = True, times: int = 1) -> None:
    """A call that fails like the one before."""
    watch.beat(at=watch.now + after)
    if begun:
        watch.hear(ToolStarted(agent_id="a", call_id=call_id, tool="fetch", args_digest="d"))
    for _ in range(times):
        watch.hear(
            ToolFinished(
                agent_id="a", call_id=call_id, tool="fetch", args_digest="d", ok=False, error="not ready"
            )
        )


def test_the_end_of_a_call_that_comes_twice_is_one_call() -> None:
    watch = Watch()
    watch.beat()
    for number in range(2):
        fetch(watch, f"c{number}", 1.0, times=3)
    work = watch.agent().work
    assert work is not None
    assert (work.tool_calls, watch.health()) == (2, Health.HEALTHY)
    fetch(watch, "c2", 1.0)
    assert (work.tool_calls, watch.health()) == (3, Health.DEGRADED)


def test_tokens_that_are_told_twice_are_used_once() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(ModelStarted(agent_id="a", call_id="m"))
    for _ in range(2):
        watch.hear(ModelFinished(agent_id="a", call_id="m", tokens_in=100, tokens_out=10))
    spending = watch.agent().spending
    assert spending is not None
    assert spending.tokens == 110


def test_who_uses_one_id_for_all_its_calls_has_made_each_of_them() -> None:
    """Begun or not: a loop under one id is a loop."""
    for begun in (True, False):
        watch = Watch()
        watch.beat()
        for _ in range(6):
            fetch(watch, "always", 1.0, begun=begun)
        work = watch.agent().work
        assert work is not None
        assert (work.tool_calls, watch.health() is Health.HEALTHY) == (6, False)
