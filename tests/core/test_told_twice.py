"""What is delivered twice happened once; and who uses one id for all its calls has made each of them."""

from lifesigns.core.health import Health
from lifesigns.core.signals import ModelFinished, ModelStarted, ToolFinished, ToolStarted
from tests.core.harness import Watch


def fetch(
    watch: Watch, call_id: str, after: float, *, begun: bool = True, times: int = 1, took: float = 0.0
) -> None:
    """A call that fails like the one before."""
    watch.beat(at=watch.now + after)
    if begun:
        watch.hear(ToolStarted(agent_id="a", call_id=call_id, tool="fetch", args_digest="d"))
    if took:
        watch.beat(at=watch.now + took)
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
            fetch(watch, "always", 1.0, begun=begun, took=0.1)
        work = watch.agent().work
        assert work is not None
        assert (work.tool_calls, watch.health() is Health.HEALTHY) == (6, False)


def test_calls_that_are_told_again_as_a_whole_are_made_once() -> None:
    """A delivery whose answer was lost comes again, starts and ends together."""
    watch = Watch()
    watch.beat()
    for after in (1.0, 6.0):
        for call_id in ("c1", "c2"):
            fetch(watch, call_id, after if call_id == "c1" else 0.0)
    work = watch.agent().work
    assert work is not None
    assert (work.tool_calls, list(work.calls), watch.health()) == (2, [], Health.HEALTHY)
    fetch(watch, "c3", 1.0)
    assert (work.tool_calls, watch.health()) == (3, Health.DEGRADED)


def test_a_call_to_a_model_that_is_told_again_is_paid_once() -> None:
    watch = Watch()
    watch.beat()
    for _ in range(2):
        watch.beat(at=watch.now + 6.0)
        watch.hear(ModelStarted(agent_id="a", call_id="m"))
        watch.hear(ModelFinished(agent_id="a", call_id="m", tokens_in=100, tokens_out=10))
    spending = watch.agent().spending
    assert spending is not None
    assert spending.tokens == 110


def test_one_id_for_calls_that_are_told_whole_hides_one_call_and_no_loop() -> None:
    watch = Watch()
    watch.beat()
    for _ in range(7):
        fetch(watch, "always", 1.0)
    work = watch.agent().work
    assert work is not None
    assert (work.tool_calls, watch.health() is Health.HEALTHY) == (6, False)


def test_a_start_that_comes_again_after_a_backlog_of_calls_begins_none() -> None:
    """Calls that waited for the hub end all at once. One that seems to be open for ever would look like one that hangs."""
    watch = Watch()
    watch.beat()
    for number in range(40):
        fetch(watch, f"c{number}", 0.05)
    watch.hear(ToolStarted(agent_id="a", call_id="c0", tool="fetch", args_digest="d"))
    work = watch.agent().work
    assert work is not None
    assert not work.calls


def test_no_more_ended_calls_are_known_than_there_may_be_open_ones() -> None:
    watch = Watch()
    watch.beat()
    for number in range(200):
        fetch(watch, f"c{number}", 0.01)
    work = watch.agent().work
    assert work is not None
    assert (len(work.ended), len(work.closed)) == (64, 64)
    watch.beat(at=watch.now + 60.0)
    fetch(watch, "last", 1.0)
    assert (len(work.ended), len(work.closed)) == (8, 8)
