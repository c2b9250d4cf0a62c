"""Audit over HTTP: who did what, and the proof of it."""

from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.core import merkle
from lifesigns.core.effects import Pause
from lifesigns.events.hub_facts import TokenCreated
from lifesigns.hub.audit import notes
from lifesigns.hub.principals import Role
from tests.hub.audited import act, new_signer, read
from tests.web.hub import RunningHub, running_hub

PLACE = "/api/v1/audit"


async def test_the_record_is_read_from_the_newest_back(hub: RunningHub) -> None:
    for n in range(5):
        hub.service.hub.announce(TokenCreated(1.0, f"k{n}", by="ann"))
    hub.service.hub.announce(Pause(1.0, "a", "bob", 60.0))
    await hub.service.hub.committer.wait_until_stored()
    first = (await hub.get(PLACE, limit=4)).json()
    assert [entry["who"] for entry in first["entries"]] == ["bob", "ann", "ann", "ann"]
    rest = (await hub.get(PLACE, limit=4, before=first["before"])).json()
    assert [entry["detail"] for entry in rest["entries"]] == ["k1", "k0"]
    assert rest["before"] is None
    (about,) = (await hub.get(PLACE, agent="a")).json()["entries"]
    assert (about["what"], about["detail"]) == ("paused", "for 60 s")
    assert len((await hub.get(PLACE, who="ann")).json()["entries"]) == 5


async def test_the_hub_proves_what_it_says() -> None:
    """Every entry is in the log of the newest checkpoint, and that log goes on from every older one."""
    signer = new_signer()
    async with running_hub(MemoryStore(), signer=signer) as hub:
        log = hub.service.hub.audit
        assert (await hub.get(f"{PLACE}/checkpoint")).status_code == 404
        await read(hub.service)
        older = []
        for some in range(0, 300, 100):
            await act(hub.service, *range(some, some + 100))
            await log.seal(hub.service.hub.committer, hub.service.clock())
            answer = await hub.get(f"{PLACE}/checkpoint")
            assert answer.headers["content-type"].startswith("text/plain")
            older.append(notes.read(answer.text))
        newest = older[-1]
        assert newest.trust([signer.public], verifies) is notes.Trust.GOOD
        for n in (0, 99, 256, 299):
            proof = (await hub.get(f"{PLACE}/proof/{n}")).json()
            leaf = merkle.leaf(proof["entry"].encode())
            hashes = [bytes.fromhex(one) for one in proof["proof"]]
            assert notes.read(proof["checkpoint"]) == newest
            assert merkle.includes(leaf, n, newest.size, hashes, newest.root)
        for old in older:
            proof = (await hub.get(f"{PLACE}/consistency", **{"from": old.size})).json()
            hashes = [bytes.fromhex(one) for one in proof["proof"]]
            assert merkle.continues(old.size, old.root, newest.size, newest.root, hashes)
        await act(hub.service, 300)
        assert (await hub.get(f"{PLACE}/proof/300")).status_code == 409
        assert (await hub.get(f"{PLACE}/proof/301")).status_code == 404
        assert (await hub.get(f"{PLACE}/proof/x")).status_code == 400
        assert (await hub.get(f"{PLACE}/proof/{10**30}")).status_code == 400
        assert (await hub.get(f"{PLACE}/consistency", **{"from": 301})).status_code == 409
        assert (await hub.get(f"{PLACE}/consistency")).status_code == 400


async def test_a_hub_whose_log_was_changed_proves_nothing(hub: RunningHub) -> None:
    hub.service.hub.audit.trouble = "entry 7 is missing"
    for path in ("checkpoint", "proof/0", "consistency?from=0"):
        answer = (
            await hub.get(f"{PLACE}/{path}") if "?" not in path else await hub.http.get(f"{PLACE}/{path}")
        )
        assert answer.status_code == 409
        assert "entry 7 is missing" in answer.json()["detail"]


async def test_who_did_it_is_named_with_the_id_of_the_token(hub: RunningHub) -> None:
    """Two tokens may have one name."""
    first, second = await hub.token_for(Role.ADMIN), await hub.token_for(Role.ADMIN)
    for token in (first, second):
        async with hub.client(token) as somebody:
            await somebody.post("/api/v1/tokens", json={"role": "viewer", "name": "x"})
    await hub.service.hub.committer.wait_until_stored()
    said = [entry["who"] for entry in (await hub.get(PLACE)).json()["entries"]]
    assert said == [f"a admin ({token.split('_')[1]})" for token in (second, first)]
