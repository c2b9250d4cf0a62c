"""Buses: memory, NATS, Redis. They pass one contract suite, so that a user may change one for another.

    subjects.py     what a subject and a pattern are, and which matches which
    delivery.py     one subscription: a bounded queue between the bus and who hears
    memory.py       MemoryBus: everybody in this process
    server_bus.py   a bus by way of a server: one line at a time, looked for again whenever it is lost
    nats.py         NatsBus, and nats_line.py: one connection to a NATS server
    redis.py        RedisBus, and redis_line.py: one pair of connections to a Redis or Valkey server

The modules `*_line.py` load the driver; the others load nothing outside the standard library.
"""
