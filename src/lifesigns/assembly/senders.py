"""Senders: the public `Sender`, which finds its hub by address and shares one relay per hub and process."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from lifesigns.agent.sender import sender as agent
from lifesigns.agent.sender import shutdown
from lifesigns.agent.sender.farewells import Farewells
from lifesigns.agent.sender.relay import Relay
from lifesigns.assembly.links import link_to, without_password
from lifesigns.ports import Signer


class Sender(agent.Sender):
    """Reports one life of an agent to a hub: `http(s)://`, `nats://`, `redis://` or `memory://`. Use it as `async with`
    or `with`; it lives once. By default the hub is `LIFESIGNS_HUB`, else the one on this machine, with the token of its
    state folder; `LIFESIGNS_TOKEN` is for any other. Of several addresses, with commas between them, it tries the next
    when the current one takes no beats; `none` stays alone. `key`, by default `LIFESIGNS_KEY`, signs its messages.

    `on_nudge`, `on_stop` and `on_alert` may be plain functions (called in a thread of their own) or coroutine functions
    (run on the agent's loop). `on_stop` is the save hook: it has the time the hub grants, and may return the id of a
    checkpoint. `profile` or `interval` set the rhythm; without either it beats every 5 s.
    """

    def _relay_to(self, hub: str | None, token: str | None, key: str | None) -> Relay:
        return relay_to(hub, token, key)


def relay_to(hub: str | None = None, token: str | None = None, key: str | None = None) -> Relay:
    """The relay of this process to that hub; by default to `LIFESIGNS_HUB`, else to the one on this machine."""
    url, its_token = (hub, token) if hub and token else _locate(hub, token)
    key = key or os.environ.get("LIFESIGNS_KEY") or None
    with _lock:
        relay = _relays.get((url, its_token, key))
        if relay is None:
            signer = None if key is None else _signer(key)
            link_to(url, its_token, signer)  # a wrong address is the caller's mistake, so raise it now
            farewells = Farewells(url, _state_folder)
            relay = _relays[url, its_token, key] = Relay(
                lambda: link_to(url, its_token, signer), without_password(url), farewells
            )
        return relay


def _signer(key: str) -> Signer:
    from lifesigns.adapters.signing.agent_key import (
        signer_of,  # A sender without a key must not import cryptography.
    )

    return signer_of(key)


def _locate(hub: str | None, token: str | None) -> tuple[str, str | None]:
    from lifesigns.config import hub_locator  # Not imported if the caller names both.

    locator = hub_locator.find(os.environ, hub, token)
    return locator.hub, locator.token


def _state_folder() -> Path | None:
    """None if it is configured and missing, or the account has no home: then we must not create it."""
    from lifesigns.config import hub_locator

    folder = hub_locator.state_folder(os.environ)
    ours_to_make = not os.environ.get("LIFESIGNS_STATE") and Path.home().is_dir()
    return folder if folder.is_dir() or ours_to_make else None


_lock = threading.Lock()
_relays: dict[tuple[str, str | None, str | None], Relay] = {}


def _forget() -> None:
    """In a forked child: the parent's relays stay the parent's."""
    global _lock
    _lock = threading.Lock()  # The thread that held the old one does not exist here.
    shutdown.keep_for_the_parent(dict(_relays))
    _relays.clear()


shutdown.after_fork(_forget)
