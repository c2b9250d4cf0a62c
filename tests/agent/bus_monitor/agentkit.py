"""What a Go agentkit sender publishes, byte for byte, as its sources say: `encoding/json` of

    {"agent_id","timestamp" (RFC 3339, nanoseconds),"status","load","metadata"?: {str: str}}

on `heartbeat.<agent_id>`: fields in this order, no spaces, `metadata` left out if it is empty, keys of a map sorted,
a whole float without a fraction, and a time without trailing zeros.
"""

from __future__ import annotations

IDLE = b'{"agent_id":"agent-abc123","timestamp":"2026-11-15T18:00:00Z","status":"idle","load":0}'
BUSY = b'{"agent_id":"agent-abc123","timestamp":"2026-11-15T18:00:05.12345678Z","status":"busy","load":0.75}'
FULL = b'{"agent_id":"agent-full","timestamp":"2026-11-15T19:00:05.123456789+01:00","status":"busy","load":1}'
SPENDS = (
    b'{"agent_id":"agent-abc123","timestamp":"2026-11-15T18:00:10.000000001Z","status":"busy","load":0.5,'
    b'"metadata":{"avg_latency_ms":"812","cache_creation_tokens":"0","cache_read_tokens":"4096","llm_calls":"7",'
    b'"subagents":"2","sup_approved":"3","sup_denied":"1","tokens_in":"1200","tokens_out":"340"}}'
)
ESCAPED = (
    b'{"agent_id":"agent-esc","timestamp":"2026-11-15T18:00:00Z","status":"\\u003cidle\\u003e","load":0.1,'
    b'"metadata":{"note":"a \\u0026 b"}}'
)

GO_FIELDS: dict[str, tuple[type, ...]] = {
    "agent_id": (str,),
    "timestamp": (str,),
    "status": (str,),
    "load": (int, float),
    "metadata": (dict,),
}
"""The struct that a Go monitor unmarshals into: a field of another type is an error there, an unknown one is skipped."""
