"""Signing in: one-time links, and the sessions they open.

A token does not belong into a browser's address bar or its storage. So whoever has one makes a link with it: a code
that works once, for five minutes. Redeeming it gives a session, which is a cookie for as long as somebody looks at the
dashboard every half day, and a week at most.

What is remembered is the digest of a code or of a session, never the thing itself, and everything is bounded. Codes are in
memory; sessions are in a file of the state folder, too: who looks on while the hub is restarted goes on looking. A session
belongs to the token it was made with: it can do what that token can, and ends when the token does.
"""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from lifesigns.files import write_whole

FILE_NAME: Final = "sessions.json"

LINK_FOR: Final = 300.0
SESSION_FOR: Final = 12 * 3600.0
"""Without a look at the dashboard."""
SESSION_MAX_FOR: Final = 7 * 86400.0
"""However often somebody looks; `limits.session_for` says otherwise."""
LINKS_MAX: Final = 200
SESSIONS_MAX: Final = 2000
SECRET_MAX: Final = 128
"""Ours are shorter; what is longer is not even hashed."""
NOTE_EVERY: Final = 600.0
"""That sessions are used is written down so often: after a restart they may end that much too early, of half a day."""

T = TypeVar("T")

log: Final = logging.getLogger("lifesigns.hub")


@dataclass(slots=True)
class _Link:
    """A code that was not redeemed yet."""

    token_id: str
    until: float


class Session(Struct):
    """Somebody who is signed in. `until` moves on with every use, up to `ends_at`."""

    token_id: str
    until: float
    made_at: float
    ends_at: float
    used_at: float
    address: str = ""


class SignIns:
    """Links that were not opened yet, and the sessions of those that were."""

    def __init__(self, session_for: float = SESSION_MAX_FOR) -> None:
        self._session_for = session_for
        """Seconds after which a session ends, however much it is used."""
        self._links: OrderedDict[bytes, _Link] = OrderedDict()
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._file: Path | None = None
        self._note_at = inf

    def keep_in(self, folder: Path, now: float) -> None:
        """Take up the sessions in this folder, and keep them there from now on."""
        self._file = folder / FILE_NAME
        for key, known in _read(self._file):
            known.ends_at = min(known.ends_at, known.made_at + self._session_for)
            known.until = min(known.until, known.ends_at)
            if known.made_at <= now < known.until <= now + SESSION_FOR and len(self._sessions) < SESSIONS_MAX:
                self._sessions[key] = known
        self._note_at = now + NOTE_EVERY

    def link(self, token_id: str, now: float) -> str:
        """A code that opens one session for whoever shows it first."""
        return _add(self._links, LINKS_MAX, _Link(token_id, now + LINK_FOR))

    def maker(self, code: str, now: float) -> str | None:
        """The id of the token that a code was made with; None for one that is unknown, used or too old."""
        known = self._links.get(_digest(code))
        return None if known is None or now >= known.until else known.token_id

    def links_of(self, token_id: str, now: float) -> list[float]:
        """Of each link that was made with this token and not opened yet: for how long it is still good."""
        waits = (link.until - now for link in self._links.values() if link.token_id == token_id)
        return [wait for wait in waits if wait > 0]

    def redeem(
        self, code: str, now: float, address: str = "", sessions_max: int = SESSIONS_MAX
    ) -> tuple[str, str] | None:
        """A new session and the id of its token; None for a code that is unknown, used or too old. If there are too many of
        this token, the one that was not used for longest ends."""
        known = self._links.pop(_digest(code), None)
        if known is None or now >= known.until:
            return None
        same = [key for key, one in self._sessions.items() if one.token_id == known.token_id]
        for key in same[: max(0, len(same) - sessions_max + 1)]:
            del self._sessions[key]
        ends_at = now + self._session_for
        made = Session(known.token_id, min(now + SESSION_FOR, ends_at), now, ends_at, now, address)
        session = _add(self._sessions, SESSIONS_MAX, made)
        self._write()
        return session, known.token_id

    def token_of(self, session: str, now: float) -> str | None:
        """The id of the token a session was made with. Being used keeps it alive, until its end."""
        key = _digest(session)
        known = self._sessions.get(key)
        if known is None:
            return None
        if now >= known.until:
            del self._sessions[key]
            return None
        known.used_at, known.until = now, min(now + SESSION_FOR, known.ends_at)
        self._sessions.move_to_end(key)
        return known.token_id

    def is_open(self, session: str, now: float) -> bool:
        """Whether this session goes on. To ask does not keep it alive."""
        known = self._sessions.get(_digest(session))
        return known is not None and now < known.until

    def sessions(self, now: float) -> dict[str, Session]:
        """Those that are open, by their id."""
        return {_id(key): known for key, known in self._sessions.items() if now < known.until}

    def sign_out(self, session: str) -> None:
        """This session ends."""
        self.end_session(session_id(session))

    def end_session(self, wanted: str) -> None:
        """The session with this id ends."""
        for key in [key for key in self._sessions if _id(key) == wanted]:
            del self._sessions[key]
            self._write()

    def end(self, token_id: str) -> None:
        """Everything that was made with this token ends."""
        before = len(self._sessions)
        _drop(self._links, lambda link: link.token_id == token_id)
        _drop(self._sessions, lambda session: session.token_id == token_id)
        if len(self._sessions) < before:
            self._write()

    def forget_old(self, now: float) -> None:
        """Let go of what nobody came back for, and write down what is used."""
        _drop(self._links, lambda link: now >= link.until)
        _drop(self._sessions, lambda session: now >= session.until)
        if now >= self._note_at:
            self._note_at = now + NOTE_EVERY
            self._write()

    def _write(self) -> None:
        """What cannot be written is lost with this process, and nothing else is."""
        if self._file is None:
            return
        rows = {key.hex(): known for key, known in self._sessions.items()}
        try:
            write_whole(self._file, msgspec.json.encode(rows))
        except OSError as error:
            log.warning("a restart will end all sessions: %s", error, extra={"action": "sessions_not_kept"})


def session_id(session: str) -> str:
    """By which a session is listed and ended: a part of its digest, which lets nobody in."""
    return _id(_digest(session))


def _id(key: bytes) -> str:
    return key.hex()[:16]


def _add(table: OrderedDict[bytes, T], table_max: int, made: T) -> str:
    while len(table) >= table_max:
        table.popitem(last=False)
    secret = secrets.token_urlsafe(32)
    table[_digest(secret)] = made
    return secret


def _drop(table: OrderedDict[bytes, T], is_over: Callable[[T], bool]) -> None:
    for key in [key for key, known in table.items() if is_over(known)]:
        del table[key]


def _digest(secret: str) -> bytes:
    return sha256(secret[:SECRET_MAX].encode("utf-8", "surrogatepass")).digest()


def _read(file: Path) -> list[tuple[bytes, Session]]:
    """The sessions in a file; none, if it is not one of ours: then people open a new link."""
    try:
        rows = msgspec.json.decode(file.read_bytes(), type=dict[str, Session])
        return [(bytes.fromhex(key), known) for key, known in rows.items()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        log.warning("%s is of no use: %s", file, error, extra={"action": "sessions_unreadable"})
        return []
