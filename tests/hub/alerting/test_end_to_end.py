"""A storm, a hub that ends in the middle of it, and real channels over real HTTP that keep their own rules."""

from __future__ import annotations

import time

import pytest

from lifesigns.adapters.channels.pagerduty import PagerDutyChannel
from lifesigns.adapters.channels.slack import SlackBot
from lifesigns.hub.alerting.alerts import AlertSubject
from lifesigns.hub.alerting.rules import Pacing, Rate, Rules
from tests.adapters.channels.peers import PagerDuty, Peer, Reply, Request, Slack
from tests.hub.alerting.test_notifier import House

GAP = 0.05


class Hasty:
    """Slack that answers 429 to whoever comes sooner than its rate allows."""

    def __init__(self, slack: Slack) -> None:
        self._slack = slack
        self._came_at = 0.0
        self.too_soon = 0

    def api(self, request: Request) -> Reply:
        now = time.monotonic()
        hasty = now - self._came_at < GAP * 0.5 and not request.path.endswith("chat.update")
        self._came_at = now
        if hasty:
            self.too_soon += 1
            return Reply(429, b"slow down", {"Retry-After": "1"})
        return self._slack.api(request)


async def test_five_hundred_agents_fail_the_hub_ends_and_comes_back_and_all_are_well_at_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lifesigns.hub.alerting.channel_queue.RETRY_AFTER", 0.05)
    slack, duty = Slack(), PagerDuty()
    hasty = Hasty(slack)
    async with Peer(hasty.api) as chat, Peer(duty.enqueue) as pager:
        house = House("slack", "pagerduty")
        pacing = Pacing(hold_for=0.2, update_every=0.3, repeat_every=0, group_from=3)
        house.rules = Rules(dict.fromkeys(house.ears, Rate(per_minute=600, gap=GAP)), pacing=pacing)
        agents = [f"a-{n}" for n in range(500)]
        house.fleet.agents = {name: AlertSubject(host=f"ws-{n % 2}") for n, name in enumerate(agents)}
        house.channels = lambda: {
            "slack": SlackBot(slack.token, "#ops", api=chat.url),
            "pagerduty": PagerDutyChannel(duty.routing_key, api=pager.url),
        }
        async with house:
            for n in range(0, 300, 10):
                await house.fall(*agents[n : n + 10])
            await house.until(lambda: len(duty.open) == 2)
            await house.restart()
            pager.replies.extend([Reply(503), Reply(hangs_up=True), Reply(429, headers={"Retry-After": "1"})])
            for n in range(300, 500, 10):
                await house.fall(*agents[n : n + 10])
            await house.until(lambda: house.told_ever("slack") == house.told_ever("pagerduty") == 500)
            assert set(duty.open) == {"stuck_agent@host ws-0", "stuck_agent@host ws-1"}
            await house.heal(*agents)
            await house.until(lambda: not duty.open and not house.open_bundles())
    assert hasty.too_soon == 0, "it was never told more than its rate"
    beginnings = [m for m in slack.messages.values() if "thread_ts" not in m]
    assert 2 <= len(beginnings) <= 4, "two groups; after the restart each may begin a new thread"
    assert len(chat.requests) + len(pager.requests) <= 40, "not a word for each of five hundred"
