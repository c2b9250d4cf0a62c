"""The application of a process with a hub for each slot: any such process answers for the whole fleet.

What is about one agent goes to the hub of its slot, a list to all of them. Each of these hubs judges here, or stands by here
and asks the one that judges. A delivery with agents of several slots goes to each of these, and each takes what is its own.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from lifesigns.config.values import Limits
from lifesigns.hub.access import Access
from lifesigns.hub.clock import Clock
from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.shares import Shares
from lifesigns.hub.slots import NOT_HERE, SLOTS, slot_of
from lifesigns.ports.correlation import correlation_id
from lifesigns.ports.request_ids import HEADER
from lifesigns.views import Alive
from lifesigns.web import merging
from lifesigns.web.access import headers_of, session_shown, token_shown
from lifesigns.web.answers import Answer, Problem, Stream, answer, guarded
from lifesigns.web.app import Scope, Send, Web, send_answer, send_stream
from lifesigns.web.beat_fast_path import Peer
from lifesigns.web.bodies import ClientGone, LargeBodies, Receive, read_body
from lifesigns.web.exchange import HttpExchange
from lifesigns.web.fleet_deliveries import BEATS, deliver
from lifesigns.web.fleet_events import fleet_events
from lifesigns.web.forwarded import SIGNED_IN, SLOT
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.merged_metrics import merged_metrics
from lifesigns.web.slot_calls import (
    Query,
    SlotAnswer,
    as_is,
    ask,
    ask_all,
    nobody_judges,
    query_of,
    with_query,
)
from lifesigns.web.standby import StandbySite, with_id

API: Final = "/api/v1/"
SLOT_NAMES: Final = tuple(b"%d" % slot for slot in range(SLOTS))
OF_AGENTS: Final = (b"/api/v1/agents/", b"/ping/", b"/healthz/")
"""What begins so goes on with the id of an agent."""
PROBES: Final = ("/healthz", "/readyz")
METRICS: Final = "/metrics"
DELIVERIES: Final = (BEATS, f"{API}signals")
LIMIT: Final = 100

LISTS: Final[Mapping[str, Callable[[Sequence[SlotAnswer]], dict[str, Any]]]] = {
    "fleet": merging.fleet,
    "groups": merging.groups,
    "hubs": merging.hubs,
    "alerts": merging.alerts,
    "silences": merging.silences,
}
"""What is asked of all slots, and merged."""
PAGED: Final = ("breakers", "tasks")
"""What is listed page by page, one slot after the other."""

MERGED: Final = ("agents", "events", "events/list", "orders", "interventions", *PAGED)
"""What is asked of all slots, in ways of its own."""
BEARER: Final = 'Bearer realm="lifesigns"'

BY_ONE_OF_THEM: Final = ("interventions/", "escalations/", "tasks/", "alerts/")
"""What one slot knows: the first one that does answers."""
BREAKERS: Final = "breakers/"
"""Breakers of one name, which agents of several slots have."""
BY_ALL: Final = ("groups/", "hubs/", "silences", BREAKERS)
"""What changes something in every slot."""
ALONE: Final = re.compile(
    r"/(hooks|v1)/|/mcp|"
    r"/api/v1/(claims|messages|recovery|recoveries|memory|audit)(/|$)|"
    r"/api/v1/tasks/[^/]*/recovery$|/api/v1/agents/[^/]*/messages$"
)
"""What needs one hub that judges all agents, or is not divided yet."""

log: Final = logging.getLogger("lifesigns.web")


class _Named(msgspec.Struct):
    """Of whom a message is."""

    agent_id: str


_one: Final = msgspec.json.Decoder(_Named).decode


class FleetSite:
    """Passes each call to the hubs of the slots that it is about."""

    def __init__(
        self, access: Access, clock: Clock, host_policy: HostPolicy, limits: Limits, shares: Shares
    ) -> None:
        self.sites: list[Web | StandbySite | None] = [None] * SLOTS
        """By slot: the hub that judges or stands by; None while it changes from one to the other."""
        self._access, self._clock = access, clock
        self._host_policy, self._limits = host_policy, limits
        self._large_bodies = LargeBodies()
        self._shares = shares
        self.at_once = self

    def take(self, peer: Peer, exchange: HttpExchange) -> bool:
        """A single beat takes the fast path of its slot; False if it has to go the long way."""
        try:
            site = self.sites[slot_of(_one(exchange.body).agent_id)]
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return False
        return site is not None and site.at_once.take(peer, exchange)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope, called = with_id(scope)
        correlation_id.set(called.decode())
        try:
            found = await self._answer(scope, receive, send)
        except Problem as problem:
            found = problem.answer()
        except ClientGone:
            return
        except Exception:  # a bug of ours must fail one request and not all
            log.exception("%s %s failed", scope["method"], scope["path"], extra={"action": "request_failed"})
            found = Problem(500, "this is a bug of lifesigns; its log says more").answer()
        if found is None:
            return
        found.headers = guarded([*found.headers, (HEADER, called)], self._host_policy.strict_transport(scope))
        if isinstance(found, Stream):
            await send_stream(found, scope, receive, send)
        else:
            await send_answer(found, scope, send)

    # --- whom it concerns -----------------------------------------------------------------------------

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Answer | Stream | None:
        """The answer; None if a slot has answered."""
        path, method = scope["path"], scope["method"]
        part = path.removeprefix(API) if path.startswith(API) else ""
        of_task = method not in ("GET", "HEAD") and part.startswith("tasks/")  # Claims, and whose a task is.
        if of_task or ALONE.match(path):
            raise Problem(501, f"{path} {NOT_HERE}")
        if (wanted := headers_of(scope).get(SLOT)) in SLOT_NAMES:
            await self._pass_on(SLOT_NAMES.index(wanted), scope, receive, send)
            return None
        if path in PROBES:
            return await self._probe(scope)
        known = await self._known(scope)
        if (agent_id := _agent_in(scope, part)) is not None:
            await self._pass_on(slot_of(agent_id), scope, receive, send)
            return None
        if known is None and (part in LISTS or part in MERGED) and session_shown(scope, self._host_policy):
            # The hub of one slot may know it, and would answer for its own part only.
            raise Problem(401, "you are not signed in any more", headers={"WWW-Authenticate": BEARER})
        if known is None:
            await self._pass_on(self._here(), scope, receive, send)  # One refusal, and not one of each slot.
            return None
        if path in DELIVERIES and method == "POST":
            async with self._large_bodies.room(headers_of(scope), known.token_id):
                delivery = deliver(self.sites, scope, await self._body(scope, receive), self._here())
                # What the hubs do for it, they charge themselves.
                is_agent = known.role is Role.AGENT
                return await (self._shares.measured(known.token_id, delivery) if is_agent else delivery)
        if part.split("/")[0] == "tokens":
            await self._access.sync(self._clock())  # Another hub may have made one just now.
        if path == METRICS and method in ("GET", "HEAD"):
            return await self._metrics(scope)
        if method in ("GET", "HEAD"):
            return await self._read(part, scope, receive, send)
        if part.startswith((*BY_ALL, *BY_ONE_OF_THEM)):
            return await self._change(part, scope, await self._body(scope, receive))
        await self._pass_on(self._here(), scope, receive, send)
        return None

    async def _read(self, part: str, scope: Scope, receive: Receive, send: Send) -> Answer | Stream | None:
        if part == "agents":
            return await self._agents(scope)
        if part in LISTS:
            return self._merged(await ask_all(self.sites, scope), LISTS[part])
        if part in PAGED:
            return await self._pages(scope, part)
        if part == "interventions":
            newest = partial(merging.newest_interventions, limit=_limit_of(query_of(scope)))
            return self._merged(await ask_all(self.sites, scope), newest)
        if part == "events":
            return await fleet_events(self.sites, scope, lambda: self._may_still(scope))
        if part == "events/list":
            return await self._events(scope)
        if part == "orders":
            return await self._orders(scope, receive, send)
        if part.startswith(BY_ONE_OF_THEM):
            return await self._change(part, scope, b"")
        if part.startswith(BREAKERS):
            return await self._pages(scope, "breakers")
        await self._pass_on(self._here(), scope, receive, send)
        return None

    def _here(self) -> int:
        """A slot that is judged here, if there is one: for what is no slot's own, such as tokens and the dashboard. Sessions are
        this process's."""
        judged = (slot for slot, site in enumerate(self.sites) if isinstance(site, Web))
        return next(judged, 0)

    async def _pass_on(self, slot: int, scope: Scope, receive: Receive, send: Send) -> None:
        site = self.sites[slot]
        if site is None:
            raise nobody_judges([slot])
        await site(scope, receive, send)

    async def _known(self, scope: Scope) -> Principal | None:
        """Whose token came with it, or opened its session, if it is one of ours; the session of this process. What it may do is asked
        where it is done."""
        token, now = token_shown(scope, headers_of(scope)), self._clock()
        if token is not None:
            return await self._access.look_up(token, now)
        session = session_shown(scope, self._host_policy)
        who = None if session is None else self._access.session(session, now)
        if who is not None:
            scope[SIGNED_IN] = who.token_id  # For slots that are judged elsewhere.
        return who

    def _may_still(self, scope: Scope) -> bool:
        """Whether the session of a client that listens is still open; a token is asked for by each slot."""
        session = session_shown(scope, self._host_policy)
        return session is None or self._access.session(session, self._clock()) is not None

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        return await read_body(headers_of(scope), receive, self._limits.body_bytes)

    # --- what comes in --------------------------------------------------------------------------------

    async def _orders(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """The orders of several agents: those of the first slot that has some."""
        query = query_of(scope)
        asked = [one for name, value in query if name == "agent" for one in value.split(",") if one]
        rest = [pair for pair in query if pair[0] != "agent"]
        by_slot: dict[int, list[str]] = {}
        for agent_id in asked:
            by_slot.setdefault(slot_of(agent_id), []).append(agent_id)
        if len(by_slot) < 2:
            await self._pass_on(next(iter(by_slot), 0), scope, receive, send)
            return None
        tasks = [
            asyncio.ensure_future(
                ask(self.sites[slot], slot, with_query(scope, [*rest, *(("agent", one) for one in ids)]))
            )
            for slot, ids in by_slot.items()
        ]
        try:
            return await self._first_with_orders(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _first_with_orders(self, tasks: Sequence[asyncio.Future[SlotAnswer]]) -> Answer:
        left = set(tasks)
        orders: dict[str, Any] = {}
        failed: list[SlotAnswer] = []
        while left and not orders:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            for one in (task.result() for task in done):
                if one.status == 200:
                    orders |= one.json()["orders"]
                elif one.status not in (0, 503):
                    return as_is(one)
                else:
                    failed.append(one)
        if len(failed) == len(tasks):
            return as_is(failed[0])
        return answer({"orders": orders})

    async def _change(self, part: str, scope: Scope, body: bytes) -> Answer:
        """What every slot has to do, or the one that knows it."""
        if part.startswith("alerts/"):
            scope, only = _alert_of_slot(scope)
            if only is not None:
                return as_is(await ask(self.sites[only], only, scope, body))
        answers = await ask_all(self.sites, scope, body)
        done = [one for one in answers if 200 <= one.status < 300]
        if done and part.startswith(BY_ALL) and (away := _away(answers)):
            raise nobody_judges([one.slot for one in away], "the others have done it")
        refused = [one for one in answers if one.status == 409]
        if done and part.startswith("hubs/") and refused:
            return as_is(
                refused[0]
            )  # It is so of a hub as a whole or not: who asks has to know, and asks again.
        if done and part.startswith(BREAKERS):
            turned = [row for one in done for row in one.json()["interventions"]]
            return answer({"interventions": turned}, done[0].status)
        if done:
            return as_is(done[0])
        known = [one for one in answers if one.status not in (404, 409)]
        return as_is((known or refused or answers)[0])

    # --- what goes out --------------------------------------------------------------------------------

    def _merged(
        self, answers: Sequence[SlotAnswer], merge: Callable[[Sequence[SlotAnswer]], dict[str, Any]]
    ) -> Answer:
        """One answer of several. A refusal counts for all; slots that nobody judges right now are said to be missing."""
        there = [one for one in answers if one.status == 200]
        if refused := [one for one in answers if one.status not in (0, 200) and one.status < 500]:
            return as_is(refused[0])
        if not there:
            return as_is(answers[0])
        missing = [one.slot for one in answers if one.status != 200]
        return answer({**merge(there), "missing": missing})

    async def _probe(self, scope: Scope) -> Answer:
        if scope["path"] == "/healthz":
            self._host_policy.check_host(headers_of(scope).get(b"host"))
            return answer(Alive())
        answers = await ask_all(self.sites, scope)
        if refused := [one for one in answers if 400 <= one.status < 500]:
            return as_is(refused[0])
        missing = [one.slot for one in answers if one.status != 200]
        said = [value for one in answers if one.body and "store" in (value := one.json())]
        if not said:
            raise nobody_judges(missing)
        ready = {"status": "unready" if missing else "ok", **merging.ready(said), "missing": missing}
        return answer(ready, 503 if missing else 200)

    async def _metrics(self, scope: Scope) -> Answer:
        """Of the slots that are judged; the samples of the others are missing."""
        answers = await ask_all(self.sites, scope)
        there = [one for one in answers if one.status == 200]
        if len(there) < len(answers) and (refused := [one for one in answers if 400 <= one.status < 500]):
            return as_is(refused[0])
        if not there:
            return as_is(answers[0])
        return Answer(merged_metrics(there), content_type=there[0].header(b"content-type"))

    async def _agents(self, scope: Scope) -> Answer:
        """The list of agents: by need from all slots at once, else one slot after the other."""
        query = query_of(scope)
        given = dict(query)
        since = merging.since_by_slot(given["since"]) if "since" in given else None
        rest = with_query(scope, [pair for pair in query if pair[0] != "since"])
        answers = await self._from_cursor(rest, since or [merging.NONE] * SLOTS)
        merged = partial(_agent_list, limit=_limit_of(query), by_need=given.get("sort") == "need")
        found = self._merged(answers, merged)
        if since is not None and msgspec.json.decode(found.body).get("complete") is None:
            # Some slots know since when, and others do not: the client gets everything.
            return await self._agents(rest)
        return found

    async def _pages(self, scope: Scope, name: str) -> Answer:
        """A list of this name, one slot after the other."""
        answers = await self._from_cursor(scope)
        limit = _limit_of(query_of(scope))

        def merged(answers: Sequence[SlotAnswer]) -> dict[str, Any]:
            rows, cursor = merging.page({one.slot: one.json() for one in answers}, name, limit)
            return {name: rows, "cursor": cursor}

        return self._merged([one for one in answers if one.status != 404] or answers, merged)

    async def _from_cursor(self, scope: Scope, since: Sequence[str] = ()) -> list[SlotAnswer]:
        """The answers of the slots from where the cursor says on."""
        query = query_of(scope)
        given = dict(query).get("cursor", "")
        rest = [pair for pair in query if pair[0] != "cursor"]
        first, place = merging.place_of(given)

        def own_query(slot: int) -> list[tuple[str, str]]:
            own = [*rest, ("since", since[slot])] if since and since[slot] != merging.NONE else list(rest)
            return [*own, ("cursor", place)] if slot == first and place else own

        slots = range(first, SLOTS)
        return await asyncio.gather(
            *(ask(self.sites[slot], slot, with_query(scope, own_query(slot))) for slot in slots)
        )

    async def _events(self, scope: Scope) -> Answer:
        """Stored events, slot by slot, each in its order."""
        query = query_of(scope)
        given = dict(query)
        rest = [pair for pair in query if pair[0] != "after"]
        if not given.get("after", "0").isdecimal():
            return as_is(await ask(self.sites[0], 0, scope))  # It says what is wrong with it.
        after = int(given.get("after", "0"))
        event_id, first = divmod(after, SLOTS)
        slots = [slot_of(given["agent"])] if "agent" in given else range(first, SLOTS)
        rows: list[Any] = []
        for slot in slots:
            own = [*rest, ("after", str(event_id if slot == first or "agent" in given else 0))]
            one = await ask(self.sites[slot], slot, with_query(scope, own))
            if one.status != 200:
                return as_is(one)
            value = one.json()
            rows += [{**row, "id": merging.number_of(row["id"], slot)} for row in value["events"]]
            if value["after"] is not None:
                return answer({"events": rows, "after": merging.number_of(value["after"], slot)})
            if rows and slot + 1 in slots:
                return answer({"events": rows, "after": slot + 1})
        return answer({"events": rows, "after": None})


def _agent_list(answers: Sequence[SlotAnswer], limit: int, *, by_need: bool) -> dict[str, Any]:
    """`complete` is None if some slots say so, and others do not."""
    values = {one.slot: one.json() for one in answers}
    complete = {value["complete"] for value in values.values()}
    cursor = None
    if by_need:
        rows = [row for value in values.values() for row in value["agents"]]
        rows.sort(key=lambda row: (row["need"], row["state_changed_at"], row["agent_id"]))
        del rows[limit:]
    else:
        rows, cursor = merging.page(values, "agents", limit)
    return {
        "agents": rows,
        "updated": merging.updated(answers),
        "cursor": cursor,
        "complete": complete.pop() if len(complete) == 1 else None,
        "gone": [gone for value in values.values() for gone in value["gone"]],
    }


def _limit_of(query: Query) -> int:
    given = dict(query).get("limit", "")
    return int(given) if given.isdecimal() else LIMIT


def _agent_in(scope: Scope, part: str) -> str | None:
    """The agent that a call is about."""
    for before in OF_AGENTS:
        if scope["raw_path"].startswith(before):
            return unquote(scope["raw_path"][len(before) :].split(b"/", 1)[0].decode("latin-1"))
    return dict(query_of(scope)).get("agent") if part.startswith(BREAKERS) else None


def _alert_of_slot(scope: Scope) -> tuple[Scope, int | None]:
    """An alert by its number in the whole fleet: its number in its slot, and that slot."""
    parts = scope["path"].split("/")
    if len(parts) < 5 or not parts[4].isdecimal():
        return scope, None
    number, slot = divmod(int(parts[4]), SLOTS)
    parts[4] = str(number)
    path = "/".join(parts)
    return {**scope, "path": path, "raw_path": quote(path).encode()}, slot


def _away(answers: Sequence[SlotAnswer]) -> list[SlotAnswer]:
    return [one for one in answers if one.status == 0 or one.status >= 500]
