"""Signatures: whether a message has the required signature, by a key that may speak for its agents, and is no replay.

A signature comes on top of the token or the subject, never instead of it. An attacker can record a signed message; so
each session of a key has rising numbers, and the hub accepts each number once. After a restart of the hub the engine
still knows which beats of each incarnation it has heard.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Protocol

from lifesigns.errors import WireError
from lifesigns.hub.forgeries import Forgeries, Forgery
from lifesigns.hub.principals import Patterns
from lifesigns.ports.signer import Verifies
from lifesigns.wire import signed

SESSIONS_MAX: Final = 256
"""Per key: two for each process that has it. Beyond, the oldest is forgotten, and any session that began before it is
refused."""


class KeyBook(Protocol):
    """Looks up public keys."""

    def key(self, key_id: str, now: float) -> tuple[bytes, Patterns] | None: ...


class _NoKeys:
    def key(self, key_id: str, now: float) -> None:
        return None


NO_KEYS: Final = _NoKeys()


@dataclass(slots=True)
class _Sessions:
    last: OrderedDict[bytes, int] = field(default_factory=OrderedDict)
    """The last number, by session."""
    forgotten: bytes = b""
    """The youngest forgotten session: an unknown session that began before it is too old."""

    def is_new(self, session: bytes, number: int) -> bool:
        last = self.last.get(session)
        if last is None and session <= self.forgotten:
            return False
        if last is not None and number <= last:
            return False
        self.last[session] = number
        self.last.move_to_end(session)
        if len(self.last) > SESSIONS_MAX:
            self.forgotten = max(self.forgotten, self.last.popitem(last=False)[0])
        return True


class Signatures:
    """Opens signed messages. Agents in `must_sign` are accepted only signed; None: all are accepted without."""

    def __init__(
        self,
        keys: KeyBook,
        forged: Forgeries,
        verifies: Verifies | None = None,
        must_sign: Patterns | None = None,
    ) -> None:
        self._keys = keys
        self._forged = forged
        self._verifies = verifies
        self.must_sign = must_sign
        self._sessions: dict[str, _Sessions] = {}

    def opened(self, raw: bytes, now: float, where: str) -> tuple[bytes, Patterns | None]:
        """The message, and the agents its key may speak for; None if it is unsigned. Raises `WireError` for an invalid
        signature, and counts it."""
        if not signed.is_signed(raw):
            return raw, None
        message = signed.opened(raw)
        key = self._keys.key(message.key_id, now)
        if key is None or self._verifies is None:
            raise self._refused(Forgery.SIGNATURE, f"the key {message.key_id} is not known here", now, where)
        public, patterns = key
        if not self._verifies(public, message.text, message.signature):
            raise self._refused(
                Forgery.SIGNATURE, f"it is not signed by the key {message.key_id}", now, where
            )
        sessions = self._sessions.get(message.key_id) or self._sessions.setdefault(
            message.key_id, _Sessions()
        )
        if not sessions.is_new(message.session, message.number):
            detail = f"number {message.number} of session {message.session.decode()} was heard before"
            raise self._refused(Forgery.REPLAY, detail, now, where)
        return message.message, patterns

    def fault(self, agent_id: str, signer: Patterns | None) -> Forgery | None:
        """Why this signer, or an unsigned message, may not speak for that agent; None if it may."""
        if signer is not None:
            return None if signer.match(agent_id) else Forgery.SIGNATURE
        return Forgery.UNSIGNED if self.has_to_sign(agent_id) else None

    def has_to_sign(self, agent_id: str) -> bool:
        """Whether this agent is accepted only signed."""
        return self.must_sign is not None and self.must_sign.match(agent_id)

    def _refused(self, kind: Forgery, detail: str, now: float, where: str) -> WireError:
        self._forged.note(kind, f"{detail}, {where}", now)
        return WireError("signature", detail)
