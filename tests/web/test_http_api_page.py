"""docs/reference/http-api.md names every call, who may, and every event; and its examples work."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from lifesigns.events import CATALOGUE, Row
from lifesigns.hub.principals import Role
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


def test_every_event_is_there_with_its_fields() -> None:
    """The table is the catalogue: what is missing is shown as it is to be written."""
    said = [line for line in PAGE.splitlines() if re.match(r"\| `[A-Z_]+` \|", line)]
    assert said == [row_in_docs(row) for row in CATALOGUE.values()]


def row_in_docs(row: Row) -> str:
    names = " ".join(f"`{told}`" for told in row.fields.values() if told) or "the beat"
    return f"| `{row.name}` | {row.when} | {names} |"


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
