"""Buses: memory, NATS, Redis. All pass one contract suite, so that a user may exchange them.

    subjects.py     subjects and patterns, and which match
    delivery.py     one subscription: a bounded queue between the bus and the subscriber
    memory.py       MemoryBus: all parties in this process
    server_bus.py   a bus with a server: one connection at a time, reconnected when it is lost
    nats.py         NatsBus, and nats_connection.py: one connection to a NATS server
    redis.py        RedisBus, and redis_connection.py: one pair of connections to a Redis or Valkey server

The modules `*_connection.py` load the driver; the others load nothing outside the standard library.
"""
