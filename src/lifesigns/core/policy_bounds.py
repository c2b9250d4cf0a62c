"""Bounds: what an agent's own word may change of the policy that its administrator made for it.

What the administrator set is a ceiling: an agent can make it tighter for itself, never looser. Which way is tighter, the
table says for every key. A key without a direction is the administrator's if they set it, and the agent's if they did not.
What nobody set is the agent's: how long its work takes it knows best. But the ladder is never switched off by whom it is for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any, Final

from msgspec import Struct

from lifesigns.core.policy_changes import merged

Path = tuple[str, ...]

SHOWN_MAX: Final = 80
"""Signs of a refused word that are told."""


class TighterWay(Enum):
    """Which way a key is tighter."""

    LOWER = "lower"
    HIGHER = "higher"
    ON = "on"
    OFF = "off"
    FEWER = "fewer"
    """Of a list of words: no others than these."""
    NEITHER = "as it is"


def _keys(tighter: TighterWay, section: str, names: str) -> dict[Path, TighterWay]:
    return {(section, name): tighter for name in names.split()}


_LOWER, _HIGHER, _ON, _NEITHER = TighterWay.LOWER, TighterWay.HIGHER, TighterWay.ON, TighterWay.NEITHER

TIGHTER: Final[Mapping[Path, TighterWay]] = {
    **_keys(_LOWER, "silence", "interval timeout missed_max busy_factor busy_max grace forget_after"),
    **_keys(_HIGHER, "silence", "false_suspicion_rate"),
    **_keys(_ON, "silence", "degrade_on_suspicion"),
    **_keys(_LOWER, "silence", "unwell_factor calm_factor"),
    **_keys(_HIGHER, "silence", "calm_after"),
    **_keys(_NEITHER, "silence", "ping_wait pings adaptive adaptive_from tell_interval"),
    **_keys(_LOWER, "freeze", "after conclusive_after"),
    **_keys(_LOWER, "stall", "checkpoint_degraded_after checkpoint_stuck_after tool_call_after tokens_after"),
    **_keys(_LOWER, "stall", "call_max output_after spin_after repeat_after spin_cpu"),
    **_keys(_HIGHER, "stall", "idle_cpu"),
    **_keys(_ON, "stall", "checkpoint_expected"),
    **_keys(
        _LOWER, "looping", "same_notice same_stuck same_conclusive error_notice error_stuck error_conclusive"
    ),
    **_keys(_LOWER, "looping", "cycle_notice cycle_conclusive changing_notice changing_human unknown_notice"),
    **_keys(
        _LOWER,
        "looping",
        "recent_notice recent_stuck failing_notice talk_notice polling_for wait_model_share",
    ),
    **_keys(
        _HIGHER, "looping", "cycle_length_max recent_window failing_window wait_period_min polling_gap_min"
    ),
    **_keys(TighterWay.FEWER, "looping", "polling_tools"),
    **_keys(
        _LOWER,
        "erring",
        "rate_max rate_min_calls consecutive_max infrastructure_for breaker_for context_full context_calls",
    ),
    **_keys(_NEITHER, "erring", "rate_window"),
    **_keys(
        _LOWER, "spending", "tokens_max cost_max task_tokens_max task_cost_max hour_tokens_max hour_cost_max"
    ),
    **_keys(_LOWER, "spending", "soft spike_slack spike_limit spike_min_samples"),
    **_keys(_LOWER, "overload", "cpu_degraded cpu_unhealthy memory_degraded_mb memory_unhealthy_mb beats"),
    **_keys(_ON, "forecast", "enabled"),
    **_keys(_HIGHER, "forecast", "horizon"),
    **_keys(_LOWER, "forecast", "window memory_from"),
    **_keys(_ON, "ladder", "enabled nudge_enabled"),
    **_keys(_LOWER, "ladder", "nudge_max nudge_every hesitate_for escalation_timeout save_for confirm_for"),
    **_keys(_LOWER, "ladder", "cleanup_for more_time_for"),
    **_keys(_NEITHER, "ladder", "nudge_template"),
    **_keys(TighterWay.OFF, "respawn", "enabled"),
    **_keys(
        _LOWER, "respawn", "per_task_max per_hour_max start_timeout verify_timeout crash_loop_max chain_max"
    ),
    **_keys(_HIGHER, "respawn", "probation crash_loop_window"),
    **_keys(_NEITHER, "respawn", "backoff jitter hesitate_for"),
    **_keys(_LOWER, "breaker", "failure_threshold failure_rate slow_rate slow_call_after min_calls"),
    **_keys(
        _NEITHER, "breaker", "recovery_timeout half_open_requests half_open_wait_max window_calls window_for"
    ),
    **_keys(_NEITHER, "breaker", "backoff_factor recovery_timeout_max"),
    **_keys(_LOWER, "claim", "lease grace check_wait"),
    **_keys(_LOWER, "message", "urgent high normal low open_max"),
    **_keys(_LOWER, "task", "stalled_after overdue_factor inquiry_wait"),
}
"""Of every key of a policy. Those of a breaker with a name are those of `breaker`."""

ALWAYS: Final = frozenset({("ladder", "enabled")})
"""What an agent can only tighten even if nobody set it."""


@dataclass(slots=True)
class OwnPolicy:
    """What was said of one agent's policy when it was announced."""

    words: Mapping[str, Any]
    """By whoever may only tighten."""
    granted: Mapping[str, Any]
    """By those who may everything: it is part of what the words can only tighten."""
    source: str = ""
    """Whose words they are."""

    def all_words(self) -> Mapping[str, Any]:
        """Everything that was said, whether it counts or not."""
        return merged(self.granted, self.words)


def tightened(
    ceiling: Any, words: Mapping[str, Any], fixed: Collection[Path]
) -> tuple[dict[str, Any], list[str]]:
    """Those of the words that count under a policy of which `fixed` is the administrator's; and of each other one why not."""
    counted: dict[str, Any] = {}
    refused: list[str] = []
    for path, value in flat(words).items():
        holds, most = True, None
        if path in fixed or path in ALWAYS:
            most = _value(ceiling, path)
            holds = _is_no_looser(
                TIGHTER.get((path[0].replace("breakers", "breaker"), path[-1])), value, most
            )
        if holds:
            here = counted
            for name in path[:-1]:
                here = here.setdefault(name, {})
            here[path[-1]] = value
        else:
            refused.append(
                f"{'.'.join(path)} stays {most!r}, as the administrator set it: {_shown(value)} is looser"
            )
    return counted, refused


def flat(words: Mapping[str, Any], path: Path = ()) -> dict[Path, Any]:
    """Nested names as paths."""
    made: dict[Path, Any] = {}
    for name, part in words.items():
        inner = isinstance(part, Mapping) and part
        made.update(flat(part, (*path, name)) if inner else {(*path, name): part})
    return made


def differing(policy: Any, usual: Any, path: Path = ()) -> set[Path]:
    """The keys in which a policy is another than the usual one."""
    found: set[Path] = set()
    for name, value, known in _pairs(policy, usual):
        if value == known:
            continue
        if isinstance(value, Struct | Mapping):
            found |= differing(value, known, (*path, name))
        else:
            found.add((*path, name))
    return found


def _pairs(policy: Any, usual: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(policy, Mapping):
        return [(name, part, usual.get(name)) for name, part in policy.items()]
    return [(name, getattr(policy, name), getattr(usual, name, None)) for name in policy.__struct_fields__]


def _value(policy: Any, path: Path) -> Any:
    for name in path:
        policy = policy.get(name) if isinstance(policy, Mapping) else getattr(policy, name, None)
    return policy


def _is_no_looser(tighter: TighterWay | None, value: Any, most: Any) -> bool:
    """Whether a value may stand where the administrator has said `most`. What is of another kind is refused elsewhere."""
    if value == most:
        return True
    match tighter:
        case TighterWay.LOWER:
            return _amount(value) <= _amount(most)
        case TighterWay.HIGHER:
            return _amount(value) >= _amount(most)
        case TighterWay.ON:
            return value is True
        case TighterWay.OFF:
            return value is False
        case TighterWay.FEWER:
            return isinstance(value, list | tuple) and all(one in most for one in value)
        case _:
            return False


def _shown(value: Any) -> str:
    return repr(value)[:SHOWN_MAX]


def _amount(value: Any) -> float:
    """A cap that is not there is one that nothing reaches."""
    return value if isinstance(value, int | float) else inf
