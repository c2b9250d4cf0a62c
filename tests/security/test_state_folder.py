"""The state folder is the hub's own, and so is what it believes.

Promises:
    1. What somebody else has made or could have written is not believed: the hub does not start, and says what to type.
    2. Who can write to the store, and not read the state folder, makes no token and changes none.
    3. A path is the path that was typed, whatever is in its name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.cli import main
from lifesigns.errors import UsageError
from lifesigns.hub.access import Access, Role
from lifesigns.hub.state_folder import faults
from lifesigns.hub.tokens import digest_of, new_token
from lifesigns.ports import StoredToken
from tests.journeys.outside import Hub, Refused, environment, serving
from tests.servers.postgres import PostgresServer

NOW = 1_000_000.0
STRANGER = 54321

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to somebody else")


@pytest.fixture
def stopped(tmp_path: Path) -> Hub:
    """A hub that has run once, and is stopped."""
    with serving(tmp_path) as hub:
        hub.stop()
    return hub


def refused(state: Path, *more: str) -> str:
    """What a hub says that does not start."""
    done = subprocess.run(
        [sys.executable, "-m", "lifesigns", "serve", "--port", "0", "--state", str(state), *more],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(),
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


def given_to_a_stranger(path: Path) -> None:
    os.chown(path, STRANGER, -1)


def opened_to_the_group(path: Path) -> None:
    path.chmod(path.stat().st_mode | stat.S_IWGRP)


# --- 1. whose files these are ---------------------------------------------------------------------------


@as_root
@pytest.mark.parametrize("name", ["", "lifesigns.db", "checkpoints/planted"])
def test_what_belongs_to_somebody_else_is_refused(stopped: Hub, name: str) -> None:
    path = stopped.state / name
    path.parent.mkdir(exist_ok=True)
    if name:
        path.touch()
    given_to_a_stranger(path)
    said = refused(stopped.state)
    assert f"{path} belongs to user {STRANGER}" in said
    assert f"chown -R 0 {stopped.state}" in said
    subprocess.run(["chown", "-R", "0", str(stopped.state)], check=True)
    stopped.start()
    stopped.end()


@as_root
def test_a_link_to_the_file_of_somebody_else_is_refused(stopped: Hub, tmp_path: Path) -> None:
    planted = tmp_path / "planted.db"
    shutil.move(stopped.state / "lifesigns.db", planted)
    given_to_a_stranger(planted)
    (stopped.state / "lifesigns.db").symlink_to(planted)
    assert f"belongs to user {STRANGER}" in refused(stopped.state)


def test_a_folder_that_others_can_write_is_refused_and_mended_by_what_is_said(stopped: Hub) -> None:
    stopped.state.chmod(0o777)
    said = refused(stopped.state)
    assert "can be written by others (mode 0777)" in said
    assert f"chmod -R go-w {stopped.state}" in said
    subprocess.run(["chmod", "-R", "go-w", str(stopped.state)], check=True)
    stopped.start()
    stopped.end()


def test_a_file_that_others_can_write_is_refused_only_where_they_can_reach_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "lifesigns.db").touch()
    opened_to_the_group(state / "lifesigns.db")
    state.chmod(0o755)
    assert "lifesigns.db can be written by others" in next(faults(state, os.geteuid()))
    state.chmod(0o700)
    assert not list(faults(state, os.geteuid()))


@pytest.mark.parametrize("spoil", [pytest.param(given_to_a_stranger, marks=as_root), opened_to_the_group])
@pytest.mark.parametrize("ending", ["", "-wal"])
def test_a_store_elsewhere_is_looked_at_too(
    tmp_path: Path, spoil: Callable[[Path], None], ending: str
) -> None:
    database = tmp_path / "elsewhere.db"
    (tmp_path / f"elsewhere.db{ending}").touch()
    spoil(tmp_path / f"elsewhere.db{ending}")
    assert f"elsewhere.db{ending}" in refused(tmp_path / "state", "--store", f"sqlite://{database}")


@pytest.mark.parametrize("umask", [0o000, 0o002])
def test_what_a_hub_makes_itself_is_believed_by_the_next_under_every_umask(
    tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        with serving(tmp_path) as hub:
            hub.kill()
            hub.start()
            assert hub.get("/api/v1/me")["role"] == "admin"
    finally:
        os.umask(before)
    assert not list(faults(hub.state, os.geteuid()))


def test_a_database_that_others_could_read_is_closed(stopped: Hub) -> None:
    stopped.state.chmod(0o755)
    (stopped.state / "lifesigns.db").chmod(0o644)
    stopped.start()
    stopped.end()
    assert stat.S_IMODE((stopped.state / "lifesigns.db").stat().st_mode) == 0o600
    assert "could be read by others; it is closed now" in stopped.log.read_text()


def test_the_doctor_says_the_same(stopped: Hub) -> None:
    stopped.state.chmod(0o777)
    done = stopped.cli("doctor", check=False)
    assert done.returncode == 1
    assert "can be written by others (mode 0777)" in done.stdout
    assert f"chmod -R go-w {stopped.state}" in done.stdout


# --- 2. whose tokens these are --------------------------------------------------------------------------


def sql(database: Path, statement: str, *values: object) -> None:
    with contextlib.closing(apsw.Connection(str(database))) as file:
        file.set_busy_timeout(5000)
        file.execute(statement, values).fetchall()


def forged_row(hub: Hub, role: str = "admin", mac: bytes = b"") -> str:
    """Somebody who can write to the database makes himself a token."""
    token_id, token = new_token()
    sql(
        hub.state / "lifesigns.db",
        "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(token_id, digest_of(token.encode()), role, "mallory", "", 1.0, None, None, mac),
    )
    return token


def test_a_row_in_the_database_makes_nobody_an_administrator(tmp_path: Path) -> None:
    """While the hub runs, and when it starts. People are told."""
    with serving(tmp_path) as hub:
        forged = forged_row(hub)
        hub.until(
            lambda: any(one["type"] == "HUB_TOKENS_FORGED" for one in hub.get("/api/v1/alerts")["alerts"]),
            "people are told",
        )
        for _ in range(2):
            with pytest.raises(Refused) as answer:
                hub.request("GET", "/api/v1/agents", token=forged)
            assert answer.value.status == 401
            hub.stop()
            hub.start()
        assert "was not made by this hub and is refused" in hub.log.read_text()
        hub.until(lambda: "token rows" in hub.cli("doctor", check=False).stdout, "the doctor says so, too")


@pytest.mark.parametrize(
    ("column", "value"), [("role", "admin"), ("agents", "*"), ("expires_at", None), ("digest", b"\0" * 32)]
)
async def test_a_row_that_was_changed_is_refused(tmp_path: Path, column: str, value: Any) -> None:
    store = MemoryStore()
    access = Access(store)
    await access.open_folder(tmp_path, NOW)
    made = await access.tokens.create(role=Role.AGENT, name="x", agents="a", now=NOW, expires_at=NOW + 60)
    assert access.principal(made.token.encode(), NOW) is not None
    await store.keep_token(replace(made.stored, **{column: value}))
    await access.tokens.load()
    assert access.principal(made.token.encode(), NOW) is None
    assert made.stored.id in access.tokens.why_forged(NOW)


async def test_the_mac_of_one_row_vouches_for_no_other(tmp_path: Path) -> None:
    store = MemoryStore()
    access = Access(store)
    await access.open_folder(tmp_path, NOW)
    (true,) = await store.tokens()
    _, token = new_token()
    await store.keep_token(
        StoredToken("mallory", digest_of(token.encode()), "admin", "", "", NOW, mac=true.mac)
    )
    await access.tokens.load()
    assert access.principal(token.encode(), NOW) is None
    assert "mallory" in access.tokens.why_forged(NOW)


def test_tokens_of_an_older_lifesigns_are_signed_once(tmp_path: Path) -> None:
    """At the upgrade they have no MAC, and the folder no key; afterwards a row without one is refused."""
    with serving(tmp_path) as hub:
        old = hub.post("/api/v1/tokens", {"role": "viewer", "name": "old"})["token"]
        hub.stop()
        sql(hub.state / "lifesigns.db", "UPDATE tokens SET mac = x''")
        (hub.state / "tokens.key").unlink()
        hub.start()
        assert hub.request("GET", "/api/v1/me", token=old)["role"] == "viewer"
        assert (
            "2 tokens of the store were made by an older lifesigns: they are signed now"
            in hub.log.read_text()
        )
        hub.stop()
        sql(hub.state / "lifesigns.db", "UPDATE tokens SET mac = x'' WHERE role = 'viewer'")
        hub.start()
        with pytest.raises(Refused):
            hub.request("GET", "/api/v1/me", token=old)


async def test_an_upgrade_that_was_cut_off_is_finished(tmp_path: Path) -> None:
    """Nobody's token is lost by a crash between the signing of two rows."""

    class Dies(MemoryStore):
        signed = 0

        async def keep_token(self, token: StoredToken) -> None:
            if self.signed == 1:
                raise ConnectionError
            Dies.signed += 1
            await super().keep_token(token)

    store, tokens = MemoryStore("upgraded"), []
    for name in ("a", "b", "c"):
        token_id, token = new_token()
        tokens.append(token)
        await store.keep_token(StoredToken(token_id, digest_of(token.encode()), "viewer", name, "", NOW))
    with pytest.raises(ConnectionError):
        await Access(Dies("upgraded")).open_folder(tmp_path, NOW)
    access = Access(MemoryStore("upgraded"))
    await access.open_folder(tmp_path, NOW)
    assert all(access.principal(token.encode(), NOW) for token in tokens)


def test_a_hub_without_the_key_leaves_the_hub_that_has_it_alone(stopped: Hub, tmp_path: Path) -> None:
    """It would refuse everybody, and depose the one who does not. With the key, or a person's word, it serves."""
    token = stopped.token
    store = f"sqlite://{stopped.state / 'lifesigns.db'}"
    stopped.start()
    said = refused(tmp_path / "other", "--store", store)
    assert "copy tokens.key from the state folder of the hub that made them" in said
    assert stopped.get("/api/v1/me")["role"] == "admin"
    stopped.post("/api/v1/beats", {"agent_id": "a"})
    stopped.stop()
    stopped.end()
    words = ["token", "accept", "--state", str(tmp_path / "other"), "--store", store]
    no = CliRunner().invoke(main, words, input="n\n")
    assert no.exit_code == 1
    assert "admin" in no.output
    assert CliRunner().invoke(main, words, input="y\n").exit_code == 0
    (tmp_path / "again").mkdir()
    with serving(tmp_path / "again", None, "--store", store, state=tmp_path / "other") as other:
        assert other.request("GET", "/api/v1/me", token=token)["role"] == "admin"


async def test_postgres_keeps_the_mac_and_refuses_without_it(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    store = PostgresStore(postgres_server.url)
    try:
        for row in await store.tokens():
            await store.drop_token(row.id)
        access = Access(store)
        await access.open_folder(tmp_path, NOW)
        made = await access.tokens.create(role=Role.VIEWER, name="v", now=NOW)
        again = Access(store)
        await again.open_folder(tmp_path, NOW)
        assert again.principal(made.token.encode(), NOW) is not None
        _, forged = new_token()
        await store.keep_token(StoredToken("m", digest_of(forged.encode()), "admin", "m", "", NOW))
        await again.tokens.load()
        assert again.principal(forged.encode(), NOW) is None
        assert again.tokens.why_forged(NOW)
        with pytest.raises(UsageError, match=r"copy tokens\.key"):
            await Access(store).open_folder(tmp_path / "other", NOW)
    finally:
        for row in await store.tokens():
            await store.drop_token(row.id)
        await store.close()


# --- 3. paths ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a #1?mode=memory&%41'ä", "file:x"])
def test_a_state_folder_is_where_it_was_said_to_be(tmp_path: Path, name: str) -> None:
    """A relative one, too: it wrote `/lifesigns.db`."""
    with serving(tmp_path, state=Path(name)) as hub:
        hub.post("/api/v1/beats", {"agent_id": "a"})
        hub.stop()
    assert (tmp_path / name / "lifesigns.db").is_file()
    assert not Path("/lifesigns.db").exists()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [name]


def test_a_store_is_where_it_was_said_to_be(tmp_path: Path) -> None:
    name = "#1?100%41.db"
    with serving(tmp_path, None, "--store", f"sqlite://{tmp_path / name}"):
        assert (tmp_path / name).is_file()
    done = CliRunner().invoke(
        main,
        ["audit", "verify", "--state", str(tmp_path / "state"), "--store", f"sqlite://{tmp_path / name}"],
    )
    assert "there is no database" not in done.output
