"""The ladder end to end, with real processes: found, nudged, asked about, ended, begun anew; each step exactly once.

Then the same with `kill -9` of the hub at every step, and of the agent at every step. `tools/ladder_soak.py` does it at
random moments, as often as you like.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.climbing import CHILD_DIES_AT, HUB_DIES_AT, Agent, Climb, Step, climbing

WAY = [step.value for step in Step if step is not Step.FOUND]


def damage(climb: Climb, content: bytes) -> None:
    """A bit flips on the hub's disk, in the content of one checkpoint."""
    (file,) = [file for file in climb.hub.state.rglob("*") if file.is_file() and file.read_bytes() == content]
    file.write_bytes(content[:-1] + b"]")


@pytest.mark.timeout(240)
async def test_a_frozen_agent_goes_all_the_way_and_comes_back_from_its_last_checkpoint_that_holds(
    tmp_path: Path,
) -> None:
    """Freeze, nudge unanswered, escalation unanswered, end, respawn, healthy: each step once, in this order, all of it on
    the audit log. Where the newest checkpoint is damaged, the one before it is gone on from."""
    async with climbing(tmp_path, "coder", "unlucky") as climb:
        coder, unlucky = climb.agents
        await climb.until(unlucky, Step.ASKED)
        damage(climb, b'{"by":"unlucky","done":2}')
        await asyncio.gather(climb.well_again(coder, lives=2), climb.well_again(unlucky, lives=2))
        assert climb.rungs(coder) == climb.rungs(unlucky) == WAY
        assert [life["checkpoint"] for life in coder.lives] == [None, "cp-2"]
        assert [life["checkpoint"] for life in unlucky.lives] == [None, "cp-1"]
        assert "its loop has not moved" in coder.lives[1]["handoff"]
        assert len(climb.orchestrator.asked) == 2
        assert await climb.flaws() == []


@pytest.mark.timeout(300)
async def test_a_hub_that_is_killed_at_every_step_does_each_of_them_once(tmp_path: Path) -> None:
    """Killed after it was found, nudged, asked about ..., and started anew each time: no step is lost, none is done twice,
    and one new life begins, from the last checkpoint."""
    async with climbing(tmp_path, "coder") as climb:
        (coder,) = climb.agents
        for step in HUB_DIES_AT:
            await climb.until(coder, step)
            await climb.hub.kill()
            await climb.hub.start()
        await climb.well_again(coder, lives=2)
        done = Counter(climb.rungs(coder))
        assert {step: done.pop(step, 0) for step in WAY} == dict.fromkeys(WAY, 1), climb.rungs(coder)
        assert not done, "nothing else was done about it"
        assert [life["checkpoint"] for life in coder.lives] == [None, "cp-2"]
        assert await climb.flaws() == []


@pytest.mark.timeout(240)
async def test_an_agent_that_is_killed_at_any_step_gets_one_successor_from_its_last_checkpoint(
    tmp_path: Path,
) -> None:
    """Whoever dies on the way up needs no further step: what was under way is dropped, on record, and one life follows the
    one that ended. Who dies as soon as it is back is a person's matter for the hub, and its supervisor goes on."""
    async with climbing(tmp_path, *(step.name.lower() for step in CHILD_DIES_AT)) as climb:
        agents = dict(zip(CHILD_DIES_AT, climb.agents, strict=True))
        await asyncio.gather(*(_die_at(step, agent, climb) for step, agent in agents.items()))
        for step, agent in agents.items():
            lives = 3 if step is Step.BACK else 2
            done = Counter(climb.rungs(agent))
            assert [life["checkpoint"] for life in agent.lives] == [None, *["cp-2"] * (lives - 1)], step
            assert len({life["incarnation"] for life in agent.lives}) == lives, step
            assert (done["respawn ordered"], done["recovery completed"]) == (1, 1), (step, done)
            assert done["recovery failed"] == (step is Step.BACK), (step, done)
            assert done["nudge ordered"] <= 1, (step, done)
            ended = step in (Step.STOPPING, Step.BACK)
            assert done["terminate ordered"] == done["terminate done"] == ended, (step, done)
        assert await climb.flaws() == []


async def _die_at(step: Step, agent: Agent, climb: Climb) -> None:
    await climb.until(agent, step)
    if step is Step.BACK:
        await climb.well_again(agent, lives=2)
    lives = len(agent.lives)
    agent.kill()
    await climb.well_again(agent, lives + 1)
