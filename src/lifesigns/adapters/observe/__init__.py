"""How others see the hub: Prometheus scrapes it, OpenTelemetry gets its spans, gRPC asks after its health.

None of them knows the hub: they are given numbers (`vitals.py`), kept events, and questions they may ask.
"""
