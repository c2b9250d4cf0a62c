"""OTLP: spans and log records of other people's instrumentation, read as signals.

    protobuf.py, json_form.py    bytes ──► records, whichever form they came in
    identity.py                  whose a record is: attributes ──► agent, task, role
    conventions.py               what it says: a span or an event ──► a finished call
    answers.py                   what an exporter is answered

Everything here is pure, and nothing is installed for it: a reader of protobuf for these few messages is short, and an
exporter that is pointed at a hub just works (docs/decisions/0081).
"""

from lifesigns.wire.otlp.answers import Form, encode_answer
from lifesigns.wire.otlp.calls import Calls, OtlpCall, calls_of, in_order, wanted_by
from lifesigns.wire.otlp.identity import Identities, Identity
from lifesigns.wire.otlp.json_form import read_json
from lifesigns.wire.otlp.protobuf import read_protobuf
from lifesigns.wire.otlp.records import Batch, Kind, Record

__all__ = [
    "Batch",
    "Calls",
    "Form",
    "Identities",
    "Identity",
    "Kind",
    "OtlpCall",
    "Record",
    "calls_of",
    "encode_answer",
    "in_order",
    "read_json",
    "read_protobuf",
    "wanted_by",
]
