"""A good-bye ends the life it names, however late it comes, and never another one."""

from lifesigns.core import signals as s
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health


def test_a_good_bye_of_a_life_that_was_never_heard_does_not_end_the_one_that_lives() -> None:
    engine = Engine()
    engine.hear(s.BeatReceived("a", seq=1, incarnation="L2"), 0.0)
    engine.hear(s.AgentLeft(agent_id="a", incarnation="L1", reason="done"), 1.0)
    agent = engine.beliefs.agents["a"]
    assert (agent.incarnation, agent.health) == ("L2", Health.HEALTHY)
    engine.hear(s.AgentLeft(agent_id="a", incarnation="L2", reason="done"), 2.0)
    assert agent.health is Health.TERMINATED
