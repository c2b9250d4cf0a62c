"""The real Codex without hooks, watched by its own telemetry, as docs/howto/watch-by-opentelemetry.md has it. `make integrations` runs
this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.integrations.coders import CODEX
from tests.integrations.scripted_model import Say, Step, sh
from tests.integrations.watched_coder import Watched, beside_a_hub, needs_coders
from tests.journeys.outside import Json

pytestmark = needs_coders

CONFIG = {"profile": "swift", "otlp": {"reorder_for": "1s"}}
TELEMETRY = """
[otel]
exporter = {{ otlp-http = {{ endpoint = "{url}/v1/logs", protocol = "binary", headers = {{ Authorization = "Bearer {token}" }} }} }}
"""


class TracedCodex(Watched):
    def session(self) -> Json:
        """The only conversation, or nothing yet."""
        found = self.hub.get("/api/v1/agents")["agents"]
        sessions = [one for one in found if one["agent_id"].startswith("codex_exec/")]
        assert len(sessions) <= 1, sessions
        return sessions[0] if sessions else None

    def calls(self) -> int:
        return self.session()["metrics"]["tool_call_count"] if self.session() else 0


@contextmanager
def traced_codex(folder: Path, scripts: Mapping[str, Sequence[Step]]) -> Iterator[TracedCodex]:
    with beside_a_hub(TracedCodex, CODEX, folder, scripts, CONFIG) as codex:
        with (codex.home / ".codex/config.toml").open("a") as config:
            config.write(TELEMETRY.format(url=codex.hub.url, token=codex.hub.token))
        yield codex


def test_a_healthy_run_is_told_by_its_telemetry_alone(tmp_path: Path) -> None:
    steps: list[Step] = [*(sh(f"echo line {n}") for n in range(20)), Say("done")]
    with traced_codex(tmp_path, {"work": steps}) as codex:
        codex.run("work")
        codex.hub.until(lambda: codex.calls() == 20, "all calls are heard")
        codex.hub.until(lambda: codex.session()["metrics"]["token_count"] == 21 * 1050, "and its last answer")
        assert (codex.session()["state"], codex.findings()) == ("healthy", [])


def test_the_same_failing_call_eight_times_is_a_loop(tmp_path: Path) -> None:
    """What the command printed and its exit status are told, so it is certain."""
    with traced_codex(tmp_path, {"loop": [*[sh("cat /no/such/file")] * 8, Say("done")]}) as codex:
        codex.run("loop")
        codex.hub.until(lambda: codex.calls() == 8, "all calls are heard")
        found = {one["kind"]: one for one in codex.session()["findings"]}
        assert "8 times in a row with the same arguments and the same error" in found["looping"]["text"]
        assert found["looping"]["conclusive"]
