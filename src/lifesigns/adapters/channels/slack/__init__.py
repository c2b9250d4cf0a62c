"""Slack, by an incoming webhook or by a bot.

A webhook can only post: a resolution is another message. A bot (`chat.postMessage`) keeps a thread per alert: updates
are replies that also show in the channel, and at the end the bot edits the first message to say that it is over. It
remembers threads while the hub runs; after a restart an alert begins a new one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import msgspec

from lifesigns.adapters.channels.slack.blocks import message
from lifesigns.adapters.posting import Answer, Poster
from lifesigns.errors import UsageError
from lifesigns.ports import NotDelivered, Notice, NoticeStage

API: Final = "https://slack.com/api"
THREADS_MAX: Final = 10_000

_AGAIN: Final = frozenset(
    {"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"}
)
_GONE: Final = frozenset(
    {"message_not_found", "cant_update_message", "edit_window_closed", "thread_not_found"}
)


class SlackWebhook:
    """Posts to an incoming webhook, whose address is the secret."""

    def __init__(self, url: str) -> None:
        self._poster = Poster(url, NotDelivered)

    async def tell(self, notice: Notice) -> None:
        await self._poster.post("", msgspec.json.encode(message(notice)), {})

    async def close(self) -> None:
        await self._poster.close()


class SlackBot:
    """Posts as a bot to a channel (its id or name), by a token with the scope `chat:write`."""

    def __init__(self, token: str, channel: str, *, api: str = API) -> None:
        if not token.isascii() or not token.isprintable() or not token:
            raise UsageError("the token of a Slack bot needs to look like xoxb-...")
        self._poster = Poster(api, NotDelivered, secrets=(token,))
        self._headers = {"Authorization": f"Bearer {token}"}
        self._channel = channel
        self._threads: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """The first message of each key: the channel's id and the message's `ts`."""

    async def tell(self, notice: Notice) -> None:
        thread = self._threads.get(notice.key)
        if notice.stage is NoticeStage.OPENED or thread is None:
            await self._open(notice)
            return
        loud = notice.stage in (NoticeStage.WORSE, NoticeStage.REMINDER)
        reply = {**message(notice), "channel": thread[0], "thread_ts": thread[1], "reply_broadcast": loud}
        if not await self._call("chat.postMessage", reply):
            await self._open(notice)
            return
        if notice.stage is NoticeStage.RESOLVED:
            await self._call("chat.update", {**message(notice), "channel": thread[0], "ts": thread[1]})
            self._threads.pop(notice.key, None)

    async def close(self) -> None:
        await self._poster.close()

    async def _open(self, notice: Notice) -> None:
        posted = await self._call("chat.postMessage", {**message(notice), "channel": self._channel})
        where, ts = posted.get("channel"), posted.get("ts")
        self._threads.pop(notice.key, None)
        if notice.stage is not NoticeStage.RESOLVED and isinstance(where, str) and isinstance(ts, str):
            self._threads[notice.key] = (where, ts)
            if len(self._threads) > THREADS_MAX:
                self._threads.popitem(last=False)

    async def _call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        """Slack's answer; empty if the message it is about is gone. Its errors come with status 200."""
        answer = await self._poster.post(f"/{method}", msgspec.json.encode(body), self._headers)
        reply = _read(answer)
        if reply.get("ok") is True:
            return reply
        error = str(reply.get("error") or "something that is no answer of Slack's")
        if error in _GONE:
            return {}
        raise self._poster.refusal(answer, f"{method}: {error}", transient=error in _AGAIN or not reply)


def _read(answer: Answer) -> dict[str, Any]:
    try:
        return msgspec.json.decode(answer.body, type=dict)
    except msgspec.MsgspecError:
        return {}
