"""Whoever verifies, the same signatures are good: those of the key's owner, over that text, in their one form."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.adapters.signing import ed25519, verifying
from lifesigns.adapters.signing.agent_key import signer_of
from lifesigns.ports.signer import Verifies

SIGNER = signer_of("lsk_" + "07" * 32)
TEXT = b"signed ...\n{}"
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493

both = pytest.mark.parametrize(
    "verifies", [ed25519.verifies, verifying.with_sodium()], ids=["openssl", "sodium"]
)


@both
def test_what_the_owner_signed_is_good_and_nothing_else(verifies: Verifies) -> None:
    signature = SIGNER.sign(TEXT)
    assert verifies(SIGNER.public, TEXT, signature)
    assert not verifies(SIGNER.public, TEXT + b" ", signature)
    assert not verifies(SIGNER.public, b"", signature)
    assert not verifies(signer_of("lsk_" + "08" * 32).public, TEXT, signature)
    for short in (b"", signature[:63], signature + b"\0"):
        assert not verifies(SIGNER.public, TEXT, short)
    for wrong in (b"", SIGNER.public[:31], SIGNER.public + b"\0"):
        assert not verifies(wrong, TEXT, signature)


@both
@given(bit=st.integers(0, 511))
def test_no_bit_of_a_signature_can_be_changed(verifies: Verifies, bit: int) -> None:
    changed = bytearray(SIGNER.sign(TEXT))
    changed[bit // 8] ^= 1 << bit % 8
    assert not verifies(SIGNER.public, TEXT, bytes(changed))


@both
def test_a_signature_has_one_form_only(verifies: Verifies) -> None:
    """The same with the group's order added is the same number, and no signature."""
    signature = SIGNER.sign(TEXT)
    other = (int.from_bytes(signature[32:], "little") + GROUP_ORDER).to_bytes(32, "little")
    assert not verifies(SIGNER.public, TEXT, signature[:32] + other)


@both
@pytest.mark.parametrize("public", sorted(ed25519.SMALL_ORDER), ids=lambda public: public.hex()[:4])
@pytest.mark.parametrize("sign", [0, 0x80])
def test_a_key_that_makes_any_signature_good_is_nobodys(verifies: Verifies, public: bytes, sign: int) -> None:
    key = public[:31] + bytes((public[31] | sign,))
    for point in ed25519.SMALL_ORDER:
        for n in range(8):
            assert not verifies(key, TEXT + bytes((n,)), point + bytes(32))


def test_the_faster_one_is_taken_if_it_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verifying.fastest() is not ed25519.verifies
    monkeypatch.setitem(sys.modules, "nacl.bindings", None)
    assert verifying.fastest() is ed25519.verifies
