"""Requests between hubs on one store, signed with the MACs that only these can make.

    asks      over session, nonce, path and body
    answers   over the nonce of the question and the body

A replayed request is refused without a clock, because no two machines' clocks are compared here: the hub that is asked has
a random session, remembers the nonces it has seen in it, and begins a new session before it has seen too many. A hub that
asks with another session is told the present one, and asks again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

from lifesigns.hub.token_macs import HubMacs

SESSION: Final = "lifesigns-hub-session"
NONCE: Final = "lifesigns-hub-nonce"
SIGNATURE: Final = "lifesigns-hub-signature"

NONCES_MAX: Final = 10_000
NONCE_MAX: Final = 64
RANDOM_BYTES: Final = 16


def request_headers(macs: HubMacs, session: str, path: str, body: bytes) -> dict[str, str]:
    """The headers of a request, with a nonce of its own."""
    nonce = secrets.token_hex(RANDOM_BYTES)
    return {SESSION: session, NONCE: nonce, SIGNATURE: macs.mac(*_asks(session, nonce, path, body)).decode()}


def answer_headers(macs: HubMacs, nonce: str, body: bytes) -> dict[str, str]:
    """The header of an answer to the request with this nonce."""
    return {SIGNATURE: macs.mac("answers", nonce.encode(), body).decode()}


def signed_answer(macs: HubMacs, headers: Mapping[str, str], nonce: str, body: bytes) -> bool:
    """Whether a hub on this store answered this very request so."""
    return macs.is_right(headers.get(SIGNATURE, "").encode(), "answers", nonce.encode(), body)


def _asks(session: str, nonce: str, path: str, body: bytes) -> tuple[str, bytes, bytes, bytes, bytes]:
    return "asks", session.encode(), nonce.encode(), path.encode(), body


class RequestGuard:
    """Tells which requests are from a hub on this store, and new."""

    def __init__(self, macs: HubMacs) -> None:
        self._macs = macs
        self._seen: set[str] = set()
        self.session = secrets.token_hex(RANDOM_BYTES)

    def admits(self, headers: Mapping[str, str], path: str, body: bytes) -> bool:
        """Whether to answer this request. Only one that is properly signed is remembered."""
        nonce = headers.get(NONCE, "")
        if headers.get(SESSION) != self.session or not 0 < len(nonce) <= NONCE_MAX or nonce in self._seen:
            return False
        signature = headers.get(SIGNATURE, "").encode()
        if not self._macs.is_right(signature, *_asks(self.session, nonce, path, body)):
            return False
        if len(self._seen) >= NONCES_MAX:
            self._seen.clear()
            self.session = secrets.token_hex(RANDOM_BYTES)
        else:
            self._seen.add(nonce)
        return True
