"""A process full of senders, which measures how long their calls take. Started by `test_outage.py`.

    python -m tests.agent.sender.fleet URL NAME COUNT

Every call is made twice: on a sender, and on one that was never started, which does all the same but hands nothing to
a relay. That is the control: on a busy machine the scheduler and the garbage collector interrupt both alike, and only
what the calls show beyond the control is held up by the sending.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from lifesigns.assembly.senders import Sender

LONG = 0.001


def main(url: str, name: str, size: int) -> None:
    lives = [Sender(f"{name}-{number}", url, close_for=5).start() for number in range(size)]
    sys.stdout.write("started\n")
    sys.stdout.flush()
    silent = Sender(name, url)
    calls: list[float] = []
    control: list[float] = []
    done = _stdin_closes()
    number = 0
    while not done():
        life = lives[number % size]
        number += 1
        for call, same in zip(_calls(life, number), _calls(silent, number), strict=True):
            if number % 2:  # Who comes first after the sleep is as likely the one as the other.
                control.append(_timed(same))
                calls.append(_timed(call))
            else:
                calls.append(_timed(call))
                control.append(_timed(same))
        time.sleep(0.01)
    for life in lives:
        life.leave("done")
    for life in lives:
        life.wait_until_gone()
    json.dump(
        {
            "calls": len(calls),
            "long_calls": sum(took > LONG for took in calls),
            "long_control": sum(took > LONG for took in control),
            "longest_call": max(calls),
            "longest_control": max(control),
            "dropped": sum(life.stats.dropped for life in lives),
        },
        sys.stdout,
    )


def _calls(life: Sender, number: int) -> list[Callable[[], object]]:
    def tool() -> None:
        with life.tool("grep", {"pattern": number}) as call:
            call.result("nothing")

    return [lambda: life.status("busy"), lambda: life.load(0.5), lambda: life.progress("on"), tool]


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _stdin_closes() -> Callable[[], bool]:
    import select

    return lambda: bool(select.select([sys.stdin], [], [], 0)[0])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
