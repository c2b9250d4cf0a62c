"""Importing lifesigns costs next to nothing, and brings in nothing that was not asked for."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.tidy.source import PACKAGE, is_inside

IMPORT_MAX = 0.150
# The promise is 150 ms on a quiet machine (contract, section 6), and half of a suite on two cores is not quiet. So
# the work is measured and not the waiting, and the best of several: noise only ever adds.
HELP_MAX = 0.250
RUNS = 7

NOT_ASKED_FOR = (
    "click rich yaml nats redis asyncpg apsw uvicorn httpx2 cryptography "
    "lifesigns.cli lifesigns.web lifesigns.simulation"
).split()

NEVER_IN_A_SENDER = (
    *NOT_ASKED_FOR,
    *"lifesigns.core.engine lifesigns.events lifesigns.views lifesigns.hub".split(),
)
NEVER_IN_A_QUESTION = (
    "asyncio rich yaml nats redis asyncpg apsw uvicorn cryptography prometheus_client lifesigns.core.agent "
    "lifesigns.core.engine lifesigns.core.policy lifesigns.config.load lifesigns.events lifesigns.hub lifesigns.views.builders "
    "lifesigns.web"
).split()
"""A command that asks a hub knows the shapes of answers, not how the hub makes them."""
NEVER_IN_A_HUB = (
    "httpx2 rich prometheus_client yaml.constructor opentelemetry lifesigns.simulation lifesigns.demo".split()
)
"""Of a hub without a configuration file and without channels: what others may ask it for comes with the first question."""

IMPORT = """
import sys, time, json
before = time.process_time()
import {module}
json.dump([time.process_time() - before, list(sys.modules)], sys.stdout)
"""


def fresh_import(module: str) -> tuple[float, list[str]]:
    """How long importing `module` takes in a new interpreter, and all that is loaded then."""
    code = IMPORT.format(module=module)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    took, loaded = json.loads(answer.stdout)
    return took, loaded


def not_asked_for(loaded: list[str], banned: Iterable[str] = NOT_ASKED_FOR) -> list[str]:
    return [module for module in loaded if any(is_inside(module, one) for one in banned)]


RUN = """
import atexit, json, sys
atexit.register(lambda: json.dump(list(sys.modules), sys.stdout))
from lifesigns.cli import main
main()
"""


def loaded_by(*command: str) -> list[str]:
    """What a command has loaded at its end."""
    answer = subprocess.run([sys.executable, "-c", RUN, *command], capture_output=True, timeout=60)
    modules: list[str] = json.loads(answer.stdout[answer.stdout.rindex(b"[") :])
    return modules


def help_seconds() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [Path(sys.executable).with_name("lifesigns"), "--help"], capture_output=True, check=True, timeout=60
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_import_takes_less_than_150_ms() -> None:
    assert min(fresh_import("lifesigns")[0] for _ in range(RUNS)) < IMPORT_MAX


def test_import_loads_no_driver_no_web_and_no_command_line() -> None:
    assert not_asked_for(fresh_import("lifesigns")[1]) == []


def test_a_hub_that_nobody_scrapes_does_not_load_the_client_of_prometheus() -> None:
    loaded = fresh_import("lifesigns.web.server")[1]
    assert not any(is_inside(module, "prometheus_client") for module in loaded)


def test_a_sender_loads_no_engine() -> None:
    loaded = fresh_import("lifesigns; lifesigns.Sender")[1]
    assert "lifesigns.agent.sender.sender" in loaded
    assert not_asked_for(loaded, NEVER_IN_A_SENDER) == []


@pytest.mark.parametrize("command", ["agents", "show x", "breakers", "tasks", "alerts", "nudge x hello"])
def test_a_command_that_asks_a_hub_loads_nothing_of_a_hub(command: str) -> None:
    loaded = loaded_by(*command.split(), "--hub", "http://127.0.0.1:9", "--token", "t")
    assert "httpx2" in loaded  # It came as far as the question.
    assert not_asked_for(loaded, NEVER_IN_A_QUESTION) == []


def test_a_beat_from_a_script_loads_nothing_of_a_hub() -> None:
    """Loaded and not run: a beat waits for a hub that is away."""
    loaded = fresh_import("lifesigns.cli.beat, lifesigns.client")[1]
    assert not_asked_for(loaded, NEVER_IN_A_QUESTION) == []


def test_the_version_needs_neither_wire_nor_client() -> None:
    loaded = loaded_by("--version")
    assert not_asked_for(loaded, ("asyncio", "msgspec", "httpx2", "lifesigns.core", "lifesigns.wire")) == []


def test_a_hub_loads_no_client_and_no_simulation() -> None:
    loaded = fresh_import("lifesigns.cli.serve, lifesigns.cli.leading, lifesigns.assembly.hub")[1]
    assert "lifesigns.hub.service" in loaded
    assert not_asked_for(loaded, NEVER_IN_A_HUB) == []


def test_values_that_every_process_loads_are_structs() -> None:
    """A frozen dataclass takes twenty times as long to define, and six times as long to make (record 0119)."""
    found = [
        str(file.relative_to(PACKAGE))
        for room in ("core", "wire", "ports", "events", "views", "config")
        for file in sorted((PACKAGE / room).rglob("*.py"))
        if "@dataclass(frozen=True" in file.read_text()
    ]
    assert found == []


def test_a_driver_that_slips_in_is_found() -> None:
    """`click` stands for any of them."""
    assert "click" in not_asked_for(fresh_import("click")[1])


def test_help_appears_at_once() -> None:
    best = min(help_seconds() for _ in range(RUNS))
    print(f"lifesigns --help: {best * 1000:.0f} ms, best of {RUNS}")  # noqa: T201 (shown by pytest -rP)
    assert best < HELP_MAX
