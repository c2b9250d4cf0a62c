"""A good-bye ends the life it names, however late it comes, and never another one."""

from lifesigns.core import signals as s
from lifesigns.core.effects import Terminate
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health, Phase


def test_a_good_bye_of_a_life_that_was_never_heard_does_not_end_the_one_that_lives() -> None:
    engine = Engine()
    engine.hear(s.BeatReceived("a", seq=1, incarnation="L2"), 0.0)
    engine.hear(s.AgentLeft(agent_id="a", incarnation="L1", reason="done"), 1.0)
    agent = engine.beliefs.agents["a"]
    assert (agent.incarnation, agent.health) == ("L2", Health.HEALTHY)
    engine.hear(s.AgentLeft(agent_id="a", incarnation="L2", reason="done"), 2.0)
    assert agent.health is Health.TERMINATED


def test_the_good_bye_of_one_who_was_ended_does_not_cancel_its_successor() -> None:
    """Whoever ended it told so first; then it says that it leaves, and that is no wish to stay away."""
    engine = Engine()
    engine.hear(s.BeatReceived("a", seq=1, incarnation="L1"), 0.0)
    wanted = s.TerminationRequested(agent_id="a", reason="stuck", respawn=True, by="ann")
    effects = [*engine.hear(wanted, 1.0), *engine.advance(1.0)]
    (order,) = [effect for effect in effects if isinstance(effect, Terminate)]
    engine.hear(s.TerminationDone(agent_id="a", incarnation="L1", order_id=order.order_id), 2.0)
    engine.hear(s.AgentLeft(agent_id="a", incarnation="L1", reason="stopped: stuck"), 2.1)
    assert engine.beliefs.lineages["a"].phase is not Phase.IDLE
