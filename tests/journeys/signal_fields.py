"""Every type of signal with its fields, two values for each, and what has to be there before another value can be another story.

In what is sent, `{}` is the agent, `{value}` the value that is tried, and `{order}` the id of an order that the agent has got.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.journeys.outside import Hub, until

Signal = dict[str, Any]
Step = Signal | Callable[[Hub, str], str]
"""A signal, or what somebody else does: it returns the id of the order that follows."""

LONG_AGO: Final = "2020-01-01T00:00:00Z"
LONGER_AGO: Final = "2010-01-01T00:00:00Z"


@dataclass(frozen=True)
class Row:
    """How a type of signal is tried."""

    fields: dict[str, tuple[Any, Any]]
    base: Signal = field(default_factory=dict)
    before: Sequence[Step] = ()
    after: Sequence[Step] = ()
    beats: bool = True
    """Whether the agent beats before it."""


def nudged(hub: Hub, agent: str) -> str:
    return str(hub.post(f"/api/v1/agents/{agent}/nudge", {"message": "how is it going?"})["id"])


def told_to_stop(hub: Hub, agent: str) -> str:
    return str(hub.post(f"/api/v1/agents/{agent}/terminate", {"reason": "enough"})["id"])


def told_to_turn(hub: Hub, agent: str) -> str:
    (act,) = hub.post(f"/api/v1/breakers/search/open?agent={agent}", {"reason": "it fails"})["interventions"]
    return str(act["id"])


def to_be_started(hub: Hub, agent: str) -> str:
    def orders() -> list[Any]:
        waiting = hub.get(f"/api/v1/agents/{agent}/orders")["orders"]
        return [order for order in waiting if order["type"] == "respawn"]

    until(orders, f"a new life of {agent} is ordered")
    return str(orders()[0]["order_id"])


def rests(hub: Hub, agent: str) -> str:
    """Its program uses no CPU. No order follows."""
    hub.post("/api/v1/beats", {"agent_id": agent, "incarnation": "1", "metrics": {"cpu_percent": 0}})
    return ""


def claimed(hub: Hub, agent: str) -> str:
    """Not an order, but its number is needed as one is."""
    return str(hub.get(f"/api/v1/tasks/{agent}-t")["claim"]["token"])


def tool(kind: str, call_id: str = "c1", **more: Any) -> Signal:
    return {"type": kind, "call_id": call_id, "tool": "bash", **more}


def model(call_id: str, **more: Any) -> Signal:
    return {"type": "model_finished", "call_id": call_id, "tokens_in": 5, **more}


LIFE: Final = {"incarnation": ("1", "2")}
TASK: Final[Signal] = {"type": "task_assigned", "task_id": "{}-t", "expected_for": 600}
CLAIM: Final[Signal] = {"type": "claim", "task_id": "{}-t"}
BREAKER: Final[Signal] = {"type": "breaker", "name": "search", "state": "closed"}
ORDER: Final = {"order_id": ("{order}", "another")}
CRASH: Final[Signal] = {"type": "exited", "status": 1}
THREE_CALLS: Final = [tool("tool_finished", f"c{n}", args="ls", result="r") for n in range(3)]
TALK: Final = [tool("tool_finished", args="ls", result="r"), *(model(f"m{n}") for n in range(10))]

ROWS: Final[dict[str, list[Row]]] = {
    "registered": [
        Row(
            LIFE
            | {
                "role": ("background", "plain"),
                "host": ("here", "there"),
                "task_id": ("{}-t1", "{}-t2"),
            }
        ),
        Row(
            {"policy": ({"looping": {"same_notice": 2}}, {"looping": {"same_notice": 9}})}, after=THREE_CALLS
        ),
        Row({"grace": (0.1, 600)}, beats=False),
        Row({"beats": (True, False)}, {"grace": 0.1}, beats=False),
    ],
    "activity": [
        Row(LIFE),
        Row(
            {"kind": ("output", "telemetry")},
            before=[
                {"type": "registered", "policy": {"stall": {"output_after": 0.5}}},
                {"type": "doing", "doing": "working"},
            ],
            after=[rests],
        ),
    ],
    "tool_started": [
        Row(LIFE | {"tool": ("bash", "ls"), "bound": (60, 600)}, tool("tool_started")),
        Row({"call_id": ("c1", "c2")}, tool("tool_started"), after=[tool("tool_finished")]),
        Row(
            {"args": ("ls", "cd"), "args_digest": ("a", "b")},
            tool("tool_started"),
            after=[tool("tool_finished", result="r")],
        ),
    ],
    "tool_finished": [
        Row(
            LIFE | {"tool": ("bash", "ls"), "args": ("ls", "cd"), "result": ("r", "s"), "ok": (True, False)},
            tool("tool_finished", args="ls", result="r"),
        ),
        Row(
            {"args_digest": ("a", "b"), "result_digest": ("a", "b"), "duration_s": (1, 2)},
            tool("tool_finished", args_digest="x", result_digest="y"),
        ),
        Row(
            {"call_id": ("c1", "c2")},
            tool("tool_finished", args="ls"),
            before=[tool("tool_started"), tool("tool_finished", args="ls")],
        ),
        Row(
            {"error": ("no such file", "denied"), "error_kind": ("timeout", "not_found")},
            tool("tool_finished", args="ls", ok=False, error="no"),
        ),
        Row({"retry": (True, False)}, tool("tool_finished", args="ls", ok=False, error="no")),
        Row({"ended_at": (LONG_AGO, LONGER_AGO)}, tool("tool_finished", args="ls", result="r")),
        Row(
            {"timestamp": (LONG_AGO, "2030-01-01T00:00:00Z")},
            tool("tool_finished", args="ls", result="r", ended_at=LONG_AGO),
        ),
    ],
    "model_started": [
        Row(LIFE | {"bound": (60, 600)}, {"call_id": "m"}),
        Row({"call_id": ("m", "n")}, after=[model("m")]),
    ],
    "model_finished": [
        Row(
            LIFE | {"tokens_in": (1, 2), "tokens_out": (1, 2), "cost_usd": (1.0, 2.0), "cost": (1.0, 2.0)},
            {"call_id": "m"},
        ),
        Row({"ok": (True, False)}, {"call_id": "m"}),
        Row(
            {"call_id": ("m", "n")},
            {"tokens_in": 5},
            before=[{"type": "model_started", "call_id": "m"}, model("m")],
        ),
        Row(
            {"error_kind": ("rate_limit", "broken")},
            {"call_id": "m", "ok": False},
            before=[model(f"m{n}", ok=False, error_kind="{value}") for n in range(9)],
        ),
        Row(
            {"duration_s": (0.000001, 60)},
            {"call_id": "m"},
            before=[{**one, "duration_s": "{value}"} for one in TALK],
        ),
        Row(
            {"context_tokens": (1, 99)},
            {"call_id": "m", "context_window": 100},
            before=[model(f"m{n}", context_tokens="{value}", context_window=100) for n in range(4)],
        ),
        Row(
            {"context_window": (100, 1000)},
            {"call_id": "m", "context_tokens": 99},
            before=[model(f"m{n}", context_tokens=99, context_window="{value}") for n in range(4)],
        ),
        Row(
            {"ended_at": (LONG_AGO, LONGER_AGO)},
            {"call_id": "m"},
            before=[*TALK[:1], *({**one, "ended_at": "{value}"} for one in TALK[1:])],
        ),
        Row(
            {"timestamp": (LONG_AGO, "2030-01-01T00:00:00Z")},
            {"call_id": "m", "ended_at": LONG_AGO},
            before=[
                *TALK[:1],
                *({**one, "ended_at": LONG_AGO, "timestamp": "{value}"} for one in TALK[1:]),
            ],
        ),
    ],
    "checkpoint": [
        Row(
            LIFE
            | {
                "checkpoint_id": ("a", "b"),
                "task_id": ("{}-t", "{}-u"),
                "parent_id": ("a", "b"),
                "digest": ("a", "b"),
                "size": (1, 2),
            },
            {"checkpoint_id": "c"},
            [TASK],
        )
    ],
    "progress": [
        Row(LIFE | {"task_id": ("{}-t", "{}-u"), "percent": (1, 2), "note": ("a", "b")}, before=[TASK])
    ],
    "error": [
        Row(
            LIFE | {"message": ("a", "b"), "recoverable": (True, False)},
            {"message": "no", "recoverable": False},
        )
    ],
    "doing": [
        Row(LIFE | {"doing": ("idle", "waiting_for_human")}, {"doing": "idle"}),
        Row({"note": ("a", "b")}, {"doing": "waiting_for_human"}),
        Row({"until": (LONG_AGO, "2050-01-01T00:00:00Z")}, {"doing": "rate_limited"}),
        Row(
            {"timestamp": (LONG_AGO, "2050-01-01T00:00:00Z")},
            {"doing": "rate_limited", "until": "2030-01-01T00:00:00Z"},
        ),
    ],
    "pong": [
        Row(LIFE | {"status": ("ok", "degraded")}),
        Row({"task": ("{}-t", "{}-u"), "task_id": ("{}-t", "{}-u")}, beats=False),
    ],
    "nudge_seen": [Row(LIFE | {"nudge_id": ("{order}", "another")}, {"nudge_id": "{order}"}, [nudged])],
    "nudge_answered": [
        Row(
            LIFE
            | {"nudge_id": ("{order}", "another"), "answer": ("progress", "blocked"), "note": ("a", "b")},
            {"nudge_id": "{order}", "answer": "need_time"},
            [nudged],
        )
    ],
    "task_assigned": [
        Row(
            LIFE
            | {"task_id": ("{}-t", "{}-u"), "expected_for": (1, None), "description": ("a", "b")}
            | {"percent": (1, 2)},
            {"task_id": "{}-t", "expected_for": 600},
        )
    ],
    "task_done": [Row(LIFE | {"task_id": ("{}-t", "{}-u")}, {"task_id": "{}-t"}, [TASK])],
    "task_failed": [
        Row(LIFE | {"task_id": ("{}-t", "{}-u"), "reason": ("a", "b")}, {"task_id": "{}-t"}, [TASK])
    ],
    "claim": [Row(LIFE | {"task_id": ("{}-t", "{}-u")}, CLAIM)],
    "release": [
        Row(
            LIFE | {"task_id": ("{}-t", "{}-u"), "token": ("{order}", 0)},
            {"task_id": "{}-t", "token": "{order}"},
            [CLAIM, claimed],
        )
    ],
    "message_sent": [
        Row(
            LIFE | {"message_id": ("{}-m", "{}-n"), "to": ("{}", "other"), "priority": ("normal", "high")},
            {"message_id": "{}-m", "to": "other"},
        )
    ],
    "message_acked": [
        Row(
            LIFE | {"message_id": ("{}-m", "another")},
            {"message_id": "{}-m"},
            [{"type": "message_sent", "agent_id": "other", "to": "{}", "message_id": "{}-m"}],
        )
    ],
    "message_withdrawn": [
        Row(
            LIFE | {"message_id": ("{}-m", "another")},
            {"message_id": "{}-m"},
            [{"type": "message_sent", "to": "other", "message_id": "{}-m"}],
        )
    ],
    "breaker": [
        Row(
            LIFE | {"name": ("a", "b"), "state": ("open", "half_open"), "failures": (1, 2)},
            {"name": "a", "state": "open"},
        ),
        Row({"until": (LONG_AGO, LONGER_AGO)}, {"name": "a", "state": "open"}),
        Row(
            {"timestamp": (LONG_AGO, "2030-01-01T00:00:00Z")},
            {"name": "a", "state": "open", "until": LONG_AGO},
        ),
    ],
    "left": [Row(LIFE | {"reason": ("done", "bored")})],
    "exited": [Row(LIFE | {"status": (0, 1), "signal": (0, 9), "detail": ("a", "b")})],
    "nudge_delivered": [Row(LIFE | ORDER, {"order_id": "{order}"}, [nudged])],
    "nudge_failed": [Row(LIFE | ORDER | {"reason": ("a", "b")}, {"order_id": "{order}"}, [nudged])],
    "stopped": [
        Row(
            LIFE | ORDER | {"checkpoint_id": ("a", "b"), "forced": (True, False)},
            {"order_id": "{order}"},
            [TASK, told_to_stop],
        )
    ],
    "stop_failed": [Row(LIFE | ORDER | {"reason": ("a", "b")}, {"order_id": "{order}"}, [told_to_stop])],
    "respawn_started": [Row(LIFE | ORDER, {"order_id": "{order}"}, [CRASH, to_be_started])],
    "respawn_failed": [
        Row(LIFE | ORDER | {"reason": ("a", "b")}, {"order_id": "{order}"}, [CRASH, to_be_started])
    ],
    "breaker_turned": [Row(LIFE | ORDER, {"order_id": "{order}"}, [BREAKER, told_to_turn])],
    "breaker_not_turned": [
        Row(LIFE | ORDER | {"reason": ("a", "b")}, {"order_id": "{order}"}, [BREAKER, told_to_turn])
    ],
}

ELSEWHERE: Final = {
    ("activity", "note"): "test_supervised.py::test_a_program_that_repeats_its_error_is_found_with_the_line",
    ("registered", "follows_interval"): "test_told_intervals.py::test_a_sender_follows_and_is_never_lost",
    (
        "exited",
        "orphaned",
    ): "test_respawns.py::test_who_loses_its_supervisor_has_crashed_and_gets_a_successor",
    (
        "pong",
        "seq",
    ): "test_every_field_of_a_signal.py::test_a_pong_settles_the_ping_that_it_answers_and_those_before",
}
"""What a table cannot show, and the journey that does."""
