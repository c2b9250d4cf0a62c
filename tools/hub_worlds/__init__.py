"""Hub worlds: several hubs on one store in virtual time, and the laws that must hold whatever happens to them.

The hubs are the real ones (`hub/service.py` with its lease, commits, handover and second opinion), each on an event loop of its
own, which stands still when its machine is frozen. Store, bus and links are simulated, so that every answer can be slow, late or
lost. A seed gives the same world again, event for event.

    world.py    time, and everything in it      machine.py    a machine: its loop, its clock, its freezes
    network.py  who reaches whom                store.py      the store, as seen over a link
    bus.py      the bus, a server per zone      hub_process.py  what `lifesigns serve` does, without sockets
    agents.py   agents with a ledger            people.py     who nudges them
    nemesis.py  what goes wrong                 laws.py       what must hold
"""
