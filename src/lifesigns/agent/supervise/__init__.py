"""Supervise: any program, watched, and restarted if you like, with no change to it. `lifesigns run` is this room's door.

One thread, one loop, in this order of reading:

    settings.py     what the user wants
    supervisor.py   the loop: lives follow each other until nobody wants another
    life.py         one life: a child, what connects it to us, what we saw of it
    child.py        the process, its session and its end         guardian.py   it ends with us, even by kill -9
    streams.py      pipes and ptys                               flows.py      bytes, unchanged and none lost
    terminal.py     the terminal we run in                       wakeup.py     signals and other threads
    facts.py        cpu, memory, state of the process tree       tail.py       its last lines
    watch.py        who judges: an engine in this process        remote.py     or a hub, over the relay
    stopping.py restarts.py interrupts.py                        what is decided about it: pure, they are told the time
    reading.py prompts.py                                        whether it asks its user something
    orders.py nudging.py                                         what the watch wants done
    status_messages.py exit_report.py status_printer.py          our own words, between its lines

The laws: bytes pass through unchanged and none is lost. Whatever ends us ends the child and its group. Nothing of
ours stands in the middle of a line of the child's. Nothing here blocks, except the one wait of the loop.
"""
