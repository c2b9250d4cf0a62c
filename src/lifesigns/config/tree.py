"""The `health_monitoring:` tree of IMPL-REQ-003 section 7, translated into the policy.

The tree's defaults are those of the profile `fleet`: a file that has the tree and names no profile gets that one. Where
the tree sets the heartbeat, other thresholds must follow it, or the relations between them would break. They follow in
the proportions of the profiles for tasks of minutes:

    ping_wait    the pings share one health check interval, but at most half of the time between
                 interval and timeout, so that a merely due beat is never suspected
    freeze       after one interval, conclusive after three
    grace, claim last as long as the timeout
    checkpoint   stale is stuck; a third of that, but at most 10 minutes, is degraded

None of them falls below the policy's own default for agents that beat every few seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lifesigns.config import readers, schema
from lifesigns.config.alerting import DEFAULT_ALERTING
from lifesigns.config.document import Source
from lifesigns.config.readers import Reader
from lifesigns.config.schema import ANY, Path, Schema, Setting
from lifesigns.core.policy import MINUTE, Policy

PROFILE: Final = "fleet"
"""The profile whose values are the tree's defaults."""

MEANING: Final[Mapping[str, str]] = {
    "heartbeat.interval_seconds": "silence.interval",
    "heartbeat.timeout_seconds": "silence.timeout",
    "health_check.interval_seconds": "claim.check_wait",
    "health_check.checkpoint_stale_threshold_seconds": "stall.checkpoint_stuck_after",
    "intervention.nudge.enabled": "ladder.nudge_enabled",
    "intervention.nudge.max_attempts": "ladder.nudge_max",
    "intervention.nudge.interval_seconds": "ladder.nudge_every",
    "intervention.escalation.timeout_seconds": "ladder.escalation_timeout",
    "intervention.termination.cleanup_timeout_seconds": "ladder.save_for",
    "circuit_breaker.default.failure_threshold": "breaker.failure_threshold",
    "circuit_breaker.default.recovery_timeout_seconds": "breaker.recovery_timeout",
    "circuit_breaker.default.half_open_requests": "breaker.half_open_requests",
    "circuit_breaker.overrides.*.failure_threshold": "breakers.*.failure_threshold",
    "circuit_breaker.overrides.*.recovery_timeout_seconds": "breakers.*.recovery_timeout",
    "circuit_breaker.overrides.*.half_open_requests": "breakers.*.half_open_requests",
    "recovery.max_attempts_per_task": "respawn.per_task_max",
    "recovery.max_attempts_per_hour": "respawn.per_hour_max",
    "recovery.backoff_seconds": "respawn.backoff",
}
"""The policy key of each key of the tree. A `*` is a breaker's name."""

_PATHS: Final = {tuple(a.split(".")): tuple(b.split(".")) for a, b in MEANING.items()}
_OVERRIDES: Final = ("circuit_breaker", "overrides")

_INTERVAL: Final = ("silence", "interval")
_TIMEOUT: Final = ("silence", "timeout")
_CHECK: Final = ("claim", "check_wait")
_STALE: Final = ("stall", "checkpoint_stuck_after")

_SECONDS: Final = Policy()
"""The policy for agents that beat every few seconds."""

CLAIM_MIN: Final = 5 * MINUTE
"""A claim outlives a short silence: assigning a task twice costs more than waiting for it."""


def tree_schema() -> Schema:
    """The tree's keys; each is read like the policy value it stands for."""
    route: Schema = {"channels": readers.words, "severity": readers.severity}
    made: dict[str, Any] = {
        "enabled": readers.yes_no,
        "alerting": dict.fromkeys(DEFAULT_ALERTING, route),
    }
    for path, meaning in _PATHS.items():
        _plant(made, path, schema.end(schema.POLICY, meaning))
    return made


def _plant(made: dict[str, Any], path: Path, reader: Reader | None) -> None:
    assert reader is not None, f"{path} means nothing in the policy"
    *branches, leaf = path
    for branch in branches:
        made = made.setdefault(branch, {})
    made[leaf] = reader


def to_policy(settings: Mapping[Path, Setting], base: Policy) -> dict[Path, Setting]:
    """The tree's settings as settings of the policy, with those that follow from them."""
    given: dict[Path, Setting] = {}
    for path, setting in settings.items():
        meaning = _meaning(path)
        if meaning is not None:
            given[meaning] = Setting(meaning, setting.value, setting.source)
    follows = [*_silence(given, base), *_heartbeat(given), *_checkpoint(given), *_breakers(given)]
    return {**{setting.path: setting for setting in follows}, **given}


def _meaning(path: Path) -> Path | None:
    if path[:2] != _OVERRIDES:
        return _PATHS.get(path)
    return _named(_PATHS[(*_OVERRIDES, ANY, path[3])], path[2])


def _named(path: Path, name: str) -> Path:
    return tuple(name if part == ANY else part for part in path)


def _silence(given: Mapping[Path, Setting], base: Policy) -> Iterator[Setting]:
    cause = given.get(_TIMEOUT) or given.get(_INTERVAL) or given.get(_CHECK)
    if cause is None:
        return
    interval = _given(given, _INTERVAL, base.silence.interval)
    timeout = _given(given, _TIMEOUT, base.silence.timeout)
    check = _given(given, _CHECK, base.claim.check_wait)
    if timeout > interval:
        pings = base.silence.pings
        wait = min(check / pings, (timeout - interval) / (2 * pings))
        yield _following(cause, "silence.ping_wait", wait)


def _heartbeat(given: Mapping[Path, Setting]) -> Iterator[Setting]:
    if cause := given.get(_INTERVAL):
        interval = cause.value
        yield _following(cause, "freeze.after", max(interval, _SECONDS.freeze.after))
        conclusive = max(3 * interval, _SECONDS.freeze.conclusive_after)
        yield _following(cause, "freeze.conclusive_after", conclusive)
    if cause := given.get(_TIMEOUT):
        timeout = cause.value
        yield _following(cause, "silence.grace", max(timeout, _SECONDS.silence.grace))
        yield _following(cause, "claim.lease", max(timeout, CLAIM_MIN))
        yield _following(cause, "claim.grace", max(timeout, CLAIM_MIN))
    if cause := given.get(_INTERVAL) or given.get(_TIMEOUT):
        yield _following(cause, "silence.degrade_on_suspicion", value=True)


def _checkpoint(given: Mapping[Path, Setting]) -> Iterator[Setting]:
    if cause := given.get(_STALE):
        degraded = min(10 * MINUTE, cause.value / 3)
        yield _following(cause, "stall.checkpoint_degraded_after", degraded)


def _breakers(given: Mapping[Path, Setting]) -> Iterator[Setting]:
    """What an override leaves out comes from the tree's own default, as users expect."""
    names = {path[1] for path in given if path[0] == "breakers"}
    defaults = [setting for path, setting in given.items() if path[0] == "breaker"]
    for name in sorted(names):
        for cause in defaults:
            source = Source(cause.source.key, cause.source.where)
            yield Setting(("breakers", name, cause.path[1]), cause.value, source)


def _given(given: Mapping[Path, Setting], path: Path, default: float) -> float:
    return float(given[path].value) if path in given else default


def _following(cause: Setting, key: str, value: object) -> Setting:
    source = Source(cause.source.key, cause.source.where)
    return Setting(tuple(key.split(".")), value, source)
