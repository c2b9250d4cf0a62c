"""Secrets stay with whom they were given to.

Promises:
    1. A secret on our command line is not seen in the list of processes; there are ways to give it unseen.
    2. No token travels in the clear to another machine, unless somebody says that it may. An agent goes on all the same.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

import lifesigns
from lifesigns.cli import main, secret_options
from lifesigns.errors import UsageError
from lifesigns.wire.addresses import exposure, is_loopback
from tests.adapters.executors.ground import until

SECRET = "ls_abcd_tiger"
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux lets a process overwrite its command line"
)


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that hears requests, and answers none."""
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(65536))
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


@asynccontextmanager
async def running(*words: str, **environ: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lifesigns", *words),
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def seen(process: asyncio.subprocess.Process) -> bytes:
    """What `ps` shows of it, to everybody."""
    return Path(f"/proc/{process.pid}/cmdline").read_bytes()


# --- 1. the command line -------------------------------------------------------------------------------------


@linux
@pytest.mark.parametrize("typed", [("--token", SECRET), (f"--token={SECRET}",)])
async def test_a_token_that_was_typed_is_used_and_not_seen(typed: tuple[str, ...]) -> None:
    async with listening() as (at, heard), running("agents", "--hub", f"http://{at}", *typed) as process:
        await until(lambda: heard)
        assert f"Bearer {SECRET}".encode() in heard[0]
        assert SECRET.encode() not in seen(process)
        assert b"agents" in seen(process)


@linux
async def test_the_password_of_a_bus_is_not_seen(tmp_path: Path) -> None:
    async with listening() as (at, heard):
        bus = f"redis://hub:tiger@{at}"
        words = ("serve", "--port", "0", "--state", str(tmp_path), "--bus", bus)
        async with running(*words) as process:
            await until(lambda: heard)
            assert b"tiger" not in seen(process)


@pytest.mark.parametrize("way", ["environment", "file"])
async def test_a_secret_can_be_given_unseen(tmp_path: Path, way: str) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    typed = ("--token", f"@{tmp_path}/token") if way == "file" else ()
    environ = {"LIFESIGNS_TOKEN": SECRET} if way == "environment" else {}
    async with (
        listening() as (at, heard),
        running("agents", "--hub", f"http://{at}", *typed, **environ),
    ):
        await until(lambda: heard)
        assert f"Bearer {SECRET}\r\n".encode() in heard[0]


def test_where_it_cannot_be_hidden_there_is_a_warning_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_options, "hide", lambda _: False)
    done = CliRunner().invoke(main, ["agents", "--hub", "http://127.0.0.1:1", "--token", SECRET])
    assert "everybody on this machine can see --token; use LIFESIGNS_TOKEN or --token @FILE" in done.stderr
    assert SECRET not in done.stderr


def test_a_file_that_is_not_there_is_told_by_name() -> None:
    done = CliRunner().invoke(main, ["agents", "--token", "@/nowhere/token"])
    assert done.exit_code == 2
    assert "/nowhere/token cannot be read: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("command", "named"),
    [("serve", "LIFESIGNS_STORE"), ("serve", "LIFESIGNS_BUS"), ("serve", "@FILE"), ("agents", "@FILE")],
)
def test_the_help_says_so(command: str, named: str) -> None:
    assert named in CliRunner().invoke(main, [command, "--help"]).output


# --- 2. in the clear -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://hub.example:8710",
        "http://10.0.0.7:8710",
        "http://127.evil.example",
        "http://localhost.evil.example",
    ],
)
def test_a_token_is_not_sent_in_the_clear(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIFESIGNS_INSECURE", raising=False)
    with pytest.raises(UsageError, match="sent there unencrypted; use https://, or set LIFESIGNS_INSECURE=1"):
        lifesigns.Client(url, SECRET)
    with pytest.raises(UsageError, match="unencrypted"):
        lifesigns.Client(f"http://127.0.0.1:8710,{url}", SECRET)
    monkeypatch.setenv("LIFESIGNS_INSECURE", "1")
    lifesigns.Client(url, SECRET).close()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8710",
        "http://127.8.9.10",
        "http://[::1]:8710",
        "http://localhost",
        "http://hub.localhost:1",
        "http://[::ffff:127.0.0.1]:8710",
        "http://[0:0:0:0:0:0:0:1]",
    ],
)
def test_this_machine_needs_no_tls(url: str) -> None:
    assert is_loopback(url)
    assert exposure(url, {}) == ""
    assert exposure("https://hub.example", {}) == ""


@pytest.mark.parametrize(
    "url", ["http://[::ffff:192.0.2.1]", "http://127.300.0.1", "http://localhost.example"]
)
def test_what_only_looks_like_this_machine_needs_tls(url: str) -> None:
    assert not is_loopback(url)
    assert "unencrypted" in exposure(url, {})


def test_who_shows_no_token_may_ask() -> None:
    lifesigns.Client("http://hub.example:8710").close()


def test_a_command_says_what_to_do_and_a_flag_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIFESIGNS_INSECURE", "")
    words = ["agents", "--hub", "http://192.0.2.1:9", "--token", SECRET]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "https://, or set LIFESIGNS_INSECURE=1 (--insecure)" in done.stderr


async def test_a_sender_goes_on_unheard_and_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It must not end its host, nor send anything: not even a connection is made."""
    monkeypatch.delenv("LIFESIGNS_INSECURE", raising=False)
    own = socket.gethostbyname(socket.gethostname())
    alerts: list[str] = []
    connections: list[object] = []
    server = await asyncio.start_server(lambda *streams: connections.append(streams), "0.0.0.0", 0)
    port = server.sockets[0].getsockname()[1]
    host = own if not own.startswith("127.") else "0.0.0.0"
    with caplog.at_level(logging.WARNING, "lifesigns"):
        async with (
            server,
            lifesigns.Sender(
                "coder-7",
                hub=f"http://{host}:{port}",
                token=SECRET,
                retries=1,
                retry_after=0.1,
                close_for=0.1,
                on_alert=lambda alert: alerts.append(str(alert)),
            ) as life,
        ):
            life.progress("works on")
            await until(lambda: alerts)
    assert not connections
    assert "unencrypted" in caplog.text
    assert "unencrypted" in alerts[0]
    assert SECRET not in caplog.text
