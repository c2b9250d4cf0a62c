"""When a hub says of itself that it cannot watch: then its dead-man's switch gets no ping."""

from __future__ import annotations

from lifesigns.core.signals import BeatReceived
from lifesigns.hub.service import JUDGES_WITHIN
from tests.web.observed import Observed


async def test_a_hub_that_judges_is_well_and_one_that_is_late_is_not() -> None:
    async with Observed() as seen:
        await seen.hear(BeatReceived("a", None, "one"))
        assert seen.service.why_unwell() == ""
        seen.now = seen.service.engine.wake_at() + JUDGES_WITHIN
        assert seen.service.why_unwell() == f"nobody was judged for {JUDGES_WITHIN:.0f} s"
        seen.service.hub.run_due()
        assert seen.service.why_unwell() == ""


async def test_a_hub_that_cannot_see_is_not_well() -> None:
    async with Observed() as seen:
        await seen.hear(BeatReceived("a", None, "one"))
        seen.service.engine.beliefs.awareness.blind_since = seen.now
        assert seen.service.why_unwell() == "the hub cannot see"


async def test_a_hub_of_one_slot_is_well_if_somebody_judges_the_others() -> None:
    async with Observed() as seen:
        seen.service.why_others_unwell = lambda: "Nobody judges slot 5"
        assert seen.service.why_unwell() == "Nobody judges slot 5"
