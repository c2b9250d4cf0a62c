"""`lifesigns audit verify` and its kin: on real files, beside a running hub, and by proofs from one."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner, Result

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.audit.keys import signer_in
from lifesigns.cli import main
from lifesigns.core import merkle
from lifesigns.hub.audit import notes
from lifesigns.hub.audit.retention import AuditRetention
from lifesigns.hub.audit.seal_file import SealFile
from lifesigns.hub.audit.state import AuditState, encode_state
from tests.hub import test_audit_tampering as tampering
from tests.hub.audited import Log, act, read, written_log
from tests.web.hub import running_hub


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder as `serve` leaves it, with thirty deeds."""
    folder = tmp_path_factory.mktemp("state")

    async def write() -> None:
        log = Log(str(folder / "lifesigns.db"), folder, signer_in(folder))
        async with log.hub() as service:
            await read(service)
            await act(service, *range(15))
            await service.hub.audit.seal(service.hub.committer, service.clock())
            await act(service, *range(15, 30))

    asyncio.run(write())
    return folder


@pytest.fixture
def state(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "state")
    return tmp_path / "state"


def cli(*args: object, **env: str) -> Result:
    words = ["audit", *(str(arg) for arg in args)]
    environ = {"LIFESIGNS_STATE": "/nonexistent", "LIFESIGNS_HUB": "", "LIFESIGNS_TOKEN": "", **env}
    return CliRunner().invoke(main, words, env=environ, catch_exceptions=False)


def sql(state: Path, statement: str) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(state / "lifesigns.db"))
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_a_log_that_nobody_touched_is_verified(state: Path) -> None:
    said = cli("verify", "--state", state)
    assert said.exit_code == 0
    assert "Verified: 30 entries, 4 checkpoints of lifesigns/" in said.output
    assert cli("verify", LIFESIGNS_STATE=str(state)).exit_code == 0
    told = json.loads(cli("verify", "--state", state, "--json").output)
    assert (told["verified"], told["entries"], told["sealed"], told["faults"]) == (True, 30, 30, [])


def test_a_changed_log_is_told_with_the_entry_and_how(state: Path) -> None:
    sql(state, "UPDATE deeds SET entry = x'7b7d' WHERE n = 17")
    said = cli("verify", "--state", state)
    assert said.exit_code == 1
    assert "changed: entry 17 was changed" in said.output
    told = json.loads(cli("verify", "--state", state, "--json").output)
    assert (told["verified"], told["faults"][0]["how"], told["faults"][0]["n"]) == (False, "changed", 17)


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """A state folder as `serve` leaves it: forty deeds in two lives of a hub, sealed after every ten."""
    folder = tmp_path_factory.mktemp("sealed")
    return asyncio.run(written_log(str(folder / "lifesigns.db"), folder, signer_in(folder)))


TARGETS: dict[str, tuple[tampering.Deed, str]] = {
    "nothing": (tampering.nothing, "Verified: 40 entries"),
    "changed entry": (tampering.changed, "changed: entry 7 was changed"),
    "changed entry with its hash": (tampering.changed_with_its_hash, "rewritten: "),
    "removed entry": (tampering.removed, "removed: entry 7 is missing"),
    "swapped entries": (tampering.swapped, "swapped: entry 8"),
    "truncated tail": (tampering.truncated_with_everything, "truncated: the end is missing"),
    "replaced tree": (tampering.replaced, "rewritten: "),
    "forged signature": (tampering.forged, "forged: "),
}


@pytest.mark.parametrize("what", TARGETS)
def test_the_command_finds_what_was_done(what: str, sealed: Log, tmp_path: Path) -> None:
    """Each target of the audit, by the command that has nothing but the state folder."""
    shutil.copytree(sealed.state, tmp_path, dirs_exist_ok=True)
    tamper, says = TARGETS[what]
    asyncio.run(tamper(Log(str(tmp_path / "lifesigns.db"), tmp_path, sealed.signer)))
    said = cli("verify", "--state", tmp_path)
    assert says in said.output
    assert said.exit_code == (0 if what == "nothing" else 1)


async def test_what_was_retired_by_policy_is_still_verified_and_what_was_removed_is_not(
    tmp_path: Path,
) -> None:
    """Both are gone; only one of them is on record as retired."""
    log = Log(str(tmp_path / "lifesigns.db"), tmp_path, signer_in(tmp_path))
    async with log.hub() as service:
        await read(service)
        await act(service, *range(10))
        hub = service.hub
        retention = AuditRetention(hub.audit, service.store, hub.committer, hub.announce)
        await retention.retire(service.clock() + 10 * 86400.0, 86400.0)
        await act(service, *range(10, 15))
    retired = await log.sql("SELECT count(*) FROM deeds WHERE entry IS NULL")
    assert retired == [(10,)]
    good = await asyncio.to_thread(cli, "verify", "--state", tmp_path)
    assert (good.exit_code, "16 entries" in good.output) == (0, True), good.output
    await log.sql("UPDATE deeds SET entry = NULL WHERE n = 12")
    bad = await asyncio.to_thread(cli, "verify", "--state", tmp_path)
    assert bad.exit_code == 1
    assert "removed: " in bad.output


def test_many_faults_are_counted_and_not_all_listed(state: Path) -> None:
    sql(state, "UPDATE deeds SET entry = x'7b7d', leaf = zeroblob(32)")
    sql(
        state,
        "WITH RECURSIVE n (n) AS (SELECT 30 UNION ALL SELECT n + 1 FROM n WHERE n < 200) "
        "INSERT INTO deeds SELECT n, n + 100, 1.0, '', '', zeroblob(32), x'7b7d' FROM n",
    )
    said = cli("verify", "--state", state)
    assert said.exit_code == 1
    assert "more" in said.output.splitlines()[-1]
    assert len(said.output.splitlines()) == 102


def test_a_kept_checkpoint_and_a_kept_key_find_what_the_folder_cannot(state: Path, tmp_path: Path) -> None:
    """Somebody with everything, the key too, begins the log anew."""
    kept, key = tmp_path / "monday.txt", tmp_path / "audit.pub"
    kept.write_text(SealFile(state).read() or "")
    shutil.copy(state / "audit.pub", key)
    sql(state, "DELETE FROM deeds WHERE n >= 10")
    sql(state, "DELETE FROM events WHERE id > (SELECT max(event_id) FROM deeds)")
    sql(state, "DELETE FROM seals")
    signer, first_ten = signer_in(state), merkle.Frontier()
    ten = Log(str(state / "lifesigns.db"), state, signer)
    for (leaf,) in sql(state, "SELECT leaf FROM deeds ORDER BY n"):
        first_ten.append(leaf)
    note = notes.write(10, first_ten.root(), signer)
    SealFile(state).path.write_text(note)
    row = encode_state(AuditState(first_ten, note)).hex()
    sql(state, f"UPDATE beliefs SET value = x'{row}' WHERE kind = 'audit'")

    async def begin_anew() -> None:
        async with ten.hub() as service:
            await read(service)

    asyncio.run(begin_anew())
    assert cli("verify", "--state", state).exit_code == 0
    said = cli("verify", "--state", state, "--checkpoint", kept, "--key", key)
    assert said.exit_code == 1
    assert "truncated: the end is missing: the log has 10 entries, but 30 were sealed" in said.output


def test_another_key_vouches_for_nothing(state: Path, tmp_path: Path) -> None:
    other = notes.write_key(signer_in(tmp_path / "other").public)
    said = cli("verify", "--state", state, "--key", other)
    assert said.exit_code == 1
    assert "wrong_key" in said.output
    both = cli("verify", "--state", state, "--key", other, "--key", state / "audit.pub")
    assert both.exit_code == 0


def test_an_export_can_be_verified_elsewhere(state: Path, tmp_path: Path) -> None:
    out, key = tmp_path / "audit.ndjson", cli("key", "--state", state).output.strip()
    assert cli("export", "--state", state, "--out", out).exit_code == 0
    shutil.rmtree(state)
    said = cli("verify", "--export", out, "--key", key)
    assert said.exit_code == 0, said.output
    assert "30 entries" in said.output
    lines = out.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + 4 + 30


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda lines: [*lines[:21], *lines[22:]], "entry 16 is missing"),
        (lambda lines: lines[:-1], "the log has 29 entries, but 30 were sealed"),
        (lambda lines: [*lines[:21], lines[22], lines[21], *lines[23:]], "swapped: entry 16"),
        (lambda lines: [line.replace(b"ann (k1)", b"eve (k9)") for line in lines], "entry 0 was changed"),
        (lambda lines: [*lines[:20], b"{\n", *lines[21:]], "line 21 cannot be read"),
        (lambda lines: [lines[0], *lines[5:]], "no good seal at all"),
    ],
)
def test_a_changed_export_is_known(
    state: Path, tmp_path: Path, edit: Callable[[list[bytes]], list[bytes]], said: str
) -> None:
    out = tmp_path / "audit.ndjson"
    out.write_bytes(cli("export", "--state", state).stdout_bytes)
    out.write_bytes(b"".join(edit(out.read_bytes().splitlines(keepends=True))))
    found = cli("verify", "--export", out, "--key", state / "audit.pub")
    assert found.exit_code == 1
    assert said in found.output


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["verify"], "--key"),
        (["verify", "--key", "nonsense"], "lifesigns audit key"),
        (["verify", "--store", "sqlite:///nonexistent/x.db", "--key", "KEY"], "there is no database"),
        (["verify", "--export", "/nonexistent", "--key", "KEY"], "cannot be read"),
        (["verify", "--export", __file__, "--key", "KEY"], "no export"),
        (["verify", "--key", "KEY", "--checkpoint", "/nonexistent"], "cannot be read"),
        (["verify", "--hub", "http://x", "--store", "sqlite:///x", "--key", "KEY"], "use one"),
        (["--hub", "http://x", "verify", "--store", "sqlite:///x", "--key", "KEY"], "use one"),
        (["verify", "--entry", "1", "--key", "KEY"], "--hub"),
        (["--hub", "http://x", "export"], "it has no --hub"),
        (["key"], "has a hub run"),
        (["export", "--key", "KEY", "--out", "/nonexistent/x"], "cannot be written"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(state: Path, args: list[str], said: str) -> None:
    key = (state / "audit.pub").read_text().strip()
    found = cli(*(key if arg == "KEY" else arg for arg in args))
    assert found.exit_code == 2
    assert said in found.stderr
    assert not Path("/nonexistent").exists()


async def test_a_running_hub_is_verified_beside_it_and_by_proofs(tmp_path: Path) -> None:
    signer = signer_in(tmp_path)
    store = SqliteStore(tmp_path / "lifesigns.db")
    async with running_hub(store, state=tmp_path, signer=signer) as hub:
        env = {"LIFESIGNS_TOKEN": hub.token, "LIFESIGNS_STATE": str(tmp_path), "LIFESIGNS_HUB": hub.url}

        async def asked(*args: object) -> Result:
            return await asyncio.to_thread(cli, *args, **env)

        async def audit_records(*numbers: int) -> None:
            await act(hub.service, *numbers)
            await hub.service.hub.audit.seal(hub.service.hub.committer, hub.service.clock())

        await read(hub.service)
        await audit_records(*range(20))
        monday = tmp_path / "monday.txt"
        assert (await asked("checkpoint", "--out", monday)).exit_code == 0
        assert (await asked("checkpoint")).output == monday.read_text()
        await audit_records(*range(20, 40))
        await act(hub.service, 40)
        beside = await asked("verify")
        assert beside.exit_code == 0
        assert "41 entries" in beside.output
        proven = await asked("verify", "--hub", hub.url, "--checkpoint", monday)
        assert (proven.exit_code, "proven 19 entries of the 40" in proven.output) == (0, True), proven.output
        assert (await asked("verify", "--hub", hub.url, "--entry", 3, "--entry", 7)).exit_code == 0
        assert (await asked("--hub", hub.url, "verify", "--entry", 3)).exit_code == 0
        assert (await asked("verify", "--hub", hub.url, "--entry", 99)).exit_code == 2
        await asyncio.to_thread(sql, tmp_path, "UPDATE deeds SET entry = x'7b7d' WHERE n = 30")
        changed = await asked("verify", "--hub", hub.url, "--checkpoint", monday)
        assert changed.exit_code == 1
        assert "entry 30 was changed" in changed.output


async def test_a_hub_that_replaced_its_log_cannot_prove_the_old_one(tmp_path: Path) -> None:
    """Even with the right key: what was sealed once binds it."""
    signer = signer_in(tmp_path)
    longer, other = tmp_path / "longer.txt", tmp_path / "other.txt"
    longer.write_text(notes.write(50, bytes(32), signer))
    other.write_text(notes.write(10, bytes(32), signer))
    async with running_hub(signer=signer) as hub:
        await read(hub.service)
        await act(hub.service, *range(20))
        await hub.service.hub.audit.seal(hub.service.hub.committer, hub.service.clock())
        env = {"LIFESIGNS_TOKEN": hub.token, "LIFESIGNS_STATE": str(tmp_path)}
        said = await asyncio.to_thread(
            cli, "verify", "--hub", hub.url, "--checkpoint", longer, "--checkpoint", other, **env
        )
    assert said.exit_code == 1
    assert "truncated: the hub's log has 20 entries, but 50 were sealed" in said.output
    assert "rewritten: the hub cannot prove that its log begins with the 10 entries" in said.output
