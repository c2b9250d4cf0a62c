"""Commands of the hub, attacked by what agents say: real hubs, real commands, real files that must still be there.

Promises:
    1. No fact makes a command do more than its recipe says; a refusal is an outcome that people see.
    2. A shell never reads what an agent says.
    3. A command gets none of the hub's secrets, and no token but its agent's own.
    4. What is typed into a terminal is one line of text, in that agent's pane.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.adapters.executors.tmux import TmuxNudge, one_line
from lifesigns.core.commands import CLEANUP_FACTS, fault, refusal, slug
from lifesigns.core.profiles import profile
from lifesigns.errors import AdapterError, PolicyError
from tests.adapters.executors.ground import HandyHub, handy_hub, nudge, settings, until

POLICY = profile("balanced").with_changes({"respawn": {"backoff": (0.01,), "jitter": 0.0}})

HOSTILE = [
    "../../precious",
    "../../../precious",
    "..",
    ".",
    "./..",
    "/precious",
    "-rf",
    "--no-preserve-root",
    "x/../../../precious",
    "one two",
    "one\n../precious",
    "x; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "*",
    "~root",
    "\x1b]0;pwned\x07",
    "\u202eeno",
    "x" * 300,
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What agents work in, what is precious, and what an attack would leave behind."""
    for path in ("work/coder-7/one", "work/coder-7/two", "work/other/one", "precious"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "file").write_text("of worth")
    return tmp_path


def files(tree: Path) -> set[str]:
    """Everything but what the hub itself keeps there."""
    found = (str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())
    return {path for path in found if not path.startswith(("cleanups/", "respawns/", "checkpoints/"))}


async def outcome(hub: HandyHub, rung: str) -> str:
    """How the order of this rung ended: its last stage, when it is no longer merely ordered."""
    async with asyncio.timeout(30):
        while True:
            found = (await hub.http.get("/api/v1/interventions", params={"rung": rung})).json()
            stages = [stage["stage"] for one in found["interventions"] for stage in one["stages"]]
            if set(stages) - {"ordered"}:
                return str(stages[-1])
            await asyncio.sleep(0.01)


async def told(hub: HandyHub) -> list[dict[str, Any]]:
    found = await hub.http.get("/api/v1/events/list", params={"types": "NEEDS_HUMAN"})
    return [event["data"] for event in found.json()["events"]]


async def leave(hub: HandyHub, incarnation: str | None, agent_id: str = "coder-7", **more: Any) -> None:
    """A life begins as the agent says, and is over."""
    as_said = {} if incarnation is None else {"incarnation": incarnation}
    beat = {"agent_id": agent_id, "task_id": "t-19", **as_said, **more}
    answer = await hub.http.post("/api/v1/beats", json=beat)
    assert answer.json()["accepted"] == 1, answer.text
    await hub.say({"type": "left", "agent_id": agent_id, **as_said})


# --- 1. no fact makes a command do more than its recipe says -------------------------------------------------


@pytest.mark.parametrize("incarnation", [*HOSTILE, None])
async def test_a_hostile_incarnation_deletes_nothing_and_people_see_that_it_was_refused(
    tree: Path, incarnation: str | None
) -> None:
    """The recipe that the docs had: `..` deleted anything, and no incarnation all that the agent ever had."""
    before = files(tree)
    given = settings(cleanup={"command": f"rm -rf {tree}/work/{{agent_id}}/{{incarnation}}"})
    async with handy_hub(tree, policy=POLICY, given=given) as hub:
        await leave(hub, incarnation)
        assert await outcome(hub, "cleanup") == "failed"
        (needed,) = await told(hub)
    assert files(tree) == before
    assert needed["reason"] == "not_cleaned_up"
    assert "{incarnation} is " in needed["text"]
    assert needed["text"].isprintable()


async def test_what_is_to_be_cleaned_up_is_cleaned_up(tree: Path) -> None:
    """Otherwise the refusals above would prove nothing."""
    given = settings(cleanup={"command": f"rm -rf -- {tree}/work/{{agent_slug}}/{{incarnation}}"})
    before = files(tree)
    async with handy_hub(tree, policy=POLICY, given=given) as hub:
        await leave(hub, "one")
        assert await outcome(hub, "cleanup") == "done"
    assert before - files(tree) == {"work/coder-7/one/file"}


@pytest.mark.parametrize(
    "agent_id", ["../precious", "..", "-rf", "a/../../precious", "/precious", "other/one"]
)
async def test_an_agents_id_leads_nowhere_else(tree: Path, agent_id: str) -> None:
    """Ids may contain a slash: no command takes one for a folder within another."""
    given = settings(cleanup={"command": f"rm -rf {tree}/work/{{agent_id}}"})
    before = files(tree)
    async with handy_hub(tree, policy=POLICY, given=given) as hub:
        await leave(hub, "one", agent_id)
        assert await outcome(hub, "cleanup") == "failed"
    assert files(tree) == before


async def test_an_id_with_a_slash_has_a_safe_form(tree: Path) -> None:
    (tree / "work/other~one/one").mkdir(parents=True)
    (tree / "work/other~one/one/file").touch()
    given = settings(cleanup={"command": f"rm -rf -- {tree}/work/{{agent_slug}}/{{incarnation}}"})
    before = files(tree)
    async with handy_hub(tree, policy=POLICY, given=given) as hub:
        await leave(hub, "one", "other/one")
        assert await outcome(hub, "cleanup") == "done"
    assert before - files(tree) == {"work/other~one/one/file"}


@pytest.mark.parametrize("task", ["../../precious", "-rf", "..", "x\ny"])
async def test_the_environment_leads_nowhere_else_either(tree: Path, task: str) -> None:
    """A script of the user's own reads its facts there, and they come from agents just as well."""
    (tree / "clean.sh").write_text(f'cd {tree}/work/other && rm -rf "./$LIFESIGNS_TASK" $LIFESIGNS_TASK\n')
    before = files(tree)
    given = settings(cleanup={"command": f"sh {tree}/clean.sh"})
    async with handy_hub(tree, policy=POLICY, given=given) as hub:
        await leave(hub, "one", task_id=task)
        assert await outcome(hub, "cleanup") == "failed"
    assert files(tree) == before


async def test_a_shell_stops_at_a_fact_that_is_not_there(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = settings(
        cleanup={"command": f'rm -rf "{tree}/work/coder-7/$LIFESIGNS_INCARNATION"', "shell": True}
    )
    before = files(tree)
    async with handy_hub(
        tree, policy=POLICY.with_changes({"ladder": {"cleanup_for": 1.0}}), given=given
    ) as hub:
        await leave(hub, None)
        assert await outcome(hub, "cleanup") == "failed"
    assert files(tree) == before


@pytest.mark.parametrize("task", ["../../precious", "-rf", "one two", "$(touch pwned)", "'; touch pwned; '"])
async def test_a_hostile_task_starts_nobody_and_people_see_it(tree: Path, task: str) -> None:
    before = files(tree)
    given = settings(respawn={"command": f"sh -c 'echo started > {tree}/{{task_id}}'"})
    async with handy_hub(
        tree, policy=POLICY.with_changes({"respawn": {"per_task_max": 1}}), given=given
    ) as hub:
        await hub.beat(task_id=task)
        await hub.crash()
        async with asyncio.timeout(30):
            while not (await told(hub)):  # noqa: ASYNC110 -- the hub is asked over HTTP
                await asyncio.sleep(0.01)
        events = await hub.http.get("/api/v1/events/list", params={"types": "RECOVERY_FAILED"})
    assert files(tree) == before
    assert "task_id" in events.text


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:@~+-]{0,254}", fullmatch=True).filter(
    lambda name: ".." not in name
)


@given(st.text(max_size=20) | st.sampled_from(HOSTILE))
def test_what_stands_in_a_command_is_a_name_and_nothing_else(value: str) -> None:
    """Whatever is let through means nothing to a shell, an option parser or a path."""
    if not refusal("rm -rf /work/{incarnation}", {"incarnation": value}):
        assert value.isascii()
        assert value[0].isalnum()
        assert not set(value) & set(" \t\n/\\$`'\"*?[]{}()<>|&;!#=%^")
        assert ".." not in value


@given(NAMES)
def test_a_name_is_let_through(name: str) -> None:
    assert refusal("rm -rf /work/{incarnation}", {"incarnation": name}) == ""


IDS = st.text("abAB01._:@/-", min_size=1, max_size=8)


@given(IDS, IDS)
def test_no_two_agents_have_the_same_slug(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)


# --- 2. a shell never reads what an agent says ---------------------------------------------------------------


@pytest.mark.parametrize("section", ["cleanup", "respawn"])
@pytest.mark.parametrize(
    "command",
    [
        'echo "{task_id}"',
        "echo '{task_id}'",
        'echo "a $(echo {task_id})"',
        "echo \\{task_id}",
        "echo `{task_id}`",
    ],
)
def test_a_place_inside_quotes_is_an_error_that_names_the_key(section: str, command: str) -> None:
    with pytest.raises(PolicyError) as caught:
        settings(**{section: {"command": command, "shell": True}})
    assert f"{section}.command: has {{task_id}} inside quotes: write it outside of them" in str(caught.value)


@pytest.mark.parametrize("shell", [True, False])
@pytest.mark.parametrize(
    ("section", "place", "variable"),
    [("cleanup", "reason", "REASON"), ("respawn", "handoff", "HANDOFF")],
)
def test_free_text_has_no_place_and_the_error_says_what_to_write(
    section: str, place: str, variable: str, shell: bool
) -> None:
    for command in (f'echo "{{{place}}}"', f"echo {{{place}}}"):
        with pytest.raises(PolicyError) as caught:
            settings(**{section: {"command": command, "shell": shell}})
        assert f"{section}.command: has {{{place}}}, which is free text" in str(caught.value)
        assert f'write "$LIFESIGNS_{variable}"' in str(caught.value)


def test_a_variable_outside_of_quotes_is_an_error_too() -> None:
    """A shell splits it: `x /precious` is two words."""
    wrong = fault("rm -rf /work/$LIFESIGNS_TASK", CLEANUP_FACTS, shell=True)
    assert wrong == 'has $LIFESIGNS_TASK outside of quotes, where a shell splits it: write "$LIFESIGNS_TASK"'
    assert fault('rm -rf "/work/${{LIFESIGNS_TASK:?}}"', CLEANUP_FACTS, shell=True) == ""


@pytest.mark.parametrize("reason", ["$(touch pwned)", '"; touch pwned; "', "`touch pwned`", "x\ntouch pwned"])
async def test_what_an_agent_says_is_printed_and_not_run(tree: Path, reason: str) -> None:
    given = settings(
        cleanup={"command": 'printf %s "$LIFESIGNS_REASON" > said', "shell": True, "cwd": str(tree)}
    )
    before = files(tree)
    async with handy_hub(tree, policy=POLICY, given=given) as hub:
        await hub.beat()
        await hub.say({"type": "left", "agent_id": "coder-7", "incarnation": "one", "reason": reason})
        assert await outcome(hub, "cleanup") == "done"
    assert files(tree) - before == {"said"}
    assert "touch pwned" in (tree / "said").read_text()


# --- 3. a command gets none of the hub's secrets -------------------------------------------------------------

SECRETS = {
    "LIFESIGNS_TOKEN": "the admin's",
    "LIFESIGNS_STORE": "postgres://hub:tiger@db/lifesigns",
    "LIFESIGNS_BUS": "nats://hub:tiger@bus",
    "LIFESIGNS_STATE": "/var/lib/tiger",
    "SLACK_WEBHOOK": "https://tiger",
    "AWS_SECRET_ACCESS_KEY": "tiger",
    "PGPASSWORD": "tiger",
}
TELLS = "import json, os, pathlib; pathlib.Path('told').write_text(json.dumps(dict(os.environ)))"


async def environment(tree: Path, section: str, **more: Any) -> dict[str, str]:
    """What the command of a section finds in its environment."""
    (tree / "tells.py").write_text(TELLS)
    given = settings(**{section: {"command": f"{sys.executable} -S tells.py", "cwd": str(tree), **more}})
    async with handy_hub(tree, policy=POLICY, given=given) as hub:
        await hub.beat()
        await hub.crash()
        await until(lambda: (tree / "told").exists() and (tree / "told").read_text())
        found: dict[str, str] = json.loads((tree / "told").read_text())
        if token := found.get("LIFESIGNS_TOKEN"):
            answer = await hub.http.get("/api/v1/fleet", headers={"authorization": f"Bearer {token}"})
            assert answer.status_code == 403, "an agent's token sees nobody else"
            answer = await hub.http.get(
                "/api/v1/agents/coder-7", headers={"authorization": f"Bearer {token}"}
            )
            assert answer.status_code == 200
    return found


@pytest.mark.parametrize("section", ["respawn", "cleanup"])
async def test_a_command_finds_no_secret_of_the_hub(
    tree: Path, section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_TIME", "C")
    found = await environment(tree, section)
    assert not [name for name, value in found.items() if value in SECRETS.values()]
    assert found["PATH"] == os.environ["PATH"]
    assert found["LC_TIME"] == "C"
    assert ("LIFESIGNS_TOKEN" in found) is (section == "respawn"), "nobody speaks for a life that is over"


async def test_more_is_passed_on_by_name(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SECRET", "for agents")  # The ground's hub was told of it as well.
    found = await environment(tree, "respawn", env=["SECRET"])
    assert found["SECRET"] == "for agents"
    assert "PGPASSWORD" not in found


@pytest.mark.parametrize(
    ("env", "wrong"),
    [("LIFESIGNS_TOKEN", "respawn.env: has LIFESIGNS_TOKEN"), ("KEY=tiger", "needs names of variables")],
)
def test_what_may_not_be_passed_on_is_told(env: str, wrong: str) -> None:
    with pytest.raises(PolicyError, match=wrong):
        settings(respawn={"command": "start", "env": env})


# --- 4. what is typed into a terminal ------------------------------------------------------------------------


@given(st.text(max_size=40))
def test_a_nudge_is_one_line_of_text_and_no_command_of_the_program_that_reads_it(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert line == "" or line[0].isalnum()


@pytest.mark.parametrize("agent_id", ["coder-1:1", "coder-1:0.1", "x.1"])
async def test_no_id_reaches_the_pane_of_another(agent_id: str) -> None:
    hand = TmuxNudge("={agent_id}:", ["claude"], lambda _: False)
    with pytest.raises(AdapterError, match="maybe of another agent") as caught:
        await hand.carry_out(nudge(agent_id=agent_id))
    assert not caught.value.transient
