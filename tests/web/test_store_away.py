"""When the store cannot be read, who needs it is told to come again; everybody else notices nothing."""

from typing import Any

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError
from lifesigns.ports import Event
from tests.web.hub import running_hub


class Unreadable(MemoryStore):
    """Takes pages and gives nothing back."""

    async def events(self, **asked: Any) -> list[Event]:
        raise AdapterError("postgres://ann:secret@db is away")


async def test_what_has_to_be_read_is_unavailable_for_now() -> None:
    async with running_hub(Unreadable()) as hub:
        await hub.post("/api/v1/beats", {"agent_id": "a"})
        for kept in ("agents/a/history", "alerts", "events/list"):
            answer = await hub.get(f"/api/v1/{kept}")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert "secret" not in answer.text
        for living in ("agents", "agents/a", "fleet", "tasks", "messages", "breakers"):
            assert (await hub.get(f"/api/v1/{living}")).status_code == 200
