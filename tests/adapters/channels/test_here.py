"""Channels on this machine: the log, the desktop, and apprise where it is installed."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

from lifesigns.adapters.channels.apprise import AppriseChannel
from lifesigns.adapters.channels.desktop import DesktopChannel
from lifesigns.adapters.channels.log import LogChannel
from lifesigns.errors import UsageError
from lifesigns.ports import NotDelivered
from tests.adapters.channels.peers import Peer, notice


@pytest.mark.parametrize(
    ("stage", "severity", "level"),
    [("opened", "critical", "CRITICAL"), ("worse", "warning", "WARNING"), ("resolved", "critical", "INFO")],
)
async def test_the_log_says_it_under_an_action(
    stage: str, severity: str, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    channel = LogChannel()
    await channel.tell(notice(stage, severity))
    await channel.close()
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == (level, "coder-7 is disconnected (crash)")
    assert vars(record)["action"] == f"alert_{stage}"


def program(folder: Path, name: str, script: str) -> str:
    """A program of that name, and the path to find it by."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return f"{folder}{os.pathsep}/bin"


@pytest.mark.parametrize("name", ["notify-send", "osascript"])
async def test_the_desktop_is_told_by_the_program_there_is(name: str, tmp_path: Path) -> None:
    path = program(tmp_path, name, f'for x in "$@"; do echo "[$x]"; done > {tmp_path}/said')
    await DesktopChannel(path).tell(notice(title="-x <b>", text='"; rm -rf / & <i>'))
    said = (tmp_path / "said").read_text()
    assert "[-x <b>]" in said
    assert ("&amp; &lt;i&gt;" if name == "notify-send" else '"; rm -rf / & <i>') in said
    assert said.index("[--]") < said.index("[-x <b>]"), "what is told is never taken for an option"


async def test_a_desktop_nobody_sits_at_is_worth_another_try(tmp_path: Path) -> None:
    channel = DesktopChannel(program(tmp_path, "notify-send", "exit 1"))
    with pytest.raises(NotDelivered, match="signed in") as caught:
        await channel.tell(notice())
    await channel.close()
    assert caught.value.transient


async def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifesigns.adapters.channels.desktop.SHOW_FOR", 0.2)
    with pytest.raises(NotDelivered, match="longer than"):
        await DesktopChannel(program(tmp_path, "notify-send", "exec sleep 60")).tell(notice())


async def test_a_machine_without_a_desktop_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotDelivered, match="neither notify-send nor osascript") as caught:
        await DesktopChannel(str(tmp_path)).tell(notice())
    assert not caught.value.transient


def test_without_apprise_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(UsageError, match=r"pip install 'lifesigns\[apprise\]'"):
        AppriseChannel(("json://127.0.0.1",))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # apprise's own, on import
async def test_apprise_tells_its_services_and_says_if_one_did_not_take_it() -> None:
    async with Peer() as peer:
        channel = AppriseChannel((f"json://127.0.0.1:{peer.port}/hook",))
        await channel.tell(notice())
    assert peer.requests[0].json["title"] == "coder-7 is disconnected (crash)"
    with pytest.raises(NotDelivered):
        await channel.tell(notice())
    await channel.close()
    with pytest.raises(UsageError, match="address 1"):
        AppriseChannel(("nonsense-secret",))
