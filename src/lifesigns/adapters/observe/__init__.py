"""Observability: sends the hub's spans to OpenTelemetry, and serves its health by gRPC.

Neither knows the hub: they get stored events, and a protocol to query.
"""
