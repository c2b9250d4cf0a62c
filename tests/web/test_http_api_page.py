"""docs/reference/http-api.md names every call, who may, and every event; and its examples work."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from lifesigns.hub import telling
from lifesigns.hub.feed import HEARTBEAT
from lifesigns.hub.principals import Role
from lifesigns.views.alerts import ALERTING
from lifesigns.views.audit import AUDITED
from lifesigns.web.table import CALLS
from tests.docs.pages import ROOT, blocks
from tests.web.hub import running_hub

PAGE = (ROOT / "docs" / "reference" / "http-api.md").read_text()
ROW = re.compile(r"^\| `([A-Z]+) ([^` ]+)` \| ([–avom ]+) \|", re.MULTILINE)
LETTERS = {"a": Role.AGENT, "v": Role.VIEWER, "o": Role.OPERATOR, "m": Role.ADMIN}


def test_every_call_is_there_with_those_who_may() -> None:
    said = {
        (method, path): frozenset(LETTERS[one] for one in who.split() if one != "–")
        for method, path, who in ROW.findall(PAGE)
    }
    assert said == {(call.method, call.path): call.who for call in CALLS}


def test_every_type_of_event_is_there() -> None:
    told = set(telling._NAMES.values()) | set(telling._RECOVERIES.values()) | set(ALERTING) | set(AUDITED)
    for name in told | {"HUB_STORE_LOST", "HUB_BUS_LOST", "GAP", HEARTBEAT}:
        assert f"`{name}`" in PAGE, name


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_its_examples_do_what_they_say(tmp_path: Path) -> None:
    """One shell for all of them, as somebody would who reads the page from the top."""
    script = "\n".join(block.text for block in blocks(PAGE) if block.info == "sh")
    async with running_hub() as hub:
        (tmp_path / "admin.token").write_text(hub.token)
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", script),
            env={"HUB": hub.url, "LIFESIGNS_STATE": str(tmp_path), "PATH": "/usr/bin:/bin"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(shell.communicate(), 60)
        assert shell.returncode == 0, out + err
        assert b'"granted":true' in out
        assert b"retry: 2000" in out
