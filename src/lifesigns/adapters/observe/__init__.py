"""How others see the hub: OpenTelemetry gets its spans, gRPC asks after its health.

None of them knows the hub: they are given kept events, and questions they may ask.
"""
