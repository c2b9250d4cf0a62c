"""Endings: exit, SIGTERM, exceptions, forks. What the hub hears, and that nobody else notices we were there."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lifesigns.assembly.senders import Sender, relay_to
from lifesigns.core import signals as s
from tests.agent.sender.ear import Ear
from tests.agent.sender.http_hub import HttpHub


@contextmanager
def program(text: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A real program with a sender; always reaped."""
    told = {"PATH": os.environ["PATH"], **environment}
    child = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(text)], env=told, stderr=subprocess.PIPE
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def test_a_program_that_just_ends_says_good_bye(hub: HttpHub) -> None:
    """At interpreter exit, without `with` and without `close`."""
    text = """
        from lifesigns.assembly.senders import Sender
        Sender("a").start()
        Sender("b").start()
    """
    with program(text, LIFESIGNS_HUB=hub.url) as child:
        _, complaints = child.communicate(timeout=20)
        assert child.returncode == 0
    assert complaints == b""
    assert {(left.agent_id, left.reason) for left in hub.of(s.AgentLeft)} == {("a", "exit"), ("b", "exit")}


def test_an_exception_that_leaves_the_block_is_a_crash(hub: HttpHub) -> None:
    """Who dies of an error has not done its work: a good-bye would hide that from everybody."""
    text = """
        from lifesigns.assembly.senders import Sender
        with Sender("a"):
            raise KeyError("x")
    """
    with program(text, LIFESIGNS_HUB=hub.url) as child:
        _, complaints = child.communicate(timeout=20)
        assert child.returncode == 1
    assert b"KeyError" in complaints
    (error,), (crash,) = hub.of(s.ErrorReported), hub.of(s.ProcessExited)
    assert (error.message, error.recoverable) == ("KeyError: 'x'", False)
    assert (crash.detail, crash.status) == ("KeyError: 'x'", None)
    assert not hub.of(s.AgentLeft)


def test_an_exception_that_nobody_catches_is_a_crash_of_everybody_in_the_process(hub: HttpHub) -> None:
    text = """
        from lifesigns.assembly.senders import Sender
        Sender("a").start()
        Sender("b").start()
        {}["x"]
    """
    with program(text, LIFESIGNS_HUB=hub.url) as child:
        child.communicate(timeout=20)
        assert child.returncode == 1
    assert {(crash.agent_id, crash.detail) for crash in hub.of(s.ProcessExited)} == {
        ("a", "KeyError: 'x'"),
        ("b", "KeyError: 'x'"),
    }
    assert not hub.of(s.AgentLeft)


@pytest.mark.parametrize(("status", "crashes"), [("", False), ("0", False), ("3", True), ("'no disk'", True)])
def test_sys_exit_is_a_crash_if_its_status_says_so(hub: HttpHub, status: str, crashes: bool) -> None:
    text = f"""
        import sys
        from lifesigns.assembly.senders import Sender
        with Sender("a"):
            sys.exit({status})
    """
    with program(text, LIFESIGNS_HUB=hub.url) as child:
        child.communicate(timeout=20)
    assert bool(hub.of(s.ProcessExited)) is crashes
    assert bool(hub.of(s.AgentLeft)) is not crashes


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_sigterm_says_good_bye_and_ends_the_program_as_it_would(hub: HttpHub, kind: str) -> None:
    text = {
        "sync": """
            import time
            from lifesigns.assembly.senders import Sender
            with Sender("a"):
                time.sleep(60)
        """,
        "async": """
            import asyncio
            from lifesigns.assembly.senders import Sender
            async def main():
                async with Sender("a"):
                    await asyncio.sleep(60)
            asyncio.run(main())
        """,
    }[kind]
    with program(text, LIFESIGNS_HUB=hub.url) as child:
        hub.until(lambda: hub.beats)
        child.send_signal(signal.SIGTERM)
        assert child.wait(15) == -signal.SIGTERM
    hub.until(lambda: hub.of(s.AgentLeft))
    assert hub.of(s.AgentLeft)[0].reason == "SIGTERM"


def test_a_program_with_its_own_handler_keeps_it(hub: HttpHub) -> None:
    text = """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        from lifesigns.assembly.senders import Sender
        with Sender("a"):
            time.sleep(60)
    """
    with program(text, LIFESIGNS_HUB=hub.url) as child:
        hub.until(lambda: hub.beats)
        child.send_signal(signal.SIGTERM)
        assert child.wait(15) == 143
    assert hub.of(s.AgentLeft)[0].reason == "SystemExit: 143"


def test_our_handler_is_gone_with_the_last_sender(ear: Ear) -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with Sender("a", ear.url):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        with Sender("b", ear.url):
            pass
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_sigterm_does_not_wait_for_a_hub_that_is_away() -> None:
    text = """
        import sys, time
        from lifesigns.assembly.senders import Sender
        with Sender("a", "http://127.0.0.1:1", close_for=0.3):
            sys.stderr.write("ready"); sys.stderr.flush()
            time.sleep(60)
    """
    with program(text) as child:
        assert child.stderr is not None
        assert child.stderr.read(5) == b"ready"
        child.send_signal(signal.SIGTERM)
        assert child.wait(5) == -signal.SIGTERM


def test_a_killed_program_says_nothing(hub: HttpHub) -> None:
    text = """
        import time
        from lifesigns.assembly.senders import Sender
        with Sender("a", interval=0.05):
            time.sleep(60)
    """
    with program(text, LIFESIGNS_HUB=hub.url) as child:
        hub.until(lambda: len(hub.beats) > 3)
        child.kill()
        child.wait()
    assert not hub.of(s.AgentLeft)


async def test_a_cancelled_block_is_no_error(ear: Ear) -> None:
    async def work() -> None:
        async with Sender("a", ear.url):
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await ear.auntil(lambda: ear.beats)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await ear.auntil_word(s.AgentLeft)).reason == "CancelledError"
    assert not ear.of(s.ErrorReported)


def test_a_program_that_was_stopped_for_a_while_does_not_call_itself_frozen(hub: HttpHub) -> None:
    """Ctrl-Z, a debugger, a suspended machine: loop and relay stood still together."""
    text = """
        import asyncio
        from lifesigns.assembly.senders import Sender
        async def main():
            async with Sender("a", interval=0.2):
                await asyncio.sleep(60)
        asyncio.run(main())
    """
    with program(text, LIFESIGNS_HUB=hub.url) as child:
        hub.until(lambda: len(hub.beats) >= 3)
        for _ in range(3):
            child.send_signal(signal.SIGSTOP)
            time.sleep(1.5)  # the pause itself
            heard = len(hub.beats)
            child.send_signal(signal.SIGCONT)
            hub.until(lambda heard=heard: len(hub.beats) > heard + 3)  # type: ignore[misc]
    assert max(beat.loop_lag_ms or 0.0 for beat in hub.beats) < 1000


def test_a_program_that_was_stopped_while_it_asked_its_loop_does_not_call_itself_frozen(hub: HttpHub) -> None:
    """The worst moment to stand still: the question is open, and the rest in which we would notice has not begun."""
    text = """
        import asyncio, os, signal
        from lifesigns.agent.probe import LoopProbe
        from lifesigns.assembly.senders import Sender
        ask, asked = LoopProbe.ask, []
        def stand_still_and_ask(probe, now):
            asked.append(now)
            if len(asked) in (2, 4):
                os.kill(os.getpid(), signal.SIGSTOP)
            return ask(probe, now)
        LoopProbe.ask = stand_still_and_ask
        async def main():
            async with Sender("a", interval=0.2):
                await asyncio.sleep(60)
        asyncio.run(main())
    """
    with program(text, LIFESIGNS_HUB=hub.url) as child:
        for _ in range(2):
            os.waitpid(child.pid, os.WUNTRACED)  # until it stands still
            time.sleep(1.2)  # the pause itself
            heard = len(hub.beats)
            child.send_signal(signal.SIGCONT)
            hub.until(lambda heard=heard: len(hub.beats) > heard)  # type: ignore[misc]
        hub.until(lambda: len(hub.beats) > 6)
    assert max(beat.loop_lag_ms or 0.0 for beat in hub.beats) < 1000


# --- fork -----------------------------------------------------------------------------------------------------------


def test_after_a_fork_the_child_is_mute_and_the_parent_goes_on(hub: HttpHub) -> None:
    with Sender("parent", hub.url, interval=0.1) as life:
        hub.until(lambda: hub.beats)
        pid = os.fork()
        if pid == 0:
            _end_child(_play_the_child, life)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        heard = len(hub.beats)
        hub.until(lambda: len(hub.beats) > heard + 2)
        life.progress("the parent speaks")
        hub.until(lambda: hub.of(s.ProgressMade))
        assert life.stats.failed == 0
    assert [word.note for word in hub.of(s.ProgressMade)] == ["the parent speaks"]
    assert len([left for left in hub.of(s.AgentLeft) if left.agent_id == "parent"]) == 1
    assert {beat.pid for beat in hub.beats if beat.agent_id == "parent"} == {os.getpid()}


def _play_the_child(life: Sender) -> None:
    """Everything is harmless here, and takes no time."""
    begun = time.monotonic()
    assert not [thread for thread in threading.enumerate() if thread.name == "lifesigns-relay"]
    life.status("x")
    life.progress("the child speaks")
    with life.tool("t"), life.task("t-1"):
        pass
    assert life.next_nudge(5) is None
    life.close()
    assert time.monotonic() - begun < 2


def _end_child(work: object, *args: object) -> None:
    """A forked child of pytest must not return into pytest."""
    try:
        work(*args)  # type: ignore[operator]
    except BaseException as error:  # noqa: BLE001 -- told by the exit status
        os.write(2, repr(error).encode())
        os._exit(1)
    os._exit(0)


def test_a_forked_child_may_have_senders_of_its_own(hub: HttpHub) -> None:
    def own(url: str, prepared: Sender) -> None:
        prepared.start().close()
        with Sender("child", url, interval=0.1) as child:
            child.progress("from the child")
            until = time.monotonic() + 10
            while child.stats.sent < 4 and time.monotonic() < until:
                time.sleep(0.01)
            assert child.stats.sent >= 4

    with Sender("parent", hub.url, interval=0.1) as life:
        hub.until(lambda: hub.beats)
        prepared = Sender("prepared", hub.url)  # made before the fork, started after it
        pid = os.fork()
        if pid == 0:
            _end_child(own, hub.url, prepared)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert life.stats.failed == 0
    assert {word.note for word in hub.of(s.ProgressMade)} == {"from the child"}
    assert {left.agent_id for left in hub.of(s.AgentLeft)} == {"child", "prepared", "parent"}
    assert {beat.pid for beat in hub.beats if beat.agent_id != "parent"} == {pid}


def _be_a_worker(url: str, name: str) -> None:
    with Sender(name, url) as life:
        life.progress("worked")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_have_senders_of_their_own(hub: HttpHub, method: str) -> None:
    with Sender("parent", hub.url, interval=0.1) as life:
        hub.until(lambda: hub.beats)
        context = multiprocessing.get_context(method)
        workers = [
            context.Process(target=_be_a_worker, args=(hub.url, f"worker-{n}"))  # type: ignore[attr-defined]
            for n in range(2)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(30)
            assert worker.exitcode == 0
        assert life.stats.failed == 0
    assert {word.agent_id for word in hub.of(s.ProgressMade)} == {"worker-0", "worker-1"}


def test_a_terminated_fork_ends_by_the_signal_and_says_nothing_for_the_parent(hub: HttpHub) -> None:
    """Our handler is the parent's: the child ends at once, as it would without us."""
    ready, tell = os.pipe()
    with Sender("parent", hub.url):
        hub.until(lambda: hub.beats)
        pid = os.fork()
        if pid == 0:
            _end_child(_wait_for_the_end, tell)
        assert os.read(ready, 1) == b"x"
        os.kill(pid, signal.SIGTERM)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
        assert not hub.of(s.AgentLeft)
    os.close(ready)
    os.close(tell)


def _wait_for_the_end(tell: int) -> None:
    os.write(tell, b"x")
    time.sleep(60)


def test_one_relay_per_hub_and_token() -> None:
    assert relay_to("memory://x") is relay_to("memory://x")
    assert relay_to("memory://x") is not relay_to("memory://y")
    assert relay_to("http://h", "a") is not relay_to("http://h", "b")
    assert not relay_to("memory://x").alive
