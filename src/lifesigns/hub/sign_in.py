"""Signing in: one-time links, and the sessions they open.

A token does not belong into a browser's address bar or its storage. So whoever has one makes a link with it: a code
that works once, for five minutes. Opening it gives a session, which is a cookie for as long as somebody looks at the
dashboard every half day.

What is remembered is the digest of a code or of a session, never the thing itself, and everything is bounded. Codes are in
memory; sessions are in a file of the state folder, too: who looks on while the hub is restarted goes on looking. A session
belongs to the token it was made with: it can do what that token can, and ends when the token does.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Final

from lifesigns.files import write_whole

FILE_NAME: Final = "sessions.json"

LINK_FOR: Final = 300.0
SESSION_FOR: Final = 12 * 3600.0
LINKS_MAX: Final = 200
SESSIONS_MAX: Final = 2000
SECRET_MAX: Final = 128
"""Ours are shorter; what is longer is not even hashed."""
NOTE_EVERY: Final = 600.0
"""That sessions are used is written down so often: after a restart they may end that much too early, of half a day."""

log: Final = logging.getLogger("lifesigns.hub")


@dataclass(slots=True)
class _Pass:
    """What a code or a session stands for, and until when."""

    token_id: str
    until: float


class SignIns:
    """Links that were not opened yet, and the sessions of those that were."""

    def __init__(self) -> None:
        self._links: OrderedDict[bytes, _Pass] = OrderedDict()
        self._sessions: OrderedDict[bytes, _Pass] = OrderedDict()
        self._file: Path | None = None
        self._note_at = inf

    def keep_in(self, folder: Path, now: float) -> None:
        """Take up the sessions in this folder, and keep them there from now on."""
        self._file = folder / FILE_NAME
        for key, known in _read(self._file):
            if now < known.until <= now + SESSION_FOR and len(self._sessions) < SESSIONS_MAX:
                self._sessions[key] = known
        self._note_at = now + NOTE_EVERY

    def link(self, token_id: str, now: float) -> str:
        """A code that opens one session for whoever shows it first."""
        return _add(self._links, LINKS_MAX, _Pass(token_id, now + LINK_FOR))

    def redeem(self, code: str, now: float) -> tuple[str, str] | None:
        """A new session and the id of its token; None for a code that is unknown, used or too old."""
        known = self._links.pop(_digest(code), None)
        if known is None or now >= known.until:
            return None
        session = _add(self._sessions, SESSIONS_MAX, _Pass(known.token_id, now + SESSION_FOR))
        self._write()
        return session, known.token_id

    def token_of(self, session: str, now: float) -> str | None:
        """The id of the token a session was made with. Being used keeps it alive."""
        key = _digest(session)
        known = self._sessions.get(key)
        if known is None:
            return None
        if now >= known.until:
            del self._sessions[key]
            return None
        known.until = now + SESSION_FOR
        self._sessions.move_to_end(key)
        return known.token_id

    def sign_out(self, session: str) -> None:
        """This session ends."""
        if self._sessions.pop(_digest(session), None) is not None:
            self._write()

    def end(self, token_id: str) -> None:
        """Everything that was made with this token ends."""
        before = len(self._sessions)
        for table in (self._links, self._sessions):
            for key in [key for key, known in table.items() if known.token_id == token_id]:
                del table[key]
        if len(self._sessions) < before:
            self._write()

    def forget_old(self, now: float) -> None:
        """Let go of what nobody came back for, and write down what is used."""
        for table in (self._links, self._sessions):
            for key in [key for key, known in table.items() if now >= known.until]:
                del table[key]
        if now >= self._note_at:
            self._note_at = now + NOTE_EVERY
            self._write()

    def _write(self) -> None:
        """What cannot be written is lost with this process, and nothing else is."""
        if self._file is None:
            return
        rows = [[key.hex(), known.token_id, known.until] for key, known in self._sessions.items()]
        try:
            write_whole(self._file, json.dumps(rows).encode())
        except OSError as error:
            log.warning("a restart will end all sessions: %s", error, extra={"action": "sessions_not_kept"})


def _add(table: OrderedDict[bytes, _Pass], table_max: int, made: _Pass) -> str:
    while len(table) >= table_max:
        table.popitem(last=False)
    secret = secrets.token_urlsafe(32)
    table[_digest(secret)] = made
    return secret


def _digest(secret: str) -> bytes:
    return sha256(secret[:SECRET_MAX].encode("utf-8", "surrogatepass")).digest()


def _read(file: Path) -> list[tuple[bytes, _Pass]]:
    """The sessions in a file; none, if it is not one of ours: then people open a new link."""
    try:
        rows = json.loads(file.read_bytes())
        return [(bytes.fromhex(key), _Pass(str(token_id), float(until))) for key, token_id, until in rows]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        log.warning("%s is of no use: %s", file, error, extra={"action": "sessions_unreadable"})
        return []
