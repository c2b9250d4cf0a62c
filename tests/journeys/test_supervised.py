"""`lifesigns run`: what is seen from outside and what a sender inside reports are one agent's evidence."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, environment, serving, until

QUIET_WORKER = """
import sys, time
import lifesigns

with lifesigns.Sender(*sys.argv[1:], interval=0.5) as life:
    for number in range(24):
        with life.tool("edit", {"file": f"part_{number}.py"}) as call:
            call.result(f"{number} lines")
        life.tokens(100, 20)
        life.checkpoint(f"cp-{number}")
        time.sleep(0.4)
"""
"""Reports all the time, and prints nothing: three times as long as it may be silent."""


def found(hub: Hub, kind: str) -> list[str]:
    """The agents about whom this was found."""
    opened = hub.events("FINDING_OPENED")
    return [event["agent_id"] for event in opened if event["data"]["finding"]["kind"] == kind]


@pytest.mark.parametrize("own_id", ["", "somebody"], ids=["one id", "an id of its own"])
def test_who_reports_need_not_print(own_id: str, tmp_path: Path) -> None:
    """A tool call, tokens and a checkpoint are activity, also for whoever watches the process only."""
    with serving(tmp_path) as hub:
        (tmp_path / "agent.py").write_text(QUIET_WORKER)
        command = (sys.executable, str(tmp_path / "agent.py"), *([own_id] if own_id else []))
        run = hub.started("lifesigns", "run", "--id", "quiet", "--idle-after", "3", "--", *command)
        hub.until(lambda: run.poll() is not None, "the agent has done its work")
        assert run.returncode == 0
        assert found(hub, "no_output") == []


def test_who_reports_need_not_print_when_lifesigns_run_is_alone(tmp_path: Path) -> None:
    """Longer than its sender takes at the end to give up on a hub that is not there."""
    (tmp_path / "agent.py").write_text(QUIET_WORKER)
    command = (
        sys.executable,
        "-m",
        "lifesigns",
        "run",
        "--idle-after",
        "6",
        "--",
        sys.executable,
        "agent.py",
        "x",
    )
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(LIFESIGNS_STATE=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert "is stuck" not in done.stderr


def test_who_neither_reports_nor_prints_is_stuck(tmp_path: Path) -> None:
    """The sender beats, and that is all there is of it."""
    with serving(tmp_path) as hub:
        (tmp_path / "agent.py").write_text(
            "import lifesigns, threading\nwith lifesigns.Sender(interval=0.5): threading.Event().wait()"
        )
        command = (sys.executable, str(tmp_path / "agent.py"))
        hub.started("lifesigns", "run", "--id", "idler", "--idle-after", "3", "--", *command)
        hub.until(lambda: found(hub, "no_output") == ["idler"], "idler is found to put nothing out")


RETRIES = 'while :; do date; echo "$(date +%s) Error: {no} route to host"; sleep 0.1; done'


def test_a_program_that_repeats_its_error_is_found_with_the_line(tmp_path: Path) -> None:
    """What it writes is evidence: times do not make an old line new. A bar that advances beside it is well."""
    bar = 'n=0; while :; do n=$((n + 1)); printf "\\r%s files" $n; sleep 0.1; done'
    with serving(tmp_path) as hub:
        for name, script in ("bar", bar), ("retrier", RETRIES):
            hub.started(
                "lifesigns", "run", "--id", name, "--idle-after", "3", "--pty", "--", "sh", "-c", script
            )
        hub.until(lambda: found(hub, "repeated_output"), "somebody is found to repeat itself")
        assert found(hub, "repeated_output") == ["retrier"]
        (event,) = hub.events("FINDING_OPENED", agent="retrier")
        assert event["data"]["finding"]["severity"] == "stuck"
        assert event["data"]["finding"]["text"].endswith("Error: {no} route to host")
        assert not event["data"]["finding"]["conclusive"]


LISTENER = """
import lifesigns

with lifesigns.Sender(interval=0.5, task="t") as life:
    while (nudge := life.next_nudge(timeout=0.1)) is None:
        with life.tool("search", {"query": "x"}) as call:
            call.result("no matches")
    print("heard", flush=True)
    nudge.answer("progress", "I try something else")
    life.next_nudge()
"""


def test_a_sender_that_listens_is_nudged_without_any_option(tmp_path: Path) -> None:
    """Who can hear, is nudged: `--nudge` is for programs that cannot."""
    swift = {"policy": {"ladder": {"hesitate_for": "0.1s"}}}
    with serving(tmp_path, swift) as hub:
        (tmp_path / "agent.py").write_text(LISTENER)
        command = (sys.executable, str(tmp_path / "agent.py"))
        hub.started("lifesigns", "run", "--id", "looper", "--", *command)
        hub.until(lambda: hub.events("NUDGE_SENT", agent="looper"), "looper is nudged")
        hub.until(lambda: any("heard" in log.read_text() for log in tmp_path.glob("process-*")), "it heard")
        assert hub.events("ESCALATION_TRIGGERED", agent="looper") == []


def test_a_program_that_cannot_hear_is_not_nudged(tmp_path: Path) -> None:
    """People are asked instead, and nothing is told as done that nobody could do."""
    with serving(tmp_path, {"policy": {"ladder": {"hesitate_for": "0.1s"}}}) as hub:
        hub.started("lifesigns", "run", "--id", "deaf", "--idle-after", "12", "--", "sleep", "300")
        hub.until(lambda: hub.events("ESCALATION_TRIGGERED", agent="deaf"), "people are asked about deaf")
        assert hub.events("NUDGE_SENT", agent="deaf") == []


def test_the_checkpoint_of_a_program_outlives_it_at_a_hub_too(tmp_path: Path) -> None:
    """docs/howto/supervise-any-command.md: the file `checkpoint` is where the next life goes on."""
    lives = tmp_path / "lives"
    script = f"""
echo "${{LIFESIGNS_CHECKPOINT:-from the beginning}}" >> {lives}
[ -z "$LIFESIGNS_CHECKPOINT" ] || exit 0
echo step-12 > "$LIFESIGNS_RUN/checkpoint"
exit 1
"""
    with serving(tmp_path) as hub:
        run = hub.started(
            "lifesigns", "run", "--id", "stepper", "--restart", "on-failure", "--", "sh", "-c", script
        )
        until(lambda: run.poll() is not None, "the second life has ended")
        assert lives.read_text().splitlines() == ["from the beginning", "step-12"]


ASKS = """
import sys
from pathlib import Path

print("got", input("Do you want to proceed? [y/N] "))
Path(sys.argv[1]).write_text("answered")
"""


def test_a_nudge_is_not_typed_into_a_question(tmp_path: Path) -> None:
    """A program that waits at its terminal waits for a human, and a nudge with Enter would answer for them."""
    (tmp_path / "agent.py").write_text(ASKS)
    answered = tmp_path / "answered"
    ours, its = pty.openpty()
    with serving(tmp_path) as hub:
        options = ("--id", "asker", "--nudge", "stdin", "--idle-after", "1")
        command = (
            "lifesigns",
            "run",
            *options,
            "--",
            sys.executable,
            str(tmp_path / "agent.py"),
            str(answered),
        )
        run = subprocess.Popen(
            [sys.executable, "-m", *command],
            env=environment(**hub.environ),
            preexec_fn=lambda: os.login_tty(its),  # Its own terminal, as a person has one.
        )
        try:
            hub.until(
                lambda: (hub.agent("asker") or {}).get("doing") == "waiting_for_human", "it waits for a human"
            )
            hub.post("/api/v1/agents/asker/nudge", {"message": "How is it going?"})
            hub.until(lambda: nudges(hub) - {"ordered"}, "the nudge has an outcome")
            assert nudges(hub).isdisjoint({"delivered", "seen", "answered"})
            assert not answered.exists()
            os.write(ours, b"yes\r")
            hub.until(answered.exists, "a person's answer arrives")
            assert run.wait(60) == 0
        finally:
            run.kill()
            run.wait()
            os.close(ours)
            os.close(its)


def nudges(hub: Hub) -> set[str]:
    """What became of the nudges."""
    told = [event["data"] for event in hub.events("INTERVENTION", "NUDGE_SENT", agent="asker")]
    return {data.get("stage", "ordered") for data in told if data.get("rung", "nudge") == "nudge"}
