"""Reports over a bus: kept by the sender until a hub has said that it has kept them, and heard once."""

import time
from collections import deque
from pathlib import Path

from lifesigns.agent.sender.beat_builder import BeatBuilder
from lifesigns.agent.sender.farewells import FILES_MAX, FOLDER, Farewells
from lifesigns.agent.sender.relay import Relay
from lifesigns.agent.sender.rhythm import rhythm
from lifesigns.agent.sender.session import AgentSession, Alert
from lifesigns.assembly.senders import Sender
from lifesigns.core import signals as s
from lifesigns.core.signals import Report
from lifesigns.ports import Link
from tests.agent.sender.ear import Ear
from tests.servers.process import free_port


def test_what_is_said_while_no_hub_hears_it_arrives_when_one_is_back(ear: Ear) -> None:
    """The bus is there all the time: nothing fails but the answer."""
    ear.keeps = False
    with Sender("a", ear.url, interval=0.2, close_for=10) as life:
        for number in range(50):
            life.checkpoint(f"cp-{number}")
        ear.until(lambda: ear.words)
        assert life.stats.buffered >= 50
        heard = len(ear.beats)
        ear.until(lambda: len(ear.beats) > heard + 5)  # Beats wait for nothing.
        ear.words.clear()
        ear._kept.clear()
        ear.keeps = True
        ear.until(lambda: len(ear.of(s.CheckpointSaved)) == 50)
        assert [word.checkpoint_id for word in ear.of(s.CheckpointSaved)] == [f"cp-{n}" for n in range(50)]
        _until(lambda: not life.stats.buffered)


def test_no_hub_for_long_is_told_once_and_so_is_its_return(ear: Ear) -> None:
    alerts: list[Alert] = []
    ear.keeps = False
    with Sender("a", ear.url, on_alert=alerts.append, retries=1000, alert_after=4.0, close_for=10):
        _until(lambda: alerts, within=30)
        assert not alerts[0].well
        assert alerts[0].unanswered_for >= 4.0
        ear.keeps = True
        _until(lambda: len(alerts) == 2, within=30)
        assert alerts[1].well


def no_link() -> Link:
    raise AssertionError("nothing is sent here")


class LeavingQueue(deque[Report]):
    """Its agent's thread leaves a farewell at the very moment at which the relay's takes a report out."""

    def __init__(self, session: AgentSession) -> None:
        super().__init__()
        self._session = session

    def popleft(self) -> Report:
        report = super().popleft()
        self._session.leave_farewell()
        return report


def test_a_good_bye_that_is_just_being_taken_is_not_lost(tmp_path: Path) -> None:
    farewells = Farewells("hub", lambda: tmp_path)
    session = AgentSession("a", "L1", BeatBuilder(), rhythm(None, None)[0])
    session._relay = Relay(no_link, farewells=farewells)
    session._reports = LeavingQueue(session)
    left = s.AgentLeft(agent_id="a", incarnation="L1", reason="done")
    session._reports.append(left)
    assert session.take(10) == [left]
    (spooled,) = farewells.collect()
    assert spooled.reports == [left]


def test_a_good_bye_to_nobody_lies_in_the_state_folder(tmp_path: Path) -> None:
    state = Path(tmp_path, "state")
    url = f"http://127.0.0.1:{free_port()}"
    farewells = Farewells(url, lambda: state)
    assert farewells.collect() == []
    said = [
        s.ProgressMade(agent_id="a", note="x"),
        s.AgentLeft(agent_id="a", incarnation="L1", reason="done"),
    ]
    farewells.leave(said)
    farewells.leave(said)
    (spooled,) = farewells.collect()
    assert spooled.reports == [said[1]]
    assert Farewells("http://127.0.0.1:1", lambda: state).collect() == []
    spooled.path.chmod(0o622)
    assert farewells.collect() == []  # Somebody else could have written it.
    assert not list((state / FOLDER).rglob("*.ndjson"))


def test_a_full_folder_takes_no_more(tmp_path: Path) -> None:
    farewells = Farewells("hub", lambda: tmp_path)
    for number in range(FILES_MAX + 5):
        farewells.leave([s.AgentLeft(agent_id=f"a-{number}", incarnation="L1", reason="done")])
    assert len(list((tmp_path / FOLDER).rglob("*.ndjson"))) == FILES_MAX


def _until(holds: object, within: float = 10.0) -> None:
    until = time.monotonic() + within
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < until, f"not within {within} s"
        time.sleep(0.005)
