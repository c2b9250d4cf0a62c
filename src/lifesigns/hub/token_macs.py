"""Token MACs: which rows of the store's `tokens` this hub has written.

A row makes the holder of the token behind its digest an administrator, so write access to the database must not be
enough to make one. Each row carries a MAC with a key of the state folder (`tokens.key`); the hub refuses a row without
it, or with a wrong one. It does not detect a restored row of a token revoked since.

Rows of an older lifesigns have no MAC: the hub adds it once, when it makes the key. Hubs that share a store share the
key.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from lifesigns.errors import AdapterError, UsageError
from lifesigns.files import read_private, write_whole
from lifesigns.ports import Store, StoredToken

FILE_NAME: Final = "tokens.key"
_BEING_MADE: Final = "tokens.key.new"
"""Until every old row has its MAC: the next start finishes an interrupted run."""
KEY_BYTES: Final = 32

log: Final = logging.getLogger("lifesigns.hub")


class TokenMacs:
    """Signs rows of tokens, and verifies them."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def signed(self, token: StoredToken) -> StoredToken:
        """This token with its MAC. The time of its last use is left out: it changes every minute."""
        return replace(token, mac=self._mac(token))

    def vouch_for(self, token: StoredToken) -> bool:
        return hmac.compare_digest(token.mac, self._mac(token))

    def for_hubs(self) -> HubMacs:
        """With a key made of this one, from which nobody learns it. Hubs that share a store have the same."""
        return HubMacs(hmac.digest(self._key, b"lifesigns hubs", "sha256"))

    def _mac(self, token: StoredToken) -> bytes:
        content = (
            token.id,
            token.digest,
            str(token.role),
            token.name,
            token.agents,
            token.made_at,
            token.expires_at,
        )
        return hmac.digest(self._key, msgspec.msgpack.encode(content), "sha256")


class HubMacs:
    """MACs that only the hubs on one store can make: by them a hub knows that it talks to another one of these. For the
    calls that one forwards (`web/forwarded.py`), and for what one asks another (`hub/hub_requests.py`)."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def mac(self, purpose: str, *parts: bytes) -> bytes:
        """Of these parts, in hexadecimal; one for another purpose is worth nothing here."""
        return hmac.digest(self._key, msgspec.msgpack.encode((purpose, *parts)), "sha256").hex().encode()

    def is_right(self, mac: bytes, purpose: str, *parts: bytes) -> bool:
        return hmac.compare_digest(mac, self.mac(purpose, *parts))


async def token_macs(folder: Path, store: Store) -> TokenMacs:
    """The MACs of the hub in this folder. The first start makes the key, and signs the existing rows. Raises
    `UsageError` if the rows are signed and the key is missing."""
    if (key := _read(folder / FILE_NAME)) is not None:
        return TokenMacs(key)
    rows = await store.tokens()
    key = _read(folder / _BEING_MADE)
    if key is None:
        if any(row.mac for row in rows):
            raise UsageError(
                f"the tokens in the store are signed with a key that is not in {folder}: copy {FILE_NAME} from the "
                "state folder of the hub that made them. If it is lost, `lifesigns token accept` shows them to you, and "
                "signs those that you believe with a new one"
            )
        key = secrets.token_bytes(KEY_BYTES)
        _write(folder / _BEING_MADE, key)
    macs = TokenMacs(key)
    for row in rows:
        if not row.mac:
            await store.keep_token(macs.signed(row))
    (folder / _BEING_MADE).replace(folder / FILE_NAME)
    if rows:
        text = "%d tokens of the store were made by an older lifesigns: they are signed now, and others are not believed"
        log.warning(text, len(rows), extra={"action": "tokens_signed"})
    return macs


def new_macs(folder: Path) -> TokenMacs:
    """The MACs of the hub in this folder; with a new key if it has none."""
    key = _read(folder / FILE_NAME)
    if key is None:
        key = secrets.token_bytes(KEY_BYTES)
        _write(folder / FILE_NAME, key)
    return TokenMacs(key)


def _write(path: Path, key: bytes) -> None:
    try:
        write_whole(path, key)
    except OSError as error:
        raise AdapterError(f"{path} cannot be written: {error.strerror}", transient=False) from error


def _read(path: Path) -> bytes | None:
    contents = read_private(path, KEY_BYTES + 1)
    if contents is None:
        return None
    key, exposed = contents
    if exposed:
        text = "%s could be read by others, %s; who has it and can write to the store can make tokens"
        log.warning(text, path, exposed, extra={"action": "tokens_key_exposed"})
    if len(key) != KEY_BYTES:
        raise UsageError(f"{path} does not hold a key of {KEY_BYTES} bytes; put back the one of a backup")
    return key
