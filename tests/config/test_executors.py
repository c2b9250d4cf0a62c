"""What is written about executors: read as it is meant, and what is wrong with it is said with its key."""

import json
from pathlib import Path
from typing import Any

import pytest

from lifesigns.config.executors import CheckpointSettings, CommandSettings, TmuxSettings, WebhookSettings
from lifesigns.config.load import defaults
from lifesigns.config.values import Config
from tests.config.conftest import Complained, Said

URL = "https://example.org/hook"


@pytest.fixture
def read(said: Said) -> Said:
    """The configuration of a file with these sections."""

    def load_sections(**sections: Any) -> Config:
        return said(json.dumps(sections))

    return load_sections


def test_nothing_said_is_nothing_assigned(read: Said) -> None:
    nothing = defaults()
    assert [*nothing.executors.values(), nothing.checkpoints] == [(), (), (), (), (), CheckpointSettings()]
    made = read(respawn=None, checkpoints=None)
    assert (made.executors, made.checkpoints) == (nothing.executors, nothing.checkpoints)


def test_respawns_by_webhook_and_command_per_agent_and_role(read: Said) -> None:
    made = read(
        respawn=[
            {"agents": "coder-*, tester-1", "webhook": URL, "secret": "env:KEY", "headers": {"X-Team": "a"}},
            {"roles": ["background"], "command": "start {agent_id} {{}}", "shell": True, "cwd": "/srv"},
        ]
    )
    first, second = made.executors["respawn"]
    assert first.agents == ("coder-*", "tester-1")
    assert first.by == WebhookSettings(URL, "env:KEY", {"X-Team": "a"})
    assert second.roles == ("background",)
    assert second.by == CommandSettings("start {agent_id} {{}}", True, Path("/srv"))


def test_one_entry_needs_no_list(read: Said) -> None:
    made = read(respawn={"command": "start"}, escalation={"webhook": URL, "name": "conductor"})
    assert [one.by for one in made.executors["respawn"]] == [CommandSettings("start")]
    assert [(one.by, one.name) for one in made.executors["escalation"]] == [
        (WebhookSettings(URL), "conductor")
    ]


def test_nudges_by_tmux_and_webhook(read: Said) -> None:
    made = read(
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
    assert made.executors["nudges"][0].by == TmuxSettings("agents:={agent_id}", ("claude", "codex"), 5.0, "x")
    assert made.executors["nudges"][1].by == WebhookSettings(URL)


def test_checkpoints_have_their_bounds_and_somebody_to_ask(read: Said) -> None:
    made = read(checkpoints={"verify": URL, "secret": "s", "content_mb": 8, "total_mb": 0.5e3})
    assert made.checkpoints == CheckpointSettings(URL, "s", content_mb=8, total_mb=500)


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
def test_what_is_wrong_is_said_with_its_key_and_line(
    complained: Complained, sections: dict[str, Any], complaint: str
) -> None:
    wrong = complained(json.dumps(sections))
    assert any(complaint in str(one) for one in wrong), wrong
    assert all(one.where.endswith("lifesigns.yaml:1") for one in wrong)


def test_no_complaint_and_no_text_of_settings_repeats_a_secret(read: Said, complained: Complained) -> None:
    right = {"webhook": f"{URL}/tiger", "secret": "tiger", "headers": {"A": "tiger"}}
    assert "tiger" not in repr(read(respawn=right, checkpoints={"verify": f"{URL}/tiger", "secret": "tiger"}))
    assert "tiger" not in str(complained(json.dumps({"respawn": [{"webhook": "tiger"}, right]})))
