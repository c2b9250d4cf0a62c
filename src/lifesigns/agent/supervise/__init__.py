"""Supervise: watches any program without a change to it, and restarts it if you like. `lifesigns run` is the way in.

One thread, one loop, in this order of reading:

    settings.py     what the user wants
    supervisor.py   the loop: one life after another, until no more is wanted
    life.py         one life: a child, what connects it to us, what we saw of it
    child.py        the process, its session and its end         guardian.py   the child ends with us, even by kill -9
    streams.py      pipes and ptys                               flows.py      bytes, unchanged and none lost
    terminal.py     the terminal we run in                       wakeup.py     signals and other threads
    facts.py        cpu, memory, state of the process tree       tail.py       its last lines
    watch.py        who judges: an engine in this process        remote.py     or a hub, over the relay
    stopping.py restarts.py interrupts.py                        decisions about it: pure, the caller passes the time
    reading.py prompts.py                                        whether it asks its user something
    orders.py nudging.py                                         the orders of the watch
    status_messages.py exit_report.py status_printer.py          our own lines, between the child's

The laws: bytes pass through unchanged and none is lost. Whatever ends us ends the child and its group. We never write
into the middle of a child's line. Nothing here blocks, except the one wait of the loop.
"""
