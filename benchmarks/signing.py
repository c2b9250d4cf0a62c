"""What a signature costs: at the sender, who signs a beat, and at the hub, which opens it, a beat alone or many in one message. In CPU
time, without what an unsigned beat costs too; beside it what the bare library takes, and OpenSSL, which verifies where libsodium is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from lifesigns.adapters.signing import ed25519
from lifesigns.adapters.signing.agent_key import new_key, signer_of
from lifesigns.adapters.signing.verifying import fastest
from lifesigns.hub.forgeries import Forgeries
from lifesigns.hub.principals import Patterns
from lifesigns.hub.signatures import Signatures
from lifesigns.ports.signer import Verifies
from lifesigns.wire.signed import Seal, Signed, opened

ROUNDS = 30
EACH = 200
BEAT = (
    b'{"agent_id":"coder-7","timestamp":"2026-11-15T18:00:00.123Z","seq":42,"incarnation":"01JD0F8Q3V9Z8M2K7T5N4R6W1X",'
    b'"status":"busy","load":0.4,"task_id":"t-19","host":"ws-1","pid":4711}'
)


BATCH = 100
"""Beats in one message: a relay sends what all agents of its process have to say."""


def cost_us(_: int = 0) -> dict[str, float]:
    """Microseconds: to sign, to open, and of these the library's; and for each beat of a batch."""
    signer, verifies = signer_of(new_key()), fastest()
    seal, batch = Seal(signer), b"[" + b",".join([BEAT] * BATCH) + b"]"
    hub = Signatures(_Book(signer.public), Forgeries(), verifies)
    raw, batches = _stream(seal, BEAT), _stream(seal, batch)
    # Each of them another one, as at a hub: the same one again would be guessed right by the processor, and look faster.
    parts = [opened(one) for one in _stream(seal, BEAT)]
    bare, slow = iter(parts), iter(parts)
    return {
        "sign": _best(lambda: seal.signed(BEAT)),
        "sign_bare": _best(lambda: signer.sign(BEAT)),
        "open": _best(lambda: hub.opened(next(raw), 0.0, "here")),
        "open_bare": _best(lambda: _verify(verifies, signer.public, next(bare))),
        "open_openssl": _best(lambda: _verify(ed25519.verifies, signer.public, next(slow))),
        "batch_sign": _best(lambda: seal.signed(batch)) / BATCH,
        "batch_open": _best(lambda: hub.opened(next(batches), 0.0, "here")) / BATCH,
    }


def _stream(seal: Seal, message: bytes) -> Iterator[bytes]:
    return iter([seal.signed(message) for _ in range(ROUNDS * EACH)])


def _verify(verifies: Verifies, public: bytes, one: Signed) -> None:
    assert verifies(public, one.text, one.signature)


class _Book:
    def __init__(self, public: bytes) -> None:
        self._key = public, Patterns.of("coder-7")

    def key(self, key_id: str, now: float) -> tuple[bytes, Patterns]:
        return self._key


def _best(do: Callable[[], object]) -> float:
    """Of the fastest round: other load makes a round slower, and nothing makes it faster."""
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(EACH):
            do()
        took.append((time.process_time() - began) / EACH)
    return min(took) * 1e6
