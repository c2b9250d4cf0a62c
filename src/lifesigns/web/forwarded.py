"""Forwarded calls: those that a hub that stands by passes on to the one that judges.

The hub that judges reads such a call as its client sent it: the `Host` that the client typed, its address, the port and
the TLS of the hub it reached. A header says these, with a MAC that only the hubs on one store can make. The header gives
no right: token, cookie and `Origin` are the client's own, and are checked as those of any call. Without a right MAC it is
ignored. A call that carries it is never forwarded again.

But for one thing: if several hubs judge, a page asks one of them, which asks the others, and these do not know its session. So the hub
that does says whose token opened it. That token still has to be valid, and the page and its `Origin` are checked as ever. The MAC
is over method and target too: who reads such a header on its way can have the same answer again, and nothing else.

And a hub proves who it is before another one sends it anybody's token: it answers a challenge with a MAC of its own name
and address. So whoever can write to the store, and puts another address into a row, learns no token.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import quote, unquote

from lifesigns.hub.lease import Lease
from lifesigns.hub.token_macs import HubMacs
from lifesigns.web.answers import Answer
from lifesigns.web.host_policy import HostPolicy

FORWARDED: Final = b"lifesigns-forwarded"
CHALLENGE: Final = b"lifesigns-challenge"
PROOF: Final = b"lifesigns-proof"
CHALLENGE_MAX: Final = 64
SLOT: Final = b"lifesigns-slot"
"""Names the slot whose hub is meant, in a process that has one for each. It gives no right, and needs no proof: whatever an
agent of another slot says there is not heard."""
PART: Final = b"lifesigns-part"
"""With a part of a delivery, that nothing counts in it is no error yet. Gives no right either."""
WHOLE: Final = "whole"
"""Its value if the hubs of several slots get the same, and each takes what is its own."""

BEATS_OF_HUB: Final = "/beats-of-hub"
"""Where a hub that stands by brings the single beats of many clients. For hubs alone."""

HOST_POLICY: Final = "host_policy"
REACHED: Final = "reached_hub"
"""In the scope of a forwarded call: the name and the host policy of the hub that the client reached."""
ANY_SLOT: Final = "any_slot"
"""In the scope of a part of a delivery: it is for several slots that the other hub judges, and taken apart there."""
SIGNED_IN: Final = "signed_in"
"""In the scope of a call that one hub passes to several, at either end: the id of the token by which its session was opened."""

_PARTS: Final = 5
"""Of the header, without the session and the MAC."""
_OF_A_CLIENT: Final = "forwarded"
_OF_A_SESSION: Final = "forwarded session"

Scope = MutableMapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReachedHub:
    """How a client reached the hub that forwards its call."""

    name: str
    """Of that hub."""
    host: bytes
    """The `Host` that it typed."""
    client: str
    """The address that the connection came from."""
    port: int
    """The hub's own."""
    tls: bool
    behind_proxy: bool
    signed_in: str = ""
    """The id of the token of the client's session, if that hub says so; empty if the client has a token, or the hub says nothing."""

    @classmethod
    def of(cls, name: str, scope: Scope, host: bytes, policy: HostPolicy) -> Self:
        """How this client reached this hub."""
        client, server = scope.get("client"), scope.get("server")
        address, port = client[0] if client else "-", server[1] if server else 0
        signed_in = scope.get(SIGNED_IN, "")
        return cls(name, host, address, port, policy.tls, policy.behind_proxy, signed_in)

    def header(self, macs: HubMacs, call: bytes = b"") -> bytes:
        """The value of `FORWARDED`. What it says of a session is good for this call alone."""
        flags = b"%d%d" % (self.tls, self.behind_proxy)
        parts = [quote(self.name).encode(), self.host, self.client.encode(), b"%d" % self.port, flags]
        if not self.signed_in:
            return b" ".join((*parts, macs.mac(_OF_A_CLIENT, *parts)))
        parts.append(quote(self.signed_in).encode())
        return b" ".join((*parts, macs.mac(_OF_A_SESSION, call, *parts)))

    @classmethod
    def read(cls, value: bytes, macs: HubMacs, call: bytes) -> Self | None:
        """What a hub said with this call; None if it was none of ours."""
        *parts, mac = value.split(b" ")
        if len(parts) == _PARTS:
            signed_in, is_right = "", macs.is_right(mac, _OF_A_CLIENT, *parts)
        elif len(parts) == _PARTS + 1:
            signed_in, is_right = (
                unquote(parts[-1].decode("latin-1")),
                macs.is_right(mac, _OF_A_SESSION, call, *parts),
            )
        else:
            return None
        if not is_right:
            return None
        name, host, client, port, flags = parts[:_PARTS]
        return cls(
            *(unquote(name.decode()), host, client.decode(), int(port)),
            *(flags[:1] == b"1", flags[1:] == b"1", signed_in),
        )

    @property
    def policy(self) -> HostPolicy:
        """Of that hub."""
        return HostPolicy.checked(self.host, tls=self.tls, behind_proxy=self.behind_proxy)


def is_forwarded(scope: Scope) -> bool:
    """Whether a call says that a hub forwarded it, truly or not."""
    return any(name == FORWARDED for name, _ in scope["headers"])


def call_of(scope: Scope) -> bytes:
    """What is asked for: the method and the target."""
    return b"%s %s" % (scope["method"].encode(), target_of(scope))


def target_of(scope: Scope) -> bytes:
    """The path and the query, as they were sent."""
    query: bytes = scope["query_string"]
    path: bytes = scope["raw_path"]
    return path + b"?" + query if query else path


def as_sent(scope: Scope, macs: HubMacs) -> Scope:
    """A call as its client sent it, if a hub of ours forwarded it; else as it is."""
    said = [value for name, value in scope["headers"] if name == FORWARDED]
    reached = ReachedHub.read(said[0], macs, call_of(scope)) if len(said) == 1 else None
    if reached is None:
        return scope
    connection = scope.get("state", {}).get("connection")
    if connection is not None:
        connection.count_for_no_address()
    headers = [
        (name, reached.host if name == b"host" else value)
        for name, value in scope["headers"]
        if name != FORWARDED
    ]
    return {
        **scope,
        "headers": headers,
        "client": (reached.client, 0),
        "server": ("", reached.port),
        HOST_POLICY: reached.policy,
        REACHED: reached.name,
        SIGNED_IN: reached.signed_in,
    }


# --- who is there -------------------------------------------------------------------------------------


def proof(macs: HubMacs, challenge: bytes, name: str, url: str) -> bytes:
    """That a hub of this name, at this address, is one of those on the store, and judges."""
    return macs.mac("proof", challenge, name.encode(), url.encode())


def proving(challenge: bytes, lease: Lease, macs: HubMacs) -> Answer:
    """The answer to a challenge."""
    challenge = challenge[:CHALLENGE_MAX]
    return Answer(status=204, headers=((PROOF, proof(macs, challenge, lease.name, lease.url)),))
