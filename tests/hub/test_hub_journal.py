"""The hub keeps what it heard, for `lifesigns replay`."""

from __future__ import annotations

from lifesigns.core.signals import BeatReceived
from lifesigns.hub.journal import DecodedChunk, read
from tests.hub.ground import Ground


async def journal(ground: Ground) -> list[DecodedChunk]:
    return [read(chunk) async for chunk in ground.another_store().journal(0.0, 1e12)]


async def test_what_was_heard_is_kept_and_a_restart_is_seen() -> None:
    async with Ground() as ground:
        ground.hub.hear([BeatReceived("a", 1, "one"), BeatReceived("b", 1, "one")])
        await ground.restart(cleanly=True)
        ground.hub.hear([BeatReceived("a", 2, "one")])
        ground.hub.store_journal()
        await ground.hub.committer.wait_until_stored()
        first, second = await journal(ground)
        assert [signal.seq for _, signal in (*first, *second)] == [1, 1, 2]
        assert second.epoch > first.epoch


async def test_a_time_in_which_the_hub_slept_is_in_its_journal() -> None:
    async with Ground() as ground:
        ground.hub.hear([BeatReceived("a", 1, "one")])
        await ground.pass_time(3.0)
        slept_at = ground.now
        ground.now += 60.0
        ground.hub.hear([BeatReceived("a", 2, "one")])
        await ground.until(lambda: not ground.hub.inbox.waiting)
        ground.hub.store_journal()
        await ground.hub.committer.wait_until_stored()
        (reading,) = await journal(ground)
        ((began_at, ended_at),) = reading.lapses
        assert slept_at - 2 <= began_at <= slept_at
        assert ended_at == ground.now
