"""The wire: beats, signals and orders as bytes, JSON or MessagePack.

Reading raises `WireError`, which names the field, and nothing else, however hostile the bytes. `limits.py` has all
limits.
"""

from lifesigns.wire.batches import Batch, Decoding, Rejected, pack, write_each
from lifesigns.wire.beats import (
    TOGETHER_MAX,
    Together,
    WireBeat,
    WireMetrics,
    decode_beat,
    decode_beats,
    decode_single,
    decode_together,
    decoding_beats,
    encode_beat,
    fits_together,
    plain,
)
from lifesigns.wire.signals_and_orders import (
    decode_order,
    decode_signal,
    decode_signals,
    decoding_signals,
    encode_order,
    encode_signal,
)

__all__ = [
    "TOGETHER_MAX",
    "Batch",
    "Decoding",
    "Rejected",
    "Together",
    "WireBeat",
    "WireMetrics",
    "decode_beat",
    "decode_beats",
    "decode_order",
    "decode_signal",
    "decode_signals",
    "decode_single",
    "decode_together",
    "decoding_beats",
    "decoding_signals",
    "encode_beat",
    "encode_order",
    "encode_signal",
    "fits_together",
    "pack",
    "plain",
    "write_each",
]
