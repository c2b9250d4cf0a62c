"""Jobs that ping: when they are expected again, what their results mean, and who may ping for whom."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.core.agent import Agent
from lifesigns.core.effects import Kind
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import profile
from lifesigns.hub.principals import Role
from tests.web.hub import RunningHub, running_hub

PLAIN = profile("swarm")
"""Where the administrator has set nothing."""


class Job:
    """A hub whose clock moves when it is told to, and a job that pings it."""

    def __init__(self, hub: RunningHub, clock: list[float]) -> None:
        self.hub = hub
        self.clock = clock

    async def ping(self, rest: str = "", **query: str) -> int:
        return (await self.hub.http.get(f"/ping/backup{rest}", params=query)).status_code

    def pass_time(self, seconds: float) -> None:
        """As it passes for a hub: it looks once a second."""
        end = self.clock[0] + seconds
        while self.clock[0] < end:
            self.clock[0] = min(end, self.clock[0] + 1.0)
            self.hub.service.hub.run_due()

    @property
    def agent(self) -> Agent:
        agent = self.hub.service.engine.agent("backup")
        assert agent is not None
        return agent


@pytest.fixture
async def job() -> AsyncIterator[Job]:
    clock = [1_790_000_000.0]
    fleet = FleetPolicy(canary_every=0)
    async with running_hub(MemoryStore(), policy=PLAIN, clock=lambda: clock[0], fleet=fleet) as hub:
        yield Job(hub, clock)


async def test_a_job_that_comes_in_time_is_healthy_and_one_that_stays_away_is_missed(job: Job) -> None:
    """At the end of interval and grace: just before it nothing, just after it everything."""
    assert await job.ping(every="5m", grace="1m") == 200
    for _ in range(3):
        job.pass_time(355)
        assert job.agent.health is Health.HEALTHY
        assert await job.ping(every="5m", grace="1m") == 200
    job.pass_time(358)
    assert (job.agent.health, job.agent.findings) == (Health.HEALTHY, ())
    job.pass_time(4)
    assert job.agent.health is Health.DISCONNECTED
    assert job.agent.finding(Kind.SILENCE) is not None
    assert await job.ping() == 200
    assert job.agent.findings == ()


async def test_its_interval_holds_until_another_is_said(job: Job) -> None:
    await job.ping(every="5m", grace="1m")
    await job.ping()
    assert job.hub.service.engine.policy_of(job.agent).silence.timeout == 360
    await job.ping(every="2m", grace="30s")
    assert job.hub.service.engine.policy_of(job.agent).silence.timeout == 150


async def test_a_steady_job_gets_no_tighter_deadline(job: Job) -> None:
    """It cannot answer a question, so its rhythm must not shorten its grace."""
    for _ in range(40):
        await job.ping(every="10s", grace="10s")
        job.pass_time(10)
    job.pass_time(8)
    assert job.agent.health is Health.HEALTHY


async def test_without_a_word_a_job_runs_once_a_day(job: Job) -> None:
    await job.ping()
    silence = job.hub.service.engine.policy_of(job.agent).silence
    assert (silence.interval, silence.timeout) == (86_400, 90_000)


@pytest.mark.parametrize("rest", ["/fail", "/3"])
async def test_a_failure_is_told_at_once_and_ends_with_the_next_success(job: Job, rest: str) -> None:
    await job.ping("/start", every="5m", grace="1m")
    answer = await job.hub.http.post(f"/ping/backup{rest}", content=b"disk full\n")
    assert answer.status_code == 200
    found = job.agent.finding(Kind.ERRORS)
    assert job.agent.health is Health.FAILING
    assert found is not None
    assert found.text.endswith("disk full")
    await job.ping("/0")
    assert (job.agent.health, job.agent.findings) == (Health.HEALTHY, ())


async def test_a_run_that_takes_longer_than_it_may_is_found(job: Job) -> None:
    await job.ping(every="1h", grace="1m")
    await job.ping("/start")
    job.pass_time(59)
    assert job.agent.findings == ()
    job.pass_time(2)
    found = job.agent.finding(Kind.LONG_CALL)
    assert found is not None
    assert "longer than its bound of 1 min" in found.text
    await job.ping()
    assert (job.agent.health, job.agent.findings) == (Health.HEALTHY, ())


async def test_a_run_may_say_how_long_it_takes_and_runs_may_follow_at_once(job: Job) -> None:
    """A start right after the end of the last run is another run, not its late beginning."""
    for _ in range(2):
        await job.ping("/start", every="1h", grace="1m", within="10m")
        job.pass_time(5)
        await job.ping()
    await job.ping("/start", within="10m")
    job.pass_time(590)
    assert job.agent.findings == ()
    job.pass_time(15)
    assert job.agent.finding(Kind.LONG_CALL) is not None


async def test_runs_that_overlap_are_told_apart_by_their_names(job: Job) -> None:
    await job.ping("/start", every="1h", grace="1m", rid="one")
    await job.ping("/start", rid="two", within="30m")
    await job.ping(rid="two")
    job.pass_time(70)
    assert job.agent.finding(Kind.LONG_CALL) is not None


@pytest.mark.parametrize(
    ("rest", "query", "status"),
    [
        ("/256", {}, 404),
        ("/stop", {}, 404),
        ("/-1", {}, 404),
        ("", {"every": "often"}, 400),
        ("", {"every": "0"}, 400),
        ("", {"every": "2000d"}, 400),
        ("", {"grace": "0.1s"}, 400),
        ("/start", {"within": "soon"}, 400),
    ],
)
async def test_what_cannot_be_meant_is_refused_and_makes_no_agent(
    job: Job, rest: str, query: dict[str, str], status: int
) -> None:
    assert await job.ping(rest, **query) == status
    assert job.hub.service.engine.agent("backup") is None


async def test_who_may_ping(job: Job) -> None:
    token = await job.hub.token_for(Role.AGENT, "backup,team/*")
    basic = base64.b64encode(f"cron:{token}".encode()).decode()
    async with (
        job.hub.client(token) as own,
        job.hub.client(None) as nobody,
        job.hub.client(await job.hub.token_for(Role.VIEWER)) as viewer,
        job.hub.client(None, {"authorization": f"Basic {basic}"}) as by_password,
    ):
        assert (await own.get("/ping/backup")).text == "OK\n"
        assert (await own.head("/ping/backup")).status_code == 200
        assert (await own.get("/ping/team%2Fnightly")).status_code == 200
        assert (await own.get("/ping/other")).status_code == 403
        assert (await nobody.get("/ping/backup")).status_code == 401
        assert (await nobody.get(f"/ping/backup?token={token}")).status_code == 401
        assert (await viewer.get("/ping/backup")).status_code == 403
        assert (await by_password.get("/ping/backup")).status_code == 200
        assert (await by_password.get("/api/v1/agents/backup")).status_code == 401


@pytest.mark.parametrize("said", ["Basic", "Basic !", "Basic " + base64.b64encode(b"no colon").decode()])
async def test_a_password_that_is_none_is_refused(job: Job, said: str) -> None:
    async with job.hub.client(None, {"authorization": said}) as nobody:
        assert (await nobody.get("/ping/backup")).status_code == 401


async def test_a_token_of_an_agent_cannot_loosen_what_the_administrator_set() -> None:
    """The answer says what would help, and nobody is watched by an interval that is not meant."""
    tight = Policy().with_changes({"silence": {"interval": 2, "timeout": 5, "ping_wait": 1}})
    async with running_hub(policy=tight) as hub:
        async with hub.client(await hub.token_for(Role.AGENT, "backup")) as own:
            refused = await own.get("/ping/backup?every=1d")
        assert refused.status_code == 409
        assert "agents: backup" in refused.json()["detail"]
        agent = hub.service.engine.agent("backup")
        assert agent is not None
        assert agent.health is Health.TERMINATED
        assert (await hub.http.get("/ping/backup2?every=1d")).status_code == 200
