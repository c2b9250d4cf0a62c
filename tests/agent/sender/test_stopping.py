"""Stop: the agent saves, ends, and only then it is told that it was stopped."""

import asyncio
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from lifesigns.agent.sender import stopping
from lifesigns.agent.sender.stopping import Stop
from lifesigns.assembly.senders import Sender
from lifesigns.core import signals as s
from lifesigns.core.effects import Order, StopStranger, Terminate
from tests.agent.sender.ear import Ear
from tests.agent.sender.http_hub import HttpHub


def stop(order_id: str = "1-5", save_for: float = 10.0, agent: str = "a") -> Order:
    return Terminate(time.time(), order_id, 1, agent, None, "looping", save_for, (), 3, "kim")


def _endings(ear: Ear) -> list[str]:
    kinds = s.CheckpointSaved | s.TerminationDone | s.TerminationFailed | s.AgentLeft | s.ErrorReported
    return [type(word).__name__ for word in ear.words if isinstance(word, kinds)]


async def test_an_async_agent_saves_on_its_loop_and_is_cancelled(ear: Ear) -> None:
    """The block swallows nothing: the cancellation goes on."""
    seen: list[object] = []

    async def save(asked: Stop) -> str:
        seen.extend([asked.reason, asked.by, asked.save_for, asyncio.get_running_loop()])
        return "cp-9"

    async def work() -> None:
        async with Sender("a", ear.url, on_stop=save):
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await ear.auntil(lambda: ear.beats)
    await asyncio.to_thread(ear.order, stop())
    with pytest.raises(asyncio.CancelledError, match="stopped: looping"):
        await asyncio.wait_for(task, 10)
    await ear.auntil_word(s.AgentLeft)
    assert seen == ["looping", "kim", 10.0, asyncio.get_running_loop()]
    assert _endings(ear) == ["CheckpointSaved", "TerminationDone", "AgentLeft"]
    done = ear.of(s.TerminationDone)[0]
    assert (done.order_id, done.checkpoint_id) == ("1-5", "cp-9")
    assert ear.of(s.AgentLeft)[0].reason == "stopped: looping"


def test_who_is_to_end_for_its_silence_and_reads_that_refuses(ear: Ear) -> None:
    """It lives, and says so at once: whatever the hub does next, it has heard of it."""
    for_silence = Terminate(time.time(), "1-4", 1, "a", None, "Nothing heard", 10.0, (), 1, on_silence=True)
    with Sender("a", ear.url, interval=60.0) as life:
        ear.until(lambda: ear.beats)
        ear.order(for_silence)
        ear.until_word(s.PongReceived)
        (refused,) = ear.of(s.TerminationFailed)
        assert (refused.order_id, refused.reason[:8]) == ("1-4", "it lives")
        assert not life.stopping


async def test_stopping_can_be_awaited(ear: Ear) -> None:
    async def listen(life: Sender) -> Stop:
        return await life.stopping

    async with Sender("a", ear.url) as life:
        listeners = [asyncio.create_task(listen(life)) for _ in range(2)]
        await ear.auntil(lambda: ear.beats)
        listeners.pop().cancel()  # who stops waiting does not take the word from the others
        assert not life.stopping
        ordering = asyncio.create_task(asyncio.to_thread(ear.order, stop()))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(60)
        await ordering
        assert (await listeners[0]).reason == "looping"
        assert life.stopping.is_set()
        assert life.stopping.wait(0)


def test_a_thread_is_told_and_ends_by_itself(ear: Ear) -> None:
    ended = threading.Event()

    def work() -> None:
        with Sender("a", ear.url, on_stop=lambda _: "cp-1") as life:
            life.stopping.wait(10)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    ear.until(lambda: ear.beats)
    ear.order(stop())
    assert ended.wait(10)
    thread.join()
    ear.until_word(s.AgentLeft)
    assert ear.of(s.TerminationDone)[0].checkpoint_id == "cp-1"


def test_an_agent_does_not_end_under_its_own_save_hook(ear: Ear) -> None:
    """Who leaves its block at the first word still waits for what is being saved."""
    steps: list[str] = []

    def save(_: Stop) -> str:
        time.sleep(0.3)
        steps.append("saved")
        return "cp-slow"

    def work() -> None:
        with Sender("a", ear.url, on_stop=save) as life:
            life.stopping.wait(10)
        steps.append("ended")

    thread = threading.Thread(target=work)
    thread.start()
    ear.until(lambda: ear.beats)
    ear.order(stop())
    thread.join(10)
    assert steps == ["saved", "ended"]
    ear.until_word(s.AgentLeft)
    assert ear.of(s.TerminationDone)[0].checkpoint_id == "cp-slow"


def test_a_save_hook_that_closes_its_own_sender_does_not_wait_for_itself(ear: Ear) -> None:
    lives: list[Sender] = []
    thread = threading.Thread(
        target=lambda: lives.append(Sender("a", ear.url, on_stop=lambda _: lives[0].close()).start())
    )
    thread.start()
    thread.join()
    ear.until(lambda: ear.beats)
    ear.order(stop(save_for=30))
    ear.until_word(s.AgentLeft, within=10)
    assert len(ear.of(s.TerminationDone)) == 1


def test_a_save_hook_that_raises_or_takes_too_long_does_not_keep_the_agent(ear: Ear) -> None:
    def fail(_: Stop) -> None:
        raise RuntimeError("disk full")

    release = threading.Event()

    def hang(_: Stop) -> None:
        release.wait(30)

    def work(name: str, hook: object) -> None:
        with Sender(name, ear.url, on_stop=hook) as life:  # type: ignore[arg-type]
            life.stopping.wait(10)

    threads = [threading.Thread(target=work, args=pair) for pair in (("a", fail), ("b", hang))]
    for thread in threads:
        thread.start()
    ear.until(lambda: {beat.agent_id for beat in ear.beats} == {"a", "b"})
    ear.order(stop("1-1", agent="a"))
    ear.order(stop("1-2", save_for=0.2, agent="b"))
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    release.set()
    ear.until(lambda: len(ear.of(s.AgentLeft)) == 2)
    assert {(done.order_id, done.checkpoint_id) for done in ear.of(s.TerminationDone)} == {
        ("1-1", None),
        ("1-2", None),
    }


def test_an_agent_that_goes_on_is_not_said_to_be_stopped(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen loop cannot be cancelled. If we said it was stopped, two lives would run at once."""
    monkeypatch.setattr("lifesigns.agent.sender.order_handler.END_FOR", 0.3)

    stopped_too_soon: list[s.TerminationDone] = []

    def work() -> None:
        with Sender("a", ear.url):
            ear.until_word(s.TerminationFailed)
            stopped_too_soon.extend(ear.of(s.TerminationDone))

    thread = threading.Thread(target=work)
    thread.start()
    ear.until(lambda: ear.beats)
    ear.order(stop())
    thread.join(10)
    assert not thread.is_alive()
    assert stopped_too_soon == []
    assert "still runs" in ear.of(s.TerminationFailed)[0].reason
    assert stopping.END_FOR > 1


async def test_a_frozen_loop_is_not_said_to_be_stopped(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifesigns.agent.sender.order_handler.END_FOR", 0.2)

    async def freeze() -> None:
        async with Sender("a", ear.url):
            ear.until(lambda: ear.beats)  # blocks this loop, as a freeze would
            ear.order(stop())
            ear.until_word(s.TerminationFailed)
            assert not ear.of(s.TerminationDone)
            await asyncio.sleep(60)

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(freeze())
    await ear.auntil_word(s.TerminationDone)  # now it is true


def test_who_was_replaced_stops_without_a_report_and_only_the_old_life_does(ear: Ear) -> None:
    """`replaced` names the life that took our place: for that one it must be no order at all."""
    lives: dict[str, Sender] = {}

    def work(incarnation: str) -> None:
        with Sender("a", ear.url, incarnation=incarnation) as life:
            lives[incarnation] = life
            life.stopping.wait(10 if incarnation == "old" else 0.5)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("old", "new")]
    for thread in threads:
        thread.start()
    ear.until(lambda: {beat.incarnation for beat in ear.beats} == {"old", "new"})
    ear.order(StopStranger(time.time(), "1-8", 1, "a", "new", "old was replaced", "old"))
    for thread in threads:
        thread.join(10)
    assert lives["old"].stopping.is_set()
    assert not lives["new"].stopping.is_set()
    ear.until(lambda: len(ear.of(s.AgentLeft)) == 2)
    assert not ear.of(s.TerminationDone)
    assert not ear.of(s.TerminationFailed)


def test_a_stop_is_carried_out_once(ear: Ear) -> None:
    saves: list[str] = []

    def work() -> None:
        with Sender("a", ear.url, on_stop=lambda asked: saves.append(asked.order_id)) as life:
            life.stopping.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    ear.until(lambda: ear.beats)
    ear.order(stop("1-1"))
    ear.order(stop("1-1"))
    ear.order(stop("1-2"))
    thread.join(10)
    assert saves == ["1-1"]


def test_a_program_is_ended_by_the_signal_it_would_be_ended_by(hub: HttpHub) -> None:
    """Sync in the main thread: the save hook runs, `stopped` and `left` arrive, then SIGTERM does what it does."""
    program = textwrap.dedent(
        f"""
        import time
        from lifesigns.assembly.senders import Sender
        with Sender("a", {hub.url!r}, on_stop=lambda stop: "cp-7"):
            time.sleep(60)
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program])
    try:
        hub.until(lambda: hub.beats)
        hub.offer(stop())
        assert child.wait(15) == -15
    finally:
        child.kill()
        child.wait()
    hub.until(lambda: hub.of(s.AgentLeft))
    assert hub.of(s.TerminationDone)[0].checkpoint_id == "cp-7"
    assert hub.acks == ["1-5"]
