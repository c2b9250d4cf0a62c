"""GitHub's issues over its REST API, of github.com or an Enterprise server (`https://host/api/v3`).

Its limits are obeyed for all requests together: after a 429, or a 403 that says it is a limit, nothing is asked before
`Retry-After`, or `X-RateLimit-Reset` if nothing remains, or a minute that doubles. Changes keep a second's distance, as
GitHub asks for. Lists are asked for with their ETag: an unchanged one costs nothing of the hourly limit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from lifesigns.adapters.posting import trust
from lifesigns.errors import UsageError
from lifesigns.ports.issues import Issue, IssueComment, IssueEvent, IssueRef, TrackerError

API: Final = "https://api.github.com"
VERSION: Final = "2022-11-28"
TIMEOUT: Final = 20.0
ANSWER_MAX: Final = 16 * 1024 * 1024
"""Bytes: a page of a hundred issues with long texts."""
PAGE: Final = 100
PAGES_MAX: Final = 10
PACE: Final = 1.0
"""Seconds between two changes."""
LIMITED_FOR: Final = 60.0
"""After a limit that does not say for how long; twice as long each time, up to an hour."""
LIMITED_MAX: Final = 3600.0
QUOTED_MAX: Final = 200
TRUSTED: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})

Token = Callable[[bool], Awaitable[str]]
"""The token; anew if the one before was refused."""
T = TypeVar("T")


class _User(msgspec.Struct):
    login: str = ""
    type: str = ""


class _Label(msgspec.Struct):
    name: str | None = ""


class _Issue(msgspec.Struct):
    number: int
    updated_at: str = ""
    state: str = "open"
    labels: list[_Label | str] = []
    assignees: list[_User] | None = None
    pull_request: dict[str, Any] | None = None


class _Event(msgspec.Struct):
    id: int
    event: str
    created_at: datetime
    actor: _User | None = None
    assignee: _User | None = None
    label: _Label | None = None


class _Comment(msgspec.Struct):
    id: int
    created_at: datetime
    user: _User | None = None
    body: str | None = ""
    html_url: str = ""
    author_association: str = "NONE"


class _Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]


class GitHub:
    """Implements `lifesigns.ports.IssueTracker`."""

    def __init__(
        self, token: Token, api: str = API, *, pace: float = PACE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = httpx2.URL(api.rstrip("/"))
        if self._url.scheme != "https" and self._url.host not in ("127.0.0.1", "localhost", "::1"):
            raise UsageError("needs https: everybody on the way could read the token")
        self._token = token
        self._pace = pace
        self._clock = clock
        self._client: httpx2.AsyncClient | None = None
        self._connecting = asyncio.Lock()
        self._changing = asyncio.Lock()
        self._changed_at = -pace
        self._closed_until = 0.0
        """Until when GitHub wants no request."""
        self._limits = 0
        """Limits in a row that did not say for how long."""
        self._date = (time.time(), clock())
        """GitHub's time, and when it was so here."""
        self._lists: dict[str, tuple[str, _Answer]] = {}
        """By address: ETag and answer of the first pages of lists."""

    # --- reading --------------------------------------------------------------------------------------

    async def labelled(self, repo: str, label: str) -> Sequence[Issue]:
        path = f"/repos/{repo}/issues?state=open&labels={quote(label, safe='')}&per_page={PAGE}"
        found = await self._pages(path, _Issue, remember=True)
        return [_issue(repo, one) for one in found if one.pull_request is None]

    async def issue(self, ref: IssueRef) -> Issue | None:
        answer = await self._ask("GET", _path(ref), missing=(404, 410))
        if answer.status >= 300:
            return None
        found = self._decoded(answer, _Issue)
        return _issue(ref.repo, found) if found.state == "open" else None

    async def events(self, ref: IssueRef) -> Sequence[IssueEvent]:
        found = await self._pages(f"{_path(ref)}/events?per_page={PAGE}", _Event)
        return [
            IssueEvent(
                one.id,
                one.event,
                self._age(one.created_at),
                one.actor.login if one.actor else "",
                one.assignee.login if one.assignee else "",
                (one.label.name or "") if one.label else "",
            )
            for one in found
        ]

    async def comments(self, ref: IssueRef, within: float) -> Sequence[IssueComment]:
        path = f"{_path(ref)}/comments?per_page={PAGE}"
        if isfinite(within):
            since = datetime.fromtimestamp(self._their_now(), UTC) - timedelta(seconds=within + 1.0)
            path += f"&since={since.strftime('%Y-%m-%dT%H:%M:%SZ')}"
        return [self._comment(one) for one in await self._pages(path, _Comment)]

    # --- changing -------------------------------------------------------------------------------------

    async def comment(self, ref: IssueRef, body: str) -> IssueComment:
        made = await self._change("POST", f"{_path(ref)}/comments", {"body": body})
        return self._comment(self._decoded(made, _Comment))

    async def edit_comment(self, ref: IssueRef, comment_id: int, body: str) -> bool:
        path = f"/repos/{ref.repo}/issues/comments/{comment_id}"
        return (await self._change("PATCH", path, {"body": body}, missing=(404, 410))).status < 300

    async def delete_comment(self, ref: IssueRef, comment_id: int) -> None:
        path = f"/repos/{ref.repo}/issues/comments/{comment_id}"
        await self._change("DELETE", path, missing=(404, 410))

    async def unassign(self, ref: IssueRef, logins: Sequence[str]) -> None:
        await self._change("DELETE", f"{_path(ref)}/assignees", {"assignees": list(logins)})

    async def add_label(self, ref: IssueRef, label: str) -> None:
        await self._change("POST", f"{_path(ref)}/labels", {"labels": [label]})

    async def remove_label(self, ref: IssueRef, label: str) -> None:
        path = f"{_path(ref)}/labels/{quote(label, safe='')}"
        await self._change("DELETE", path, missing=(404, 410))  # It is not there: somebody was quicker.

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    # --- requests -------------------------------------------------------------------------------------

    async def _pages(self, path: str, kind: type[T], *, remember: bool = False) -> list[T]:
        found: list[T] = []
        for number in range(1, PAGES_MAX + 1):
            answer = await self._ask("GET", f"{path}&page={number}", remember=remember)
            page = self._decoded(answer, list[kind])  # type: ignore[valid-type]
            found += page
            if len(page) < PAGE:
                break
        return found

    async def _change(
        self, method: str, path: str, body: object = None, *, missing: tuple[int, ...] = ()
    ) -> _Answer:
        async with self._changing:
            await asyncio.sleep(max(0.0, self._changed_at + self._pace - self._clock()))
            try:
                return await self._ask(method, path, body, missing=missing)
            finally:
                self._changed_at = self._clock()

    async def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        missing: tuple[int, ...] = (),
        remember: bool = False,
    ) -> _Answer:
        """The answer, if it is 2xx or a `missing` one; raises otherwise."""
        etag, known = self._lists.get(path, ("", None)) if remember else ("", None)
        answer = await self._send(method, path, body, etag, fresh_token=False)
        if answer.status == 401:
            answer = await self._send(method, path, body, etag, fresh_token=True)
        self._note_limits(answer)
        if answer.status == 304 and known is not None:
            return known
        if 200 <= answer.status < 300 or answer.status in missing:
            if remember and (etag := answer.headers.get("etag", "")):
                self._remember(path, etag, answer)
            return answer
        raise self._refusal(answer)

    async def _send(self, method: str, path: str, body: object, etag: str, *, fresh_token: bool) -> _Answer:
        if (wait := self._closed_until - self._clock()) > 0:
            raise TrackerError(f"{self._url.host}: its limit is reached", retry_after=wait)
        headers = {
            "Authorization": f"Bearer {await self._token(fresh_token)}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": VERSION,
            **({"If-None-Match": etag} if etag else {}),
            **({} if body is None else {"Content-Type": "application/json"}),
        }
        content = None if body is None else msgspec.json.encode(body)
        client = await self._connected()
        try:
            async with client.stream(
                method, f"{self._url}{path}", content=content, headers=headers
            ) as response:
                received = bytearray()
                async for piece in response.aiter_bytes():
                    received += piece
                    if len(received) > ANSWER_MAX:
                        raise TrackerError(f"{self._url.host}: its answer is too large", transient=False)
                return _Answer(response.status_code, bytes(received), dict(response.headers))
        except httpx2.TimeoutException:
            raise TrackerError(f"{self._url.host}: no answer within {TIMEOUT:g} s", uncertain=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            text = f"{self._url.host}: {str(error) or type(error).__name__}"
            raise TrackerError(text[:QUOTED_MAX], uncertain=True) from None

    async def _connected(self) -> httpx2.AsyncClient:
        async with self._connecting:
            if self._client is None:
                verify = await asyncio.to_thread(trust) if self._url.scheme == "https" else False
                self._client = httpx2.AsyncClient(
                    timeout=TIMEOUT, headers={"User-Agent": "lifesigns"}, verify=verify
                )
            return self._client

    def _decoded(self, answer: _Answer, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TrackerError(f"{self._url.host}: its answer cannot be read: {error}") from None

    def _remember(self, path: str, etag: str, answer: _Answer) -> None:
        self._lists[path] = etag, answer
        if len(self._lists) > PAGES_MAX * 10:
            del self._lists[next(iter(self._lists))]

    # --- limits and time ------------------------------------------------------------------------------

    def _note_limits(self, answer: _Answer) -> None:
        headers = answer.headers
        if date := headers.get("date"):
            with suppress(ValueError):
                self._date = parsedate_to_datetime(date).timestamp(), self._clock()
        wait = limited_for(answer.status, headers, answer.body, self._their_now(), self._limits)
        if wait is not None:
            self._closed_until = max(self._closed_until, self._clock() + wait)
        is_limit = wait is not None and answer.status in (403, 429)
        self._limits = self._limits + 1 if is_limit else 0

    def _refusal(self, answer: _Answer) -> TrackerError:
        try:
            said = str(msgspec.json.decode(answer.body)["message"])
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
            said = answer.body.decode("utf-8", "replace")
        quoted = " ".join(said.split())[:QUOTED_MAX]
        wait = self._closed_until - self._clock()
        limited = wait > 0 and answer.status in (403, 429)
        return TrackerError(
            f"{self._url.host} answered {answer.status}" + (f": {quoted}" if quoted else ""),
            transient=limited or answer.status in (401, 408, 425, 429) or answer.status >= 500,
            retry_after=wait if limited else None,
        )

    def _their_now(self) -> float:
        date, at = self._date
        return date + self._clock() - at

    def _age(self, moment: datetime) -> float:
        return max(0.0, self._their_now() - moment.timestamp())

    def _comment(self, one: _Comment) -> IssueComment:
        user = one.user or _User()
        trusted = one.author_association in TRUSTED or user.type == "Bot"
        return IssueComment(
            one.id, self._age(one.created_at), user.login, one.body or "", one.html_url, trusted
        )


def fixed_token(token: str) -> Token:
    """The same token always."""

    async def say(_: bool) -> str:
        return token

    return say


def limited_for(
    status: int, headers: Mapping[str, str], body: bytes, their_now: float, before: int
) -> float | None:
    """For how many seconds GitHub wants no request after this answer; None if it has nothing against the next one.
    `before`: limits in a row until now."""
    if status in (403, 429) and headers.get("retry-after", "").strip().isdecimal():
        return min(float(headers["retry-after"]), LIMITED_MAX)
    reset = headers.get("x-ratelimit-reset", "").strip()
    if headers.get("x-ratelimit-remaining", "").strip() == "0" and reset.isdecimal():
        return min(max(1.0, float(reset) - their_now + 1.0), LIMITED_MAX)
    if status == 429 or (status == 403 and b"rate limit" in body.lower()):
        return min(LIMITED_FOR * float(1 << min(before, 10)), LIMITED_MAX)
    return None


def _path(ref: IssueRef) -> str:
    return f"/repos/{ref.repo}/issues/{ref.number}"


def _issue(repo: str, one: _Issue) -> Issue:
    labels = (label if isinstance(label, str) else label.name or "" for label in one.labels)
    logins = tuple(user.login for user in one.assignees or ())
    return Issue(IssueRef(repo, one.number), tuple(labels), logins, one.updated_at)
