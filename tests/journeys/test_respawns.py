"""Respawn: one life at a time, which may come in, and which is there in the end.

docs/howto/respawn-from-checkpoints.md. The hub starts agents by a command on its own machine.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.journeys.outside import BOUND, Hub, serving, until
from tests.journeys.starts import AGENT, config, crash, interventions, lost, started


def test_a_new_life_may_come_in(tmp_path: Path) -> None:
    """The command has a token for this agent and this life, and not the administrator's."""
    with started(tmp_path) as those, serving(tmp_path, config(those.command())) as hub:
        crash(hub)
        hub.until(lambda: hub.health("coder") == "healthy", "the new life is heard")
        (pid,) = those.lives
        assert told(pid)["LIFESIGNS_TOKEN"] != hub.token
        assert "LIFESIGNS_KEY" not in told(pid), "it need not sign"
        (token,) = [one for one in hub.get("/api/v1/tokens")["tokens"] if one["name"].startswith("life ")]
        assert (token["role"], token["agents"]) == ("agent", "coder")
        alerts = hub.cli("alerts", "--all").stdout
        assert "coder is back with task t-1. It was replaced: The process ended with status 1." in alerts


def test_a_new_life_that_has_to_sign_has_a_key_of_its_own(tmp_path: Path) -> None:
    """Where nothing is heard but what is signed. The key is for this agent and life, and ends with it."""
    with (
        started(tmp_path) as those,
        serving(tmp_path, {**config(those.command()), "access": {"signed": ["coder"]}}) as hub,
    ):
        key = hub.cli("key", "create", "coder").stdout.strip()
        command = (
            "lifesigns",
            "run",
            "--id",
            "coder",
            "--restart",
            "on-failure",
            "--",
            sys.executable,
            "agent.py",
        )
        run = hub.started(*command, LIFESIGNS_KEY=key)
        hub.until(lambda: hub.health("coder") == "healthy" and those.lives, "the first life is heard")
        run.kill()
        run.wait(BOUND)
        hub.until(lambda: len(those.lives) == 2, "another one is started")
        hub.until(lambda: hub.health("coder") == "healthy", "and what it signs is heard")
        assert told(those.lives[1])["LIFESIGNS_KEY"] != key
        (second,) = life_keys(hub)
        hub.post("/api/v1/agents/coder/terminate", {"reason": "a new version", "respawn": True})
        hub.until(lambda: len(those.lives) == 3, "a successor speaks")
        hub.until(lambda: hub.health("coder") == "healthy", "and is heard")
        (third,) = life_keys(hub)
        assert second != third, "the key of the life before is revoked"


def told(pid: int) -> dict[str, str]:
    """What a process finds in its environment."""
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def life_keys(hub: Hub) -> list[str]:
    keys = [one for one in hub.get("/api/v1/tokens")["tokens"] if one["role"] == "key"]
    return [one["id"] for one in keys if one["name"].startswith("life ") and one["agents"] == "coder"]


def test_a_slow_start_is_waited_for_and_there_is_one_life(tmp_path: Path) -> None:
    """It takes longer to start than the hub waits, and needs no second one."""
    with started(tmp_path) as those, serving(tmp_path, config(those.command(6.0))) as hub:
        crash(hub)
        hub.until(lambda: len(interventions(hub, "respawn", "ordered")) == 2, "a second start is ordered")
        hub.until(lambda: hub.health("coder") == "healthy", "the slow one is heard")
        hub.until(lambda: hub.events("RECOVERY_COMPLETED", agent="coder"), "it is recovered")
        assert len(those.starts) == len(those.lives) == 1
        assert those.living() == those.starts


def test_a_start_that_hangs_is_ended_before_the_third(tmp_path: Path) -> None:
    """It was waited for, twice as long as it had; it does not stay behind when another one is started."""
    once = f"cd {tmp_path}; if [ -e hung ]; then exec {sys.executable} agent.py; fi; touch hung; exec {sys.executable} agent.py 600"
    with started(tmp_path) as those, serving(tmp_path, config(once)) as hub:
        crash(hub)
        hub.until(lambda: hub.health("coder") == "healthy", "another one is heard")
        assert len(those.starts) == 2
        assert those.living() == those.lives == those.starts[1:]


def test_a_start_that_fails_is_tried_again_at_once(tmp_path: Path) -> None:
    once = f"cd {tmp_path}; if [ -e failed ]; then exec {sys.executable} agent.py; fi; touch failed; exit 3"
    with started(tmp_path) as those, serving(tmp_path, config(once, start_timeout=60.0)) as hub:
        crash(hub)
        hub.until(lambda: hub.health("coder") == "healthy", "the second one is heard")
        assert len(those.starts) == 1


def test_two_that_forked_away_become_one(tmp_path: Path) -> None:
    """A service manager has them, and nobody here can see or end them: the hub tells the one that is too many."""
    apart = f"cd {tmp_path}; env -u LIFESIGNS_INCARNATION setsid {sys.executable} agent.py 6 & exit 0"
    with started(tmp_path) as those, serving(tmp_path, config(apart)) as hub:
        crash(hub)
        hub.until(lambda: len(those.lives) == 2, "both have come")
        hub.until(lambda: len(those.living()) == 1, "one of them is stopped")
        hub.until(lambda: hub.health("coder") == "healthy", "the other one is heard")


def test_a_termination_with_respawn_under_close_watch_has_a_successor(tmp_path: Path) -> None:
    with started(tmp_path) as those, serving(tmp_path, config(those.command())) as hub:
        crash(hub)
        hub.until(lambda: hub.health("coder") == "healthy", "the new life is heard")
        hub.post("/api/v1/agents/coder/terminate", {"reason": "a new version", "respawn": True})
        hub.until(lambda: len(those.lives) == 2, "a successor speaks")
        hub.until(lambda: those.living() == those.lives[1:], "it is the only one")


def test_who_loses_its_supervisor_has_crashed_and_gets_a_successor(tmp_path: Path) -> None:
    """The child speaks for itself, and is ended because its supervisor was killed: that is no good end."""
    with started(tmp_path) as those, serving(tmp_path, config(those.command())) as hub:
        run = hub.started(
            "lifesigns", "run", "--id", "coder", "--restart", "on-failure", "--", sys.executable, "agent.py"
        )
        hub.until(lambda: hub.health("coder") == "healthy" and those.lives, "it is heard")
        run.kill()
        run.wait(BOUND)
        hub.until(lambda: len(those.lives) == 2, "a successor speaks")
        hub.until(lambda: hub.health("coder") == "healthy", "and is heard")
        assert lost(hub)


def test_an_old_copy_of_the_store_does_not_make_its_hub_unheard(tmp_path: Path) -> None:
    """The agents have seen orders of hubs that the copy knows nothing of."""
    with started(tmp_path) as those, serving(tmp_path, config()) as hub:
        for _ in range(2):
            hub.stop()
            hub.start()
        copy = tmp_path / "copy"
        hub.stop()
        shutil.copytree(hub.state, copy)
        for _ in range(3):
            hub.start()
            hub.stop()
        hub.start()
        agent = hub.python("agent.py", AGENT)
        hub.until(lambda: hub.health("coder") == "healthy", "it is heard")
        hub.post("/api/v1/agents/coder/nudge", {"message": "How is it going?"})
        hub.until(lambda: interventions(hub, "nudge", "delivered"), "it has taken an order")
        hub.stop()
        shutil.rmtree(hub.state)
        shutil.copytree(copy, hub.state)
        hub.start()
        hub.until(lambda: hub.health("coder") == "healthy", "it is heard again")
        hub.post("/api/v1/agents/coder/nudge", {"message": "And now?"})
        hub.until(lambda: interventions(hub, "nudge", "delivered"), "a nudge is not taken for an old one")
        hub.post("/api/v1/agents/coder/terminate", {"reason": "enough"})
        until(lambda: agent.poll() is not None, "a termination is not refused")
        assert those.living() == []


def test_one_id_on_two_hosts_is_told_and_the_one_that_stays_is_heard(tmp_path: Path) -> None:
    with serving(tmp_path, config()) as hub:
        program = AGENT.replace("starts", "ignored")
        older = hub.python("agent.py", program)
        hub.until(lambda: hub.health("coder") == "healthy", "the older one is heard")
        newer = hub.python("agent.py", program)
        hub.until(
            lambda: any(
                e["data"]["reason"] == "one id twice" for e in hub.events("NEEDS_HUMAN", agent="coder")
            ),
            "people are told, when it has gone on for a minute",
            within=2 * BOUND,
        )
        newer.kill()
        newer.wait(BOUND)
        hub.until(lambda: lost(hub), "the newer one is gone")
        hub.until(lambda: hub.health("coder") == "healthy", "the older one is the agent again")
        assert older.poll() is None
