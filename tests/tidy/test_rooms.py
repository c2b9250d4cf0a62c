"""Who may open which door: the table of ARCHITECTURE.md, for imports made directly.

import-linter (`make check`) keeps the order of the rooms, also along chains. It cannot say that the web may know
the hub and not the adapters; this table can.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.source import PACKAGE, ROOT, imported_modules

DOORS = {
    "errors": "",
    "files": "errors",
    "core": "errors",
    "ports": "core errors",
    "wire": "core errors",
    "events": "core wire ports errors",
    "agent": "core events wire ports errors",
    "hub": "core events wire ports files errors",
    "adapters": "core events wire ports files errors",
    "config": "core events wire errors",
    "views": "core events ports",
    "client": "views wire config core errors",
    "audit": "client hub events views wire ports core files errors",
    "backup": "hub config files errors",
    "assembly": "agent hub adapters audit views config wire ports core errors",
    "integrations": "assembly agent hub core files errors",
    "web": "integrations hub views config events wire ports core errors __version__",
    "simulation": "core ports hub config errors",
    "replay": "core ports hub events config errors",
    "demo": "assembly client views config events core errors",
    "cli": "web integrations assembly audit backup hub agent client views config events wire ports core files errors simulation replay demo __version__",
    "__main__": "cli",
}
DRIVERS_OF = {
    "simulation": r"\.memory$",
    "audit": r"^adapters\.signing\.",
    "backup": r"^adapters\.store\.sqlite_copy$",
}
"""The few drivers that a room besides the assembly may import: what it does is not to be had without them."""
# Their parts do not know each other either: one driver, one integration, at a time.
ROOMS_OF_STRANGERS = {"adapters", "integrations"}
SHARED = {"adapters.posting", "integrations.runs"}
"""What several parts need, and that knows none of them."""


def may_open(importer: str, imported: str) -> bool:
    """Whether the module `importer` may import the module `imported`; both without the leading `lifesigns.`."""
    room, other = importer.split(".")[0], imported.split(".")[0]
    if imported in SHARED and room == other:
        return True
    if room == other:
        return room not in ROOMS_OF_STRANGERS or importer.split(".")[:2] == imported.split(".")[:2]
    if not imported:
        return room == "demo"  # The front door is for users, and its agents are written as a user's.
    if other == "adapters" and room in DRIVERS_OF:
        return re.search(DRIVERS_OF[room], imported) is not None
    return other in DOORS[room].split()


def wrong_doors(importer: str, source: str) -> Iterator[str]:
    for line, module in imported_modules(source):
        package, _, imported = module.partition(".")
        if package == "lifesigns" and not may_open(importer, imported):
            yield f"lifesigns.{importer}, line {line}: imports {module}"


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def test_every_import_goes_through_an_allowed_door() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if file != PACKAGE / "__init__.py"]
    assert files
    assert [wrong for file in files for wrong in wrong_doors(module_name(file), file.read_text())] == []


def test_both_lists_of_rooms_name_the_same_rooms() -> None:
    """A new room is a decision: it is written down here, in pyproject.toml and in ARCHITECTURE.md."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = config["tool"]["importlinter"]["contracts"]
    assert set(re.findall(r"\w+", " ".join(contract["layers"]))) == set(DOORS)


def test_the_table_of_the_architecture_is_this_one() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.partition("## Rooms and doors")[2].partition("\n\n`lifesigns/__init__.py`")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", table, re.MULTILINE)
    written = {
        room: {name for name in re.findall(r"`(\w+)`", doors) if name in DOORS} for room, doors in rows
    }
    assert written == {
        room: {name for name in doors.split() if name in DOORS} for room, doors in DOORS.items()
    }


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("web.agents", "from lifesigns.adapters.store.sqlite import SqliteStore"),
        ("cli", "import lifesigns.adapters.store.sqlite"),
        ("hub.inbox", "from lifesigns.adapters.bus.memory import MemoryBus"),
        ("views", "from lifesigns import wire"),
        ("adapters.bus.nats", "from lifesigns.adapters.store.sqlite import SqliteStore"),
        ("integrations.codex", "from lifesigns.integrations.claude_code import hook"),
        ("adapters.posting", "from lifesigns.adapters.channels.slack import SlackBot"),
        ("integrations.crewai", "from lifesigns.integrations.langchain import watch"),
        ("simulation.world", "from lifesigns.adapters.store.sqlite import SqliteStore"),
        ("backup", "from lifesigns.adapters.store.sqlite import SqliteStore"),
        ("core.engine", "from lifesigns import Monitor"),
        ("web.agents", "import lifesigns"),
        ("demo.stage", "from lifesigns.cli.watch import watch"),
    ],
)
def test_a_wrong_door_is_found(importer: str, source: str) -> None:
    assert list(wrong_doors(importer, source))


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("web.agents", "from lifesigns.hub.service import Service"),
        ("cli.simulate", "from lifesigns.simulation import run"),
        ("simulation.world", "from lifesigns.adapters.store.memory import MemoryStore"),
        ("backup", "from lifesigns.adapters.store.sqlite_copy import copy_store"),
        ("adapters.bus.nats", "from lifesigns.adapters.bus.subjects import subject"),
        ("adapters.executors.webhook", "from lifesigns.adapters.posting import Poster"),
        ("integrations.langchain", "from lifesigns.integrations.runs import Watch"),
        ("core.engine", "from lifesigns.core.policy import Policy"),
        ("assembly", "from lifesigns.adapters.store.sqlite import SqliteStore"),
        ("demo.agents.coder", "import lifesigns"),
    ],
)
def test_a_right_door_is_open(importer: str, source: str) -> None:
    assert not list(wrong_doors(importer, source))
