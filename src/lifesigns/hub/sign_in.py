"""Signing in: one-time links, and the sessions they open.

A token must not go into the address bar or the storage of a browser. So its holder makes a link with it: a code that
works once, for five minutes. Redeeming it opens a session, a cookie that lasts while a person uses the dashboard every
half day, and a week at most.

The hub stores the digest of a code or session, never the secret, and everything is bounded. Codes are in memory;
sessions also in a file of the state folder, so that they survive a restart of the hub. A session belongs to the token
it was made with: it has the rights of that token, and ends with it.
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
"""Without a use of the dashboard."""
SESSION_MAX_FOR: Final = 7 * 86400.0
"""Even if it is in use; `limits.session_for` changes it."""
LINKS_MAX: Final = 200
SESSIONS_MAX: Final = 2000
SECRET_MAX: Final = 128
"""Ours are shorter; a longer one is not even hashed."""
NOTE_EVERY: Final = 600.0
"""How often the uses of sessions are written: a restart may end one that much too early, of half a day."""

T = TypeVar("T")

log: Final = logging.getLogger("lifesigns.hub")


@dataclass(slots=True)
class _Link:
    """A code not yet redeemed."""

    token_id: str
    until: float


class Session(Struct):
    """A signed-in browser. `until` moves on with every use, up to `ends_at`."""

    token_id: str
    until: float
    made_at: float
    ends_at: float
    used_at: float
    address: str = ""


class SignIns:
    """Links not yet opened, and open sessions."""

    def __init__(self, session_for: float = SESSION_MAX_FOR) -> None:
        self._session_for = session_for
        """Seconds after which a session ends even if it is in use."""
        self._links: OrderedDict[bytes, _Link] = OrderedDict()
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._file: Path | None = None
        self._note_at = inf

    def use_folder(self, folder: Path, now: float) -> None:
        """Continue the sessions in this folder, and store them there from now on."""
        self._file = folder / FILE_NAME
        for key, known in _read(self._file):
            known.ends_at = min(known.ends_at, known.made_at + self._session_for)
            known.until = min(known.until, known.ends_at)
            if known.made_at <= now < known.until <= now + SESSION_FOR and len(self._sessions) < SESSIONS_MAX:
                self._sessions[key] = known
        self._note_at = now + NOTE_EVERY

    def link(self, token_id: str, now: float) -> str:
        """A code that opens one session for the first to show it."""
        return _add(self._links, LINKS_MAX, _Link(token_id, now + LINK_FOR))

    def maker(self, code: str, now: float) -> str | None:
        """The id of the token that made a code; None if the code is unknown, used or too old."""
        known = self._links.get(_digest(code))
        return None if known is None or now >= known.until else known.token_id

    def links_of(self, token_id: str, now: float) -> list[float]:
        """The remaining seconds of each unopened link made with this token."""
        waits = (link.until - now for link in self._links.values() if link.token_id == token_id)
        return [wait for wait in waits if wait > 0]

    def redeem(
        self, code: str, now: float, address: str = "", sessions_max: int = SESSIONS_MAX
    ) -> tuple[str, str] | None:
        """A new session and the id of its token; None if the code is unknown, used or too old. If the token has too
        many sessions, the least recently used one ends."""
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
        """The id of the token that made a session. A use extends the session, until its end."""
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
        """Whether this session is open. Asking does not extend it."""
        known = self._sessions.get(_digest(session))
        return known is not None and now < known.until

    def sessions(self, now: float) -> dict[str, Session]:
        """The open sessions, by id."""
        return {_id(key): known for key, known in self._sessions.items() if now < known.until}

    def sign_out(self, session: str) -> None:
        """End this session."""
        self.end_session(session_id(session))

    def end_session(self, session_id: str) -> None:
        """End the session with this id."""
        for key in [key for key in self._sessions if _id(key) == session_id]:
            del self._sessions[key]
            self._write()

    def end(self, token_id: str) -> None:
        """End everything made with this token."""
        before = len(self._sessions)
        _drop(self._links, lambda link: link.token_id == token_id)
        _drop(self._sessions, lambda session: session.token_id == token_id)
        if len(self._sessions) < before:
            self._write()

    def forget_old(self, now: float) -> None:
        """Drop old links and sessions, and write uses from time to time."""
        _drop(self._links, lambda link: now >= link.until)
        _drop(self._sessions, lambda session: now >= session.until)
        if now >= self._note_at:
            self._note_at = now + NOTE_EVERY
            self._write()

    def _write(self) -> None:
        """If this fails, a restart ends the sessions, and that is all."""
        if self._file is None:
            return
        rows = {key.hex(): known for key, known in self._sessions.items()}
        try:
            write_whole(self._file, msgspec.json.encode(rows))
        except OSError as error:
            log.warning("a restart will end all sessions: %s", error, extra={"action": "sessions_not_kept"})


def session_id(session: str) -> str:
    """The id to list and end a session by: a part of its digest, useless for signing in."""
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
    """The sessions in a file; none, if the file is not ours: then people open a new link."""
    try:
        rows = msgspec.json.decode(file.read_bytes(), type=dict[str, Session])
        return [(bytes.fromhex(key), known) for key, known in rows.items()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        log.warning("%s is of no use: %s", file, error, extra={"action": "sessions_unreadable"})
        return []
