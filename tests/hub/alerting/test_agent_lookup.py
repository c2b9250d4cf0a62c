"""What alerting reads in the engine's beliefs."""

from lifesigns.core.agent import Past
from lifesigns.core.engine import Engine
from lifesigns.core.health import Doing
from lifesigns.core.signals import BeatReceived, ClearRequested, DoingChanged
from lifesigns.hub.alerting.agent_lookup import EngineAgentLookup
from lifesigns.hub.alerting.alerts import Alert, AlertSubject

NOW = 1_800_000_000.0


def alert(key: str, agent_id: str = "", **details: str) -> Alert:
    return Alert(key, key.partition(":")[0], agent_id, "title", "", NOW, NOW, details=dict(details))


def lookup() -> tuple[Engine, EngineAgentLookup]:
    engine = Engine()
    engine.hear(BeatReceived("a", host="ws-1", role="coder", metadata={"provider": "acme"}), NOW)
    return engine, EngineAgentLookup(lambda: engine.beliefs)


def test_it_knows_where_an_agent_lives_and_what_it_is() -> None:
    _, sees = lookup()
    assert sees.who("a") == AlertSubject("coder", "ws-1", "acme")
    assert sees.who("nobody") is None


def test_a_wait_for_a_human_is_over_when_the_agent_does_something_else() -> None:
    engine, sees = lookup()
    waiting = alert("needs_human:a:waiting_for_human", "a", reason="waiting_for_human")
    engine.hear(DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN), NOW + 1)
    assert sees.over(waiting) == ""
    engine.hear(DoingChanged(agent_id="a", doing=Doing.WORKING), NOW + 2)
    assert sees.over(waiting) == "a does not wait any more"
    assert sees.over(alert("needs_human:a:blocked", "a", reason="blocked")) == ""


def test_who_is_judged_again_is_not_set_aside_any_more() -> None:
    engine, sees = lookup()
    engine.beliefs.agents["a"].past = Past(poisoned=True)
    assert sees.over(alert("agent_poisoned:a", "a")) == ""
    engine.hear(ClearRequested(agent_id="a", by="me"), NOW + 1)
    assert sees.over(alert("agent_poisoned:a", "a")) == "a is judged again"


def test_an_alert_about_somebody_who_is_forgotten_is_over() -> None:
    _, sees = lookup()
    assert sees.over(alert("stuck_agent:gone", "gone")) == "gone is not known any more"
    assert sees.over(alert("message_overdue:m", "stranger")) == "", "a message may be for a stranger"
    assert sees.over(alert("hub_store_lost")) == ""


def test_a_hub_that_sees_again_is_not_blind() -> None:
    engine, sees = lookup()
    assert sees.over(alert("hub_blind")) == "the hub sees again"
    engine.beliefs.awareness.lose_sight(NOW + 3)
    assert sees.over(alert("hub_blind")) == ""
