"""What a sender costs the agent it lives in: CPU, memory, and the time of a call. Against a hub over HTTP, in a process
of its own; the agent is an asyncio program that otherwise sleeps, so all it uses is ours.

CPU is measured over 20 s at a beat every 0.5 s and scaled to one every 5 s: what is paid per beat counts a tenth, what
is paid per second (nothing, but the long poll every 30 s) is overstated tenfold. Beside it: a thread that posts the same
beat with urllib, the json module and psutil, as one would write it in an afternoon.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import time
import timeit
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FOR = 20.0
EVERY = 0.5
SCALED_TO = 5.0
FURTHER = 100


def cpu_percent(_: int = 0) -> dict[str, float]:
    """Percent of one core at a beat every 5 s: of one sender, of a hundred in one process, and of the plain thread."""
    return {
        "one": _scaled(_beat_for(1)),
        "hundred": _scaled(_beat_for(FURTHER)),
        "plain": _scaled(_post_for()),
    }


def memory_mb(_: int = 0) -> dict[str, float]:
    """What the first sender adds to a process that has imported it, and what each further one adds."""
    from lifesigns.assembly.senders import Sender

    async def grow(url: str) -> dict[str, float]:
        await asyncio.sleep(0.2)
        before = _resident_mb()
        async with Sender("first", url, interval=0.2) as life:
            await _sent(life, 10)
            first = _resident_mb()
            more = [Sender(f"further-{number}", url, interval=0.2).start() for number in range(FURTHER)]
            await _sent(more[-1], 5)
            each = (_resident_mb() - first) / FURTHER
            for one in more:
                one.leave("done")
        return {"first": first - before, "each": each}

    with _hub() as url:
        return asyncio.run(grow(url))


def call_ns(_: int = 0) -> dict[str, float]:
    """Nanoseconds of CPU an agent's thread spends in a call; what the relay does with it meanwhile is in `cpu_percent`."""
    from lifesigns.assembly.senders import Sender

    def tool() -> None:
        with life.tool("grep", {"pattern": "x"}) as call:
            call.result("nothing found")

    with _hub() as url, Sender("caller", url) as life:
        return {
            "status": _ns(lambda: life.status("busy"), 200_000),
            "progress": _ns(lambda: life.progress("12/40 files"), 20_000),
            "tool": _ns(tool, 10_000),
        }


# --- the agents ---------------------------------------------------------------------------------------------------


def _beat_for(senders: int) -> float:
    """Seconds of CPU this process used while so many senders beat."""
    from lifesigns.assembly.senders import Sender

    async def agent(url: str) -> float:
        lives = [Sender(f"a-{number}", url, interval=EVERY).start() for number in range(senders)]
        await _sent(lives[-1], 2)
        began = time.process_time()
        await asyncio.sleep(FOR)
        used = time.process_time() - began
        for life in lives:
            life.leave("done")
        await asyncio.to_thread(lives[-1].wait_until_gone)
        return used

    with _hub() as url:
        return asyncio.run(agent(url))


def _post_for() -> float:
    """The same by a plain thread."""
    import psutil

    process, done = psutil.Process(), threading.Event()

    def post(url: str) -> None:
        seq = 0
        while not done.wait(EVERY):
            seq += 1
            beat = {
                "agent_id": "plain",
                "seq": seq,
                "timestamp": time.time(),
                "metrics": {
                    "cpu_percent": process.cpu_percent(),
                    "memory_mb": process.memory_info().rss / 2**20,
                },
            }
            request = urllib.request.Request(f"{url}/api/v1/beats", json.dumps(beat).encode())
            urllib.request.urlopen(request, timeout=5).read()

    with _hub() as url:
        thread = threading.Thread(target=post, args=(url,))
        thread.start()
        time.sleep(2 * EVERY)
        began = time.process_time()
        time.sleep(FOR)
        used = time.process_time() - began
        done.set()
        thread.join()
        return used


def _scaled(used: float) -> float:
    return 100.0 * used / FOR * EVERY / SCALED_TO


async def _sent(life: object, count: int) -> None:
    async with asyncio.timeout(30):
        while life.stats.sent < count:  # type: ignore[attr-defined]  # noqa: ASYNC110 -- another thread counts
            await asyncio.sleep(0.05)


def _resident_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _ns(call: Callable[[], object], number: int) -> float:
    """The median of nine rounds."""
    rounds = sorted(timeit.repeat(call, number=number // 9, repeat=9, timer=time.thread_time))
    return rounds[4] / (number // 9) * 1e9


# --- the hub ------------------------------------------------------------------------------------------------------


@contextmanager
def _hub() -> Iterator[str]:
    """A hub that takes everything and orders nothing."""
    command = [sys.executable, "-m", "benchmarks.sender"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


async def _serve() -> None:
    accepted = b'{"accepted":1,"rejected":[],"orders":{}}'

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                length = 0
                while (header := await reader.readline()).strip():
                    if header.lower().startswith(b"content-length:"):
                        length = int(header.split(b":")[1])
                await reader.readexactly(length)
                if line.startswith(b"GET"):
                    await asyncio.sleep(30)
                writer.write(
                    b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n" % len(accepted) + accepted
                )
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
