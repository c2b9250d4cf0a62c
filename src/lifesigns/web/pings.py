"""Pings of jobs: one request when a job has run, for cron and whatever else can fetch a URL. In the style of healthchecks.

    /ping/backup?every=1d&grace=1h      it ran, and is expected again within a day, give or take an hour
    /ping/backup/start                  it began; it may take as long as the grace, or `within=`
    /ping/backup/fail, /ping/backup/3   it failed; 0 is the same as no word at all

A job is an agent that speaks when it has run, so everything else about it is as usual: health, alerts, pauses, history. It
cannot answer when it is asked, so the moment it is due is all there is to judge it by: nothing adapts here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Final

import msgspec

from lifesigns.config.durations import HOUR, in_words, parse
from lifesigns.core import signals as s
from lifesigns.core.agent import Agent
from lifesigns.core.context import POLICY
from lifesigns.core.effects import Effect, Refusal
from lifesigns.core.policy import SilencePolicy
from lifesigns.web.answers import Answer, Problem
from lifesigns.web.routes import SPEAKERS, Request, Route
from lifesigns.wire.limits import Text

EVERY: Final = 24 * HOUR
GRACE: Final = HOUR
"""Of a job about which nobody said anything, as in healthchecks."""
EVERY_MIN: Final = 1.0
EVERY_MAX: Final = 366 * 24 * HOUR
ASKED_FOR: Final = 1.0
"""Seconds at the end of the grace in which it is asked whether it lives. It cannot answer, but nobody is convicted unasked."""

RUN: Final = "run"
"""What the run of a job is called, as a call."""
MESSAGE_MAX: Final = 2000


class PingQuery(msgspec.Struct):
    """How often the job runs, how late it may be, and how long it may take. Durations as in the configuration: `5m`, `1h 30m`."""

    every: str | None = None
    grace: str | None = None
    within: str | None = None
    rid: Text = ""
    """Names one run, if several may overlap."""


async def ping(request: Request) -> Answer:
    """A job ran. With `every` and `grace` it is expected again; they hold until other ones come."""
    return await _took(request, "0")


async def ping_with_output(request: Request) -> Answer:
    """A job ran, and printed this."""
    return await _took(request, "0")


async def ping_result(request: Request) -> Answer:
    """A job began (`start`), failed (`fail`), or ended with this exit status."""
    return await _took(request, request.path["result"])


async def ping_result_with_output(request: Request) -> Answer:
    """A job began, failed, or ended with this exit status, and printed this."""
    return await _took(request, request.path["result"])


async def _took(request: Request, result: str) -> Answer:
    receiver, agent_id = request.service.http_receiver, request.path["agent_id"]
    if (why := receiver.why_not(agent_id, request.principal)) is not None:
        raise Problem(403, why, field="agent_id")
    if result not in ("start", "fail") and not (
        result.isdecimal() and result.isascii() and int(result) <= 255
    ):
        raise Problem(
            404, f"is {result[:40]!r}, but may be start, fail or an exit status from 0 to 255", field="result"
        )
    within = _duration("within", request.query.within)
    await _expect(request, agent_id)
    await receiver.store_reports([*_report(request, agent_id, result, within), _beat(request, agent_id)])
    return Answer(b"OK\n", content_type=b"text/plain; charset=utf-8")


def _beat(request: Request, agent_id: str) -> s.BeatReceived:
    return s.BeatReceived(agent_id, source=request.principal.token_id)


def _report(request: Request, agent_id: str, result: str, within: float | None) -> list[s.Signal]:
    """What became of the run. It is a call, so one that takes too long is found, and a success ends what a failure began."""
    query, agent = request.query, request.service.engine.agent(agent_id)
    if result == "start":
        call_id = f"{RUN} {query.rid}" if query.rid else _new_run(request, agent)
        bound = within or _grace(request, agent)
        return [s.ToolStarted(agent_id=agent_id, call_id=call_id, tool=RUN, bound=bound)]
    began = _open_run(agent, query.rid)
    failed = result != "0"
    error = _error(request, result) if failed else None
    report: list[s.Signal] = []
    if began or not failed:
        call_id = began or _new_run(request, agent)
        report.append(
            s.ToolFinished(agent_id=agent_id, call_id=call_id, tool=RUN, ok=not failed, error=error)
        )
    if error is not None:
        report.append(s.ErrorReported(agent_id=agent_id, message=error, recoverable=False))
    return report


def _new_run(request: Request, agent: Agent | None) -> str:
    """Another name for each run: an end that comes with the name of the last one would be taken for a repetition."""
    return f"{RUN} {request.now} {0 if agent is None else agent.beats}"


def _open_run(agent: Agent | None, rid: str) -> str:
    """The run that ends: the one of this name, or the newest."""
    calls = () if agent is None or agent.work is None else agent.work.calls
    open_runs = [call_id for call_id in calls if call_id.startswith(f"{RUN} ")]
    if rid:
        return next((call_id for call_id in open_runs if call_id == f"{RUN} {rid}"), "")
    return open_runs[-1] if open_runs else ""


def _error(request: Request, result: str) -> str:
    said = "" if request.body is None else request.body[-MESSAGE_MAX:].decode("utf-8", "replace").strip()
    what = "it failed" if result == "fail" else f"it ended with exit status {result}"
    return f"{what}: {said}" if said else what


def _grace(request: Request, agent: Agent | None) -> float | None:
    if agent is None:
        return None
    silence = request.service.engine.policy_of(agent).silence
    return silence.timeout - silence.interval


# --- when it is expected again -------------------------------------------------------------------------


async def _expect(request: Request, agent_id: str) -> None:
    """Note how often the job says it runs, if that is news."""
    engine, query = request.service.engine, request.query
    agent = engine.agent(agent_id)
    every, grace = _duration("every", query.every), _duration("grace", query.grace)
    if every is None and grace is None and agent is not None:
        return
    known = None if agent is None else engine.policy_of(agent).silence
    if every is None:
        every = EVERY if known is None else known.interval
    if grace is None:
        grace = min(GRACE, every)
    if known is not None and (known.interval, known.timeout) == (every, every + grace) and not known.adaptive:
        return
    words = _words(every, grace)
    bounded = not request.principal.speaks_for_all
    registered = s.AgentRegistered(
        agent_id=agent_id, policy=words, source=request.principal.token_id, bounded=bounded
    )
    effects = await request.service.http_receiver.store_reports([registered])
    if (why := _why_refused(effects)) is not None:
        if agent is None:
            await request.service.http_receiver.store_reports(
                [s.AgentLeft(agent_id=agent_id, reason="its interval was refused")]
            )
        raise Problem(
            409,
            f"{why}. What the administrator set is a ceiling for a token of role agent: put the job's interval into "
            f"lifesigns.yaml (agents: {agent_id}), or ping with the token of an operator",
            field="every",
        )


def _words(every: float, grace: float) -> dict[str, Any]:
    """A policy under which the job is missed when `every` and `grace` are over, not sooner and not later."""
    timeout = every + grace
    return {
        "silence": {
            "interval": every,
            "timeout": timeout,
            "pings": 1,
            "ping_wait": min(ASKED_FOR, grace / 2),
            "missed_max": max(SilencePolicy().missed_max, ceil(timeout / every)),
            "adaptive": False,
            "degrade_on_suspicion": False,
        },
        "claim": {"lease": timeout},
        "respawn": {"enabled": False},
    }


def _why_refused(effects: Sequence[Effect]) -> str | None:
    for effect in effects:
        if isinstance(effect, Refusal) and effect.reason.startswith(POLICY):
            return effect.reason.removeprefix(POLICY).strip().rstrip(".")
    return None


def _duration(name: str, said: str | None) -> float | None:
    if said is None:
        return None
    try:
        seconds = parse(said)
    except ValueError as error:
        raise Problem(400, str(error), field=name) from None
    if not EVERY_MIN <= seconds <= EVERY_MAX:
        raise Problem(
            400, f"is {said!r}, but may be from {in_words(EVERY_MIN)} to {in_words(EVERY_MAX)}", field=name
        )
    return seconds


_ALSO: Final = {409: "the administrator's policy does not allow this interval"}


def _route(method: str, path: str, handle: Any) -> Route:
    body = bytes if method == "POST" else None
    return Route(
        method,
        path,
        SPEAKERS,
        handle,
        str,
        query=PingQuery,
        body=body,
        content_types=("text/plain",),
        also=_ALSO,
    )


CALLS: Final = (
    _route("GET", "/ping/{agent_id}", ping),
    _route("POST", "/ping/{agent_id}", ping_with_output),
    _route("GET", "/ping/{agent_id}/{result}", ping_result),
    _route("POST", "/ping/{agent_id}/{result}", ping_result_with_output),
)
