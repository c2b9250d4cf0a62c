"""What only the real Claude Code shows: a model that does not answer. `make integrations` runs this; the rest is in
`test_with_coders.py`."""

from __future__ import annotations

from pathlib import Path

from tests.integrations.coders import CLAUDE
from tests.integrations.scripted_model import Say, sh
from tests.integrations.watched_coder import IMPATIENT, needs_coders, watched

pytestmark = needs_coders


def test_a_model_that_does_not_answer_is_a_finding_and_no_silence(tmp_path: Path) -> None:
    """Hooks are silent while the model thinks. The process lives, so the agent is not taken for dead."""
    with watched(CLAUDE, tmp_path, {"think": [sh("true"), Say("done", after=60)]}, IMPATIENT) as one:
        one.start("think")
        one.until_found("long_call", "A model call")
        assert one.hub.disconnected() == set()
