"""Probes: open to everybody, and so they tell nothing but how it is."""

from typing import Any

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError
from lifesigns.events.hub_facts import AuditBroken
from lifesigns.hub.principals import Role
from lifesigns.ports import Commit
from tests.web.hub import RunningHub, running_hub
from tests.web.listening import until

SECRET = "/var/lib/secret/lifesigns.db is full"


class FullDisk(MemoryStore):
    """Takes nothing when it is told so."""

    full = False

    async def commit(self, page: Commit) -> None:
        if self.full:
            raise AdapterError(SECRET)
        await super().commit(page)


async def test_a_hub_that_is_well_says_so_to_everybody(hub: RunningHub) -> None:
    async with hub.client(None) as anybody:
        assert (await anybody.get("/healthz")).json() == {"status": "ok"}
        ready = await anybody.get("/readyz")
        assert ready.status_code == 200
        assert ready.json() == {"status": "ok", "store": "ok", "bus": "none", "blind": False, "judge": "none"}


async def test_what_is_wrong_is_told_to_those_who_may_see_it() -> None:
    """The law: without a token, no path and no address."""
    store = FullDisk()
    async with running_hub(store) as hub:
        viewer, agent = await hub.token_for(Role.VIEWER), await hub.token_for(Role.AGENT, "a")
        store.full = True
        hub.service.hub.announce(AuditBroken(1.0, "a test"))
        await until(lambda: hub.service.store_state != "ok")
        shown: dict[str | None, Any] = {}
        for token in (None, agent, viewer):
            async with hub.client(token) as somebody:
                answer = await somebody.get("/readyz")
                assert answer.status_code == 503
                shown[token] = answer.json()["store"]
        assert shown == {None: "away", agent: "away", viewer: SECRET}
        store.full = False
        await until(lambda: hub.service.store_state == "ok")
