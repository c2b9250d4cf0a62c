"""A ping changes something though it is a GET, so it is held to what holds for changes.

Promises:
    1. What a token fills the disk with by pings counts as if it had said it otherwise.
    2. What is in the address of a ping is kept no longer than other texts are.
    3. No cookie pings: a link that a person opens changes nothing.
"""

from __future__ import annotations

import asyncio

from lifesigns.config.values import Limits
from lifesigns.hub.principals import Role
from tests.web.hub import running_hub
from tests.web.test_getting_in import signed_in


async def test_pings_of_one_token_that_fill_the_disk_wait_and_its_beats_do_not() -> None:
    async with (
        running_hub(limits=Limits(events_per_second=1)) as hub,
        hub.client(await hub.token_for(Role.AGENT, "job")) as job,
    ):
        await job.post("/api/v1/beats", json={"agent_id": "job"})
        statuses = [(await job.get("/ping/job/fail")).status_code]
        async with asyncio.timeout(60):
            while statuses[-1] == 200:  # One more is allowed with each second that this takes.
                statuses.append((await job.get("/ping/job/fail")).status_code)
        assert len(statuses) > 30
        assert statuses[-1] == 429
        assert (await job.post("/api/v1/beats", json={"agent_id": "job"})).status_code == 202


async def test_the_name_of_a_run_is_no_longer_than_other_names() -> None:
    async with running_hub() as hub:
        assert (await hub.get("/ping/job/start", rid="r" * 1024)).status_code == 200
        assert (await hub.get("/ping/job/start", rid="r" * 1025)).status_code == 400


async def test_a_link_that_a_person_opens_pings_for_no_job() -> None:
    """A browser says of a link in a letter what it says of an address that was typed."""
    async with running_hub() as hub:
        browser = await signed_in(hub)
        assert await browser.status("GET /api/v1/agents", Sec_Fetch_Site="none") == 200
        for ping in ("/ping/job", "/ping/job/fail"):
            assert await browser.status(f"GET {ping}", Sec_Fetch_Site="none") == 401
        assert hub.service.engine.agent("job") is None
