"""What is written about executors: read as it is meant, and what is wrong with it is said with its key."""

from pathlib import Path
from typing import Any

import pytest

from lifesigns.config.errors import ErrorCollector
from lifesigns.config.executors import (
    SECTIONS,
    CommandSettings,
    ExecutorSettings,
    TmuxSettings,
    WebhookSettings,
    executors,
)

URL = "https://example.org/hook"


def read(**sections: Any) -> tuple[ExecutorSettings, list[str]]:
    complaints = ErrorCollector()
    made = executors({name: SECTIONS[name](value) for name, value in sections.items()}, complaints)
    return made, [str(error) for error in complaints.errors]


def test_nothing_said_is_nothing_assigned() -> None:
    assert read() == (ExecutorSettings(), [])
    assert read(respawn=None, checkpoints=None) == (ExecutorSettings(), [])


def test_respawns_by_webhook_and_command_per_agent_and_role() -> None:
    made, wrong = read(
        respawn=[
            {"agents": "coder-*, tester-1", "webhook": URL, "secret": "env:KEY", "headers": {"X-Team": "a"}},
            {"roles": ["background"], "command": "start {agent_id} {{}}", "shell": True, "cwd": "/srv"},
        ]
    )
    assert wrong == []
    first, second = made.respawn
    assert first.agents == ("coder-*", "tester-1")
    assert first.by == WebhookSettings(URL, "env:KEY", {"X-Team": "a"})
    assert second.roles == ("background",)
    assert second.by == CommandSettings("start {agent_id} {{}}", True, Path("/srv"))


def test_one_entry_needs_no_list() -> None:
    made, wrong = read(respawn={"command": "start"}, escalation={"webhook": URL, "name": "conductor"})
    assert wrong == []
    assert [one.by for one in made.respawn] == [CommandSettings("start")]
    assert [(one.by, one.name) for one in made.escalation] == [(WebhookSettings(URL), "conductor")]


def test_nudges_by_tmux_and_webhook() -> None:
    made, wrong = read(
        nudges=[
            {
                "tmux": "agents:={agent_id}",
                "idle_commands": "claude, codex",
                "quiet_for": "5 s",
                "socket": "x",
            },
            {"webhook": URL},
        ]
    )
    assert wrong == []
    assert made.nudges[0].by == TmuxSettings("agents:={agent_id}", ("claude", "codex"), 5.0, "x")
    assert made.nudges[1].by == WebhookSettings(URL)


def test_checkpoints_have_their_bounds_and_somebody_to_ask() -> None:
    made, wrong = read(checkpoints={"verify": URL, "secret": "s", "content_mb": 8, "total_mb": 0.5e3})
    assert wrong == []
    assert made.checkpoints.verify == WebhookSettings(URL, "s")
    assert (made.checkpoints.content_mb, made.checkpoints.task_mb, made.checkpoints.total_mb) == (
        8,
        None,
        500,
    )


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ({"respawn": {}}, "respawn: needs one of webhook, command"),
        (
            {"respawn": {"webhook": URL, "command": "x"}},
            "respawn: needs one of webhook, command, not webhook and command",
        ),
        ({"respawn": {"command": "start {agent}"}}, "respawn.command: has {agent}, but knows only"),
        ({"respawn": {"command": "start '"}}, "respawn.command: cannot be taken apart: No closing quotation"),
        (
            {"respawn": {"command": "x", "secret": "y"}},
            "respawn.secret: is for webhook, but this is a command",
        ),
        (
            {"respawn": {"enabled": False}},
            "respawn.enabled: is unknown here; did you mean policy.respawn.enabled?",
        ),
        ({"respawn": {"webhok": URL}}, "respawn.webhok: is unknown; did you mean webhook?"),
        ({"respawn": [{"webhook": URL}, {"webhook": 7}]}, "respawn[2].webhook: needs a text"),
        ({"nudges": {"tmux": "={agent_id}:"}}, "nudges.idle_commands: is missing"),
        (
            {"nudges": {"tmux": "={agent_id}:", "idle_commands": "claude, bash"}},
            "a shell would execute the nudge",
        ),
        ({"nudges": {"tmux": "{agent_id}", "idle_commands": "claude"}}, "nudges.tmux: needs ={agent_id}"),
        ({"nudges": {"tmux": "x", "idle_commands": "claude", "quiet_for": "1 h"}}, "at most 30 s"),
        ({"nudges": {"template": "x"}}, "nudges.template: is unknown"),
        ({"terminate": {"command": "kill"}}, "terminate.command: is unknown"),
        ({"escalation": {"name": "x"}}, "escalation: needs one of webhook"),
        ({"checkpoints": {"secret": "x"}}, "checkpoints.secret: is for verify, which is not there"),
        ({"checkpoints": {"content_mb": 9, "task_mb": 8}}, "needs content_mb <= task_mb <= total_mb"),
        (
            {"checkpoints": {"total_mb": 0}},
            "checkpoints.total_mb: needs a number of megabytes greater than 0",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_key(sections: dict[str, Any], complaint: str) -> None:
    _, wrong = read(**sections)
    assert any(complaint in one for one in wrong), wrong


@pytest.mark.parametrize("value", ["https://x", 7, ["x"], [[]]])
def test_a_section_is_entries(value: object) -> None:
    with pytest.raises(ValueError, match="named values"):
        SECTIONS["respawn"](value)


def test_no_complaint_and_no_text_of_settings_repeats_a_secret() -> None:
    made, wrong = read(
        respawn=[
            {"webhook": "tiger"},
            {"webhook": f"{URL}/tiger", "secret": "tiger", "headers": {"A": "tiger"}},
        ]
    )
    assert wrong
    assert "tiger" not in str(wrong)
    assert "tiger" not in repr(made)
