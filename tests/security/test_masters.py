"""An agent is not above its masters.

Promises:
    1. What the administrator's file says of an agent, the agent can only tighten. What it was refused it is told, and so are people.
    2. An agent whose role the file says has that role, whatever it says of itself: it chooses no looser policy, and not who starts
       it anew or whose alerts it is in.
    3. Whatever the agents of one token register, nothing else is found of those of another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lifesigns.core.effects import Flip
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import OWN_MAX, ROLES, PolicyBook
from lifesigns.core.signals import AgentRegistered
from tests.core.harness import Watch
from tests.journeys.outside import Hub, serving

CAPPED = {"policy": {"spending": {"cost_max": 10}, "silence": {"timeout": "15s"}}}


def agent_token(hub: Hub, agents: str) -> str:
    made = hub.post("/api/v1/tokens", {"role": "agent", "name": agents, "agents": agents})
    return str(made["token"])


def registered(agent_id: str, policy: Any, life: str = "one") -> dict[str, Any]:
    return {"type": "registered", "agent_id": agent_id, "incarnation": life, "policy": policy}


# --- 1. the file is a ceiling --------------------------------------------------------------------------------


def test_an_agent_cannot_lift_its_cap_nor_switch_off_the_ladder(tmp_path: Path) -> None:
    looser = {"spending": {"cost_max": None}, "ladder": {"enabled": False}, "silence": {"timeout": 600}}
    with serving(tmp_path, CAPPED) as hub:
        token = agent_token(hub, "a-*")
        answer = hub.request("POST", "/api/v1/signals", registered("a-1", looser), token)
        assert answer["accepted"] == 1
        (refused,) = answer["rejected"]
        assert (refused["index"], refused["field"]) == (0, "policy")
        for key in ("spending.cost_max stays 10", "ladder.enabled stays True", "silence.timeout stays 15"):
            assert key in refused["detail"]
        hub.until(lambda: hub.events("SIGNAL_REFUSED", agent="a-1"), "people can see it")
        beat = {"agent_id": "a-1", "incarnation": "one", "seq": 1, "cost_usd": 11.0}
        hub.request("POST", "/api/v1/beats", beat, token)
        hub.until(lambda: hub.events("FINDING_OPENED", agent="a-1"), "its spending is found all the same")
        (found,) = hub.events("FINDING_OPENED", agent="a-1")
        assert found["data"]["finding"]["kind"] == "spending"


def test_an_operator_may_say_more_of_an_agent_than_the_agent_may(tmp_path: Path) -> None:
    with serving(tmp_path, CAPPED) as hub:
        token = agent_token(hub, "a-*")
        assert not hub.post("/api/v1/signals", registered("a-1", {"spending": {"cost_max": 50}}))["rejected"]
        more = registered("a-1", {"spending": {"cost_max": 60}})
        (refused,) = hub.request("POST", "/api/v1/signals", more, token)["rejected"]
        assert "spending.cost_max stays 50" in refused["detail"]


def test_what_an_operator_said_of_an_agent_outlives_a_new_life_and_the_hub(tmp_path: Path) -> None:
    with serving(tmp_path, {}) as hub:
        token = agent_token(hub, "a-*")
        hub.post("/api/v1/signals", registered("a-1", {"spending": {"cost_max": 5}}))
        hub.request("POST", "/api/v1/signals", registered("a-1", {}, "two"), token)
        hub.kill()
        hub.start()
        more = registered("a-1", {"spending": {"cost_max": 60}}, "two")
        (refused,) = hub.request("POST", "/api/v1/signals", more, token)["rejected"]
        assert "spending.cost_max stays 5" in refused["detail"]


# --- 2. a role that was given -------------------------------------------------------------------------------

PINNED = {
    "policy": {"silence": {"timeout": "15s"}},
    "roles": {"plain": {}},
    "agents": {"*": {"role": "plain"}, "night-*": {"role": "standby"}},
}


@pytest.mark.parametrize("way", ["registered", "beat"])
def test_an_agent_does_not_choose_another_role_than_the_one_it_was_given(tmp_path: Path, way: str) -> None:
    with serving(tmp_path, PINNED) as hub:
        token = agent_token(hub, "a-*")
        said = {"agent_id": "a-1", "incarnation": "one", "role": "standby"}
        if way == "registered":
            (refused,) = hub.request("POST", "/api/v1/signals", {"type": "registered", **said}, token)[
                "rejected"
            ]
            assert "role stays 'plain', as the administrator set it" in refused["detail"]
        hub.request("POST", "/api/v1/beats", {"seq": 1, **said}, token)
        hub.post("/api/v1/beats", {"agent_id": "night-1"})
        assert hub.get("/api/v1/agents/a-1")["role"] == "plain"
        assert hub.get("/api/v1/agents/night-1")["role"] == "standby"
        assert hub.get("/api/v1/agents/a-1/rhythm")["suspect_after_s"] <= 15.0
        hub.kill()
        hub.start()
        hub.request("POST", "/api/v1/beats", {"seq": 2, **said}, token)
        assert hub.get("/api/v1/agents/a-1")["role"] == "plain"


def test_a_role_that_is_given_later_holds_for_agents_that_are_there() -> None:
    watch = Watch()
    watch.hear(AgentRegistered(agent_id="a", role="standby", source="s", bounded=True))
    pinned = PolicyBook(roles={**ROLES, "plain": {}}, given_roles={"*": "plain"})
    engine = Engine.restore(watch.engine.snapshot(), watch.now, pinned, FleetPolicy(canary_every=0))
    agent = engine.agent("a")
    assert agent is not None
    assert (agent.role, engine.policy_of(agent)) == ("plain", pinned.default)


# --- 3. nobody's verdict depends on another's words ----------------------------------------------------------

SLOW = {"silence": {"interval": 60.0, "timeout": 180.0}}


def test_a_neighbour_with_a_slow_rhythm_is_not_convicted_when_a_token_uses_up_its_policies() -> None:
    watch = Watch()
    for n in range(OWN_MAX + 100):
        own = {"silence": {"timeout": 20.0 + n}}
        watch.hear(AgentRegistered(agent_id=f"evil-{n}", policy=own, source="evil", bounded=True))
    watch.hear(AgentRegistered(agent_id="slow", policy=SLOW, source="good", bounded=True))
    for n in range(1, 6):
        watch.beat("slow", at=watch.now + 60.0, seq=n, source="good")
    assert [flip.now for flip in watch.facts(Flip) if flip.agent_id == "slow"] == [Health.HEALTHY]


def test_policies_that_nobody_uses_any_more_are_gone() -> None:
    watch = Watch()
    for n in range(3 * OWN_MAX):
        own = {"silence": {"timeout": 20.0 + n}}
        watch.hear(AgentRegistered(agent_id="evil", policy=own, source="evil", bounded=True))
    agent = watch.engine.agent("evil")
    assert agent is not None
    assert watch.engine.policy_of(agent).silence.timeout == 20.0 + 3 * OWN_MAX - 1
    assert agent.policy_no <= 2


@pytest.mark.parametrize("bounded", [True, False])
def test_only_the_word_of_who_may_not_everything_is_bounded(bounded: bool) -> None:
    watch = Watch(Policy().with_changes({"spending": {"cost_max": 10.0}}))
    own = {"spending": {"cost_max": 20.0}}
    watch.hear(AgentRegistered(agent_id="a", policy=own, source="s", bounded=bounded))
    agent = watch.engine.agent("a")
    assert agent is not None
    assert watch.engine.policy_of(agent).spending.cost_max == (10.0 if bounded else 20.0)
