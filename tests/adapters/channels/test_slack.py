"""Slack: within its limits, in threads, and nothing an agent says can steer it."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.adapters.channels.slack import SlackBot, SlackWebhook
from lifesigns.adapters.channels.slack.blocks import cut, escaped, message
from lifesigns.ports import NotDelivered, NoticeStage
from tests.adapters.channels.peers import Peer, Reply, Slack, _slack_problem, notice

STAGES = [str(stage) for stage in NoticeStage]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("severity", ["info", "warning", "error", "critical"])
async def test_a_webhook_takes_every_notice(stage: str, severity: str) -> None:
    async with Peer(Slack().webhook) as peer:
        channel = SlackWebhook(f"{peer.url}/services/T1/B1/x")
        await channel.tell(notice(stage, severity))
        await channel.close()
    (request,) = peer.requests
    assert request.path == "/services/T1/B1/x"
    assert "coder-7 is disconnected" in request.json["text"]


async def test_a_bot_keeps_a_thread_and_marks_its_beginning_as_over() -> None:
    slack = Slack()
    async with Peer(slack.api) as peer:
        bot = SlackBot(slack.token, "#ops", api=f"{peer.url}/api")
        for stage in STAGES:
            await bot.tell(notice(stage))
        await bot.close()
    first, *replies = slack.messages.values()
    assert ":white_check_mark:" in first["text"], "changed at the end"
    assert [reply["thread_ts"] for reply in replies] == ["1.0001"] * 4
    assert [reply["reply_broadcast"] for reply in replies] == [True, False, True, False]
    assert peer.requests[0].json["channel"] == "#ops"


async def test_an_alert_that_comes_again_begins_a_new_thread() -> None:
    slack = Slack()
    async with Peer(slack.api) as peer:
        bot = SlackBot(slack.token, "#ops", api=f"{peer.url}/api")
        for stage in ("opened", "resolved", "opened", "worse"):
            await bot.tell(notice(stage))
        await bot.close()
    assert [m.get("thread_ts") for m in slack.messages.values()] == [None, "1.0001", None, "3.0001"]


async def test_after_a_restart_news_stand_alone() -> None:
    slack = Slack()
    async with Peer(slack.api) as peer:
        for stage in ("opened", "worse", "resolved"):
            bot = SlackBot(slack.token, "#ops", api=f"{peer.url}/api")
            await bot.tell(notice(stage))
            await bot.close()
    assert [m.get("thread_ts") for m in slack.messages.values()] == [None, None, None]


async def test_a_thread_that_somebody_deleted_is_begun_anew() -> None:
    slack = Slack()
    async with Peer(slack.api) as peer:
        bot = SlackBot(slack.token, "#ops", api=f"{peer.url}/api")
        await bot.tell(notice())
        slack.messages.clear()
        await bot.tell(notice("worse"))
        await bot.tell(notice("resolved"))
        await bot.close()
    assert len(slack.messages) == 2


@pytest.mark.parametrize(
    ("error", "transient"),
    [("ratelimited", True), ("internal_error", True), ("invalid_auth", False), ("channel_not_found", False)],
)
async def test_a_bot_reads_errors_that_come_with_status_200(error: str, transient: bool) -> None:
    body = f'{{"ok": false, "error": "{error}"}}'.encode()
    async with Peer(lambda _: Reply(200, body)) as peer:
        bot = SlackBot("xoxb-1", "#ops", api=peer.url)
        with pytest.raises(NotDelivered, match=error) as caught:
            await bot.tell(notice())
        await bot.close()
    assert caught.value.transient is transient


async def test_an_answer_that_is_not_slacks_is_worth_another_try() -> None:
    """A proxy on the way says what it likes."""
    async with Peer(lambda _: Reply(200, b"<html>sign in</html>")) as peer:
        bot = SlackBot("xoxb-1", "#ops", api=peer.url)
        with pytest.raises(NotDelivered) as caught:
            await bot.tell(notice())
        await bot.close()
    assert caught.value.transient


def test_nobody_can_be_called_by_what_an_agent_says() -> None:
    said = message(notice(title="<!channel> look", text="<http://evil|hub> & <@U1>", kind="a<b"))
    shown = str(said)
    assert "<!channel>" not in shown
    assert "<@U1>" not in shown
    assert "<http://evil" not in shown
    assert "&lt;!channel&gt;" in said["text"]


@given(
    st.builds(
        notice,
        st.sampled_from(STAGES),
        title=st.text(min_size=1, max_size=400),
        text=st.text(max_size=5000) | st.just("&<>" * 3000),
        group=st.text(max_size=100),
        link=st.text(max_size=50),
        count=st.integers(0, 10**9),
        details=st.dictionaries(
            st.text(min_size=1, max_size=50), st.text(max_size=3000) | st.floats(), max_size=30
        ),
    )
)
def test_whatever_is_said_is_within_the_limits(said: object) -> None:
    assert _slack_problem(message(said)) == ""  # type: ignore[arg-type]


@given(st.text(alphabet=string.ascii_letters + "&<>;", max_size=60), st.integers(8, 30))
def test_a_text_is_not_cut_within_an_escaped_sign(text: str, length: int) -> None:
    short = cut(escaped(text), length)
    assert len(short) <= length
    if short.endswith("…"):
        tail = short[:-1].rpartition("&")[2] if "&" in short else ";"
        assert ";" in tail or len(tail) > 4 or short[:-1].count("&") == 0
