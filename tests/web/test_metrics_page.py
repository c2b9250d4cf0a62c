"""`/metrics` over HTTP. What is in it: tests/adapters/observe."""

from prometheus_client.parser import text_string_to_metric_families

from lifesigns.hub.principals import Role
from tests.web.hub import RunningHub


async def test_a_scraper_with_a_viewers_token_reads_them(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", {"agent_id": "a"})
    async with hub.client(await hub.token_for(Role.VIEWER)) as scraper:
        answer = await scraper.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        families = {family.name: family for family in text_string_to_metric_families(answer.text)}
        states = {sample.labels["state"]: sample.value for sample in families["lifesigns_agents"].samples}
        assert states["healthy"] == 1
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        answer = await scraper.get("/metrics", headers=accept)
        assert answer.headers["content-type"].startswith("application/openmetrics-text")


async def test_nobody_else_does(hub: RunningHub) -> None:
    """They name agents."""
    async with hub.client(None) as anybody, hub.client(await hub.token_for(Role.AGENT, "a")) as agent:
        assert (await anybody.get("/metrics")).status_code == 401
        assert (await agent.get("/metrics")).status_code == 403
