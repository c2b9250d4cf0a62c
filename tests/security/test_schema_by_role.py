"""schemathesis with the tokens of an agent and of a viewer.

Promise: whatever a low role asks, good or bad, the answer is one that is described, no server error, and never holds what another
agent said. How an admin's token does is in `tests/web/test_schema.py`, from which the hub and the calls come.
"""

from __future__ import annotations

from typing import Any, Final

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error

from tests.web.hub import RunningHub
from tests.web.test_schema import CHECKS, WAIT_MAX, _is_long, api, hub, rows, schema_walk

__all__ = ["api", "hub"]

EXAMPLES: Final = 3
"""Questions that both roles ask."""

SECRET: Final = "only-the-victim-knows"
NAMES: Final = {
    "agent_id": "victim",
    "task_id": "t-victim",
    "message_id": "m-victim",
    "checkpoint_id": "cp-victim",
}


@pytest.fixture(scope="module")
def tokens(hub: RunningHub) -> dict[str, str]:
    """One for an agent, one for a viewer; and somebody whose words are nobody else's."""
    with httpx2.Client(
        base_url=hub.url, headers={"authorization": f"Bearer {hub.token}"}, trust_env=False
    ) as admin:
        said = {"agent_id": "victim", "task_id": "t-victim", "phase": SECRET, "host": SECRET}
        assert admin.post("/api/v1/beats", json=said).json()["rejected"] == []
        signals = [
            {"type": "doing", "agent_id": "victim", "doing": "waiting_for_human", "note": SECRET},
            {"type": "claim", "agent_id": "victim", "task_id": "t-victim"},
            {"type": "error", "agent_id": "victim", "message": SECRET},
            {"type": "checkpoint", "agent_id": "victim", "task_id": "t-victim", "checkpoint_id": "cp-victim"},
            {"type": "message_sent", "agent_id": "victim", "message_id": "m-victim", "to": "reviewer-1"},
        ]
        assert admin.post("/api/v1/signals", json=signals).json()["rejected"] == []
        made = {}
        for role, agents in (("agent", "fuzzer"), ("viewer", "")):
            body = {"role": role, "name": role, "agents": agents}
            made[role] = str(admin.post("/api/v1/tokens", json=body).json()["token"])
        return made


@pytest.mark.parametrize(("method", "path", "mode"), rows())
def test_a_low_role_gets_what_is_described_and_nothing_of_others(
    tokens: dict[str, str], api: Any, method: str, path: str, mode: GenerationMode
) -> None:
    @schema_walk(EXAMPLES if mode is GenerationMode.POSITIVE else EXAMPLES // 2)
    @given(case=api[path][method].as_strategy(generation_mode=mode), known=st.booleans())
    def ask(case: Any, known: bool) -> None:
        if known:
            for name in case.path_parameters:
                case.path_parameters[name] = NAMES.get(name, "x")
            if isinstance(case.body, dict) and "agent_id" in case.body:
                case.body["agent_id"] = "victim"
        if _is_long(case.query.get("wait")):
            case.query["wait"] = WAIT_MAX
        described = path.startswith("/healthz/")  # A probe answers 503 about an agent that is unwell.
        checks = [check for check in CHECKS if not (described and check is not_a_server_error)]
        for role, token in tokens.items():
            response = case.call(headers={"authorization": f"Bearer {token}"}, timeout=30)
            case.validate_response(response, checks=checks)
            assert role != "agent" or SECRET not in response.text

    ask()


def test_there_is_something_to_be_learnt(hub: RunningHub, tokens: dict[str, str]) -> None:
    """Keeps this honest: what no agent may see a viewer sees."""
    headers = {"authorization": f"Bearer {tokens['viewer']}"}
    with httpx2.Client(base_url=hub.url, headers=headers, trust_env=False) as viewer:
        assert SECRET in viewer.get("/api/v1/agents/victim").text
