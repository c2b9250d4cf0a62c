"""Silence: an agent that should have spoken by now.

Chen's NFD-E with forgetting. Arrivals predict the next one: the mean of `A_i - i*interval` over the past plus one
interval, kept as a running estimate (`expected_at`) that forgets over about 32 beats, so that it follows a drifting
sender. Suspicion begins `margin` after the expected arrival: the smallest margin that suspects a healthy agent with a
chance of at most `false_suspicion_rate` per beat. The policy sets the bounds: never later than its fixed rule, and
only the fixed rule until enough beats have come.

A suspicion is not a verdict: the engine pings the agent, and any sign of life refutes the suspicion.
"""

from __future__ import annotations

from math import ceil, erfc, inf, log, log10, sqrt
from typing import Final

from lifesigns.core.agent import DECLARED, Agent
from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.health import BUSY_WORD, Doing
from lifesigns.core.policy import SilencePolicy
from lifesigns.core.second_opinion import NO_DOUBT, Doubt
from lifesigns.core.words import duration, times

MEMORY: Final = 32
"""Beats after which an old arrival has lost most of its weight in the prediction."""

LESSON: Final = 16
"""After the first `MEMORY` beats we learn only from every sixteenth: learning costs as much as the rest of a beat,
and a sample of the arrivals shows the same spread."""

OUTAGE: Final = 4.0
"""An error of more than this many intervals is an outage, not lateness: it teaches nothing about jitter."""

CLOSE: Final = 0.5
"""A margin that would win less than half an interval over the fixed rule is not worth its arithmetic."""

BACKLOG: Final = 0.1
"""Beats that come ten times as fast as usual waited somewhere: a backlog shows no rhythm, so we learn nothing from it."""

INTERVAL_MIN: Final = 0.001

TERMS_MAX: Final = 64
"""The most missed beats we calculate with: more only make a false suspicion less likely."""

UNANSWERED_MAX: Final = 1e-4
"""We ping a healthy agent on a lossy line so often that all its answers get lost at most this often."""

LATE: Final = 0.05
"""Beats that come so much more rarely than those before are worth a closer look (`Watching.act_on_due`). The mean over
a lesson says so; a single late beat is jitter."""

LOSSES_MIN: Final = 3
"""One or two missing beats say nothing about the line."""

PINGS_GROWTH_MAX: Final = 3
"""However lossy its line, we ping an agent at most this many times as often as the policy says."""

REFIT_GROWTH: Final = 1.25
"""We fit the margin again when the sample has grown by a quarter; more often changes little."""


def learn(agent: Agent, seq: int | None, now: float) -> None:
    """A beat came: compare it with the prediction and predict the next one.

    Without a sequence we estimate the lost beats from the time that passed.
    """
    beats = agent.beats
    agent.teach_at = beats + (1 if beats < MEMORY else LESSON)
    if beats == 1:
        _begin(agent, seq, now)
        return
    interval, heard, taught_seq = agent.interval, beats - agent.taught_beat, agent.taught_seq
    passed = now - agent.taught_at
    steps = int(passed / interval + 0.5) if seq is None or taught_seq is None else seq - taught_seq
    if steps < heard:
        steps = heard
    if passed < BACKLOG * steps * interval:
        return
    error = now - agent.expected_at - (steps - 1) * interval
    agent.taught_at, agent.taught_seq, agent.taught_beat = now, seq, beats
    if passed > (1.0 + LATE) * steps * interval:
        agent.slowing = True
    if abs(error) > OUTAGE * interval:
        # Or the sender has another rhythm now. We learn it from here on, and until we have heard as many beats as the
        # prediction remembers, only the fixed rule holds.
        agent.interval = interval = max(passed / steps, INTERVAL_MIN)
        agent.expected_at = now + interval
        agent.margin, agent.refit_at = inf, beats + MEMORY
        return
    if steps > heard:
        agent.lost += steps - heard
    agent.lessons = lessons = agent.lessons + 1
    agent.lateness2 += error * error
    weight = 1.0 / lessons if lessons < MEMORY else 1.0 / MEMORY
    interval += (passed / steps - interval) * weight
    if interval < INTERVAL_MIN:
        interval = INTERVAL_MIN
    agent.interval = interval
    agent.expected_at = now - error * (1.0 - weight) + interval


def _begin(agent: Agent, seq: int | None, now: float) -> None:
    """The first beat of a life: we know nothing yet but its arrival."""
    agent.lessons = 1
    agent.lost = 0
    agent.lateness2 = 0.0
    agent.taught_at, agent.taught_seq, agent.taught_beat = now, seq, 1
    agent.expected_at = now + agent.interval
    agent.refit_at = 0
    agent.margin = inf


def relearn(agent: Agent) -> None:
    """Its rhythm may change now: keep to the fixed rule until three more lessons have shown the one that comes."""
    agent.lessons, agent.lateness2 = min(agent.lessons, 1), 0.0
    agent.margin, agent.refit_at = inf, agent.beats + 3 * LESSON


def expect(agent: Agent, interval: float) -> None:
    """Expect this rhythm, unless the agent has shown its own (one beat shows none). A sender's own policy often comes
    just after its first beat; with a policy's ten minutes we would take beats of every second for a backlog."""
    if not agent.beats:
        agent.interval = interval
    elif agent.lessons <= 1:
        agent.interval = interval
        agent.expected_at = agent.taught_at + interval


def suspect_at(agent: Agent, silence_from: float, policy: SilencePolicy) -> float:
    """When this agent becomes suspect unless we hear from it."""
    heard_at = agent.heard_at
    if agent.status == BUSY_WORD or agent.doing is Doing.BUSY:
        return _busy_until(agent, max(heard_at, silence_from), policy)
    if silence_from >= heard_at:
        return silence_from + policy.suspect_after
    latest = heard_at + policy.suspect_after
    if agent.beats < policy.adaptive_from or not policy.adaptive:
        return latest
    if agent.beats >= agent.refit_at:
        agent.refit_at = int(agent.beats * REFIT_GROWTH) + 1
        agent.margin = margin(
            variance(agent),
            loss_rate(agent.lost, agent.beats),
            agent.interval,
            policy.false_suspicion_rate,
            policy.suspect_after,
        )
    if agent.margin >= policy.suspect_after - CLOSE * agent.interval:
        return latest
    expected = expected_at(agent)
    if expected <= heard_at:
        return latest  # The prediction is older than the last beat, so it is out of date.
    at = expected + agent.margin
    return min(latest, max(at, heard_at + agent.interval))


def _busy_until(agent: Agent, silent_from: float, policy: SilencePolicy) -> float:
    """When an agent that declared itself busy becomes suspect: later than others, but within bounds.

    If it said until when and has not beaten since, it cannot beat while busy: we expect it back then. If it does
    beat, it only gets the longer timeout, or we would not notice its death.
    """
    at = silent_from + policy.suspect_after + (policy.busy_factor - 1) * policy.timeout
    declared = None if agent.work is None else agent.work.calls.get(DECLARED)
    if declared is not None and declared.said and agent.heard_at <= declared.started_at + agent.interval:
        back_at = declared.started_at + min(declared.bound, policy.busy_max)
        at = max(at, back_at + policy.suspect_after)
    return at


def expected_at(agent: Agent) -> float:
    """When the next beat should arrive: the last learned prediction, extended over the beats since."""
    since = agent.beats - agent.taught_beat
    if since and agent.taught_seq is not None:
        since = max(since, agent.seq - agent.taught_seq)
    elif since:
        since = max(since, int((agent.heard_at - agent.taught_at) / agent.interval + 0.5))
    return agent.expected_at + since * agent.interval


def observed_interval(agent: Agent) -> float:
    """The time between its beats, for display. We learn nothing from beats that come far more often than expected
    (`BACKLOG`), yet the display must not claim that they come once a minute."""
    since = agent.beats - agent.taught_beat
    if since > 1 and (passed := agent.heard_at - agent.taught_at) < BACKLOG * since * agent.interval:
        return passed / since
    return agent.interval


def variance(agent: Agent) -> float:
    """The variance of lateness over this life. The floor is a millisecond: no clock is better."""
    return max(1e-6, agent.lateness2 / max(1, agent.lessons))


def loss_rate(lost: int, heard: int) -> float:
    """How likely the next beat never comes, or comes later than any seen.

    Jeffreys' estimate of the loss among all that were sent, and the rule of succession for "later than
    all seen"; either is enough to miss it.
    """
    sent = lost + heard
    lose, late = (lost + 0.5) / (sent + 1), 1.0 / (sent + 1)
    return 1.0 - (1.0 - lose) * (1.0 - late)


def false_suspicion(alpha: float, variance: float, loss: float, interval: float) -> float:
    """The chance that a healthy agent is silent `alpha` past its expected beat (Chen's beta)."""
    chance = 1.0
    for j in range(min(ceil(alpha / interval), TERMS_MAX)):
        x2 = (alpha - j * interval) ** 2
        chance *= (variance + loss * x2) / (variance + x2)
    return chance


def margin(
    variance: float, loss: float, interval: float, rate: float, limit: float, steps: int = 24
) -> float:
    """The smallest margin with a false suspicion at most this likely, or `limit` if none is."""
    if false_suspicion(limit, variance, loss, interval) > rate:
        return limit
    low, high = 0.0, limit
    for _ in range(steps):
        middle = (low + high) / 2
        if false_suspicion(middle, variance, loss, interval) > rate:
            low = middle
        else:
            high = middle
    return high


def pings(agent: Agent, policy: SilencePolicy) -> int:
    """How often we ping this agent before a verdict: more often than the policy says if its line loses beats, since
    pings and answers get lost as often. The time it has to answer stays the same (`ping_wait`)."""
    if agent.lost < LOSSES_MIN or policy.pings == 1:
        return policy.pings
    most = PINGS_GROWTH_MAX * policy.pings
    carried = agent.beats / (agent.beats + agent.lost)
    unanswered = 1.0 - carried * carried
    if unanswered == 1.0:  # Its new life has not beaten yet, or nearly all was lost.
        return most
    return min(max(policy.pings, ceil(log(UNANSWERED_MAX) / log(unanswered))), most)


def ping_wait(agent: Agent, asked: int, policy: SilencePolicy) -> float:
    """How long we wait for an answer to this ping. The last ping always has its whole wait; the earlier ones share
    the policy's waits for all but one."""
    planned = pings(agent, policy)
    if asked >= planned or planned == policy.pings:
        return policy.ping_wait
    return policy.ping_wait * (policy.pings - 1) / (planned - 1)


def answer_within(agent: Agent, asked: int, policy: SilencePolicy) -> float:
    """How long all pings from this one on have to be answered: the verdict comes then."""
    last = max(asked, pings(agent, policy))
    return sum(ping_wait(agent, number, policy) for number in range(asked, last + 1))


def phi(agent: Agent, now: float) -> float:
    """How surprising the silence is, as -log10 of the chance of a beat that late. For display only."""
    if agent.beats < 2:
        return 0.0
    late = (now - expected_at(agent)) / sqrt(2 * variance(agent))
    chance = erfc(late) / 2
    return max(0.0, -log10(chance)) if chance > 1e-300 else 300.0


def missed(agent: Agent, now: float) -> int:
    """How many beats should have come since the last one."""
    return max(0, int((now - agent.heard_at) / agent.interval)) if agent.interval else 0


def finding(agent: Agent, asked: int, now: float, *, over: bool, doubt: Doubt = NO_DOUBT) -> Finding:
    """The silence in words; `over` means all pings went unanswered. It proves nothing while somebody else may hear the
    agent."""
    silent_for = now - agent.heard_at
    return Finding(
        Kind.SILENCE,
        agent.heard_at,
        Severity.DISCONNECTED if over else Severity.DEGRADED,
        f"Nothing heard for {duration(silent_for)} (a beat is expected every "
        f"{duration(agent.interval)}); pinged {times(asked)} without an answer.{doubt.sentence}",
        {
            "silent_for": round(silent_for, 3),
            "interval": round(agent.interval, 3),
            "missed": missed(agent, now),
            "pings": asked,
            **doubt.numbers,
        },
        conclusive=over and not any(doubt),
    )


def never_started(registered_at: float, grace: float) -> Finding:
    """Registered, but never heard. It is not stale: it was never there."""
    return Finding(
        Kind.NEVER_STARTED,
        registered_at,
        Severity.DISCONNECTED,
        f"Expected {duration(grace)} ago and never heard since.",
        {"grace": grace},
    )
