"""Listening: checks `listen` before the hub listens.

Anyone who can read the network can read the tokens on it. Only this machine reads its own loopback; anywhere else the
hub needs TLS, or a proxy in front that has it.
"""

from __future__ import annotations

import socket
import ssl

from lifesigns.config.values import Listen
from lifesigns.errors import UsageError
from lifesigns.wire.addresses import is_loopback_host


def check(listen: Listen) -> None:
    """Raise a `UsageError` that names the ways out, if a hub must not or cannot listen like this."""
    tls_context(listen)
    if listen.tls_cert is None and not listen.behind_proxy and not _is_loopback(listen.host):
        raise UsageError(
            f"listen is {listen}, which others can reach, and tokens would cross the network for everybody to read. "
            "Either give a certificate (--tls-cert and --tls-key, or listen.tls_cert and listen.tls_key), or say "
            "that a proxy in front does TLS (--behind-proxy, or listen.behind_proxy); or stay on 127.0.0.1"
        )


def tls_context(listen: Listen) -> ssl.SSLContext | None:
    """The certificate and its key, loaded; None without TLS."""
    if listen.tls_cert is None:
        if listen.tls_key is not None:
            raise UsageError(
                f"listen.tls_key is {listen.tls_key}, but there is no listen.tls_cert to go with it"
            )
        return None
    for name, path in (("tls_cert", listen.tls_cert), ("tls_key", listen.tls_key)):
        if path is not None:
            try:
                path.read_bytes()
            except OSError as error:
                raise UsageError(
                    f"listen.{name} is {path}, which cannot be read: {error.strerror}"
                ) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # If asked for a password, OpenSSL would wait at the terminal, for ever where there is none.
        context.load_cert_chain(listen.tls_cert, listen.tls_key, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        key = listen.tls_key or "the key in the same file"
        raise UsageError(
            f"listen.tls_cert {listen.tls_cert} and {key} do not work together: {error}; "
            "both have to be PEM, the key without a password"
        ) from error
    return context


def _no_password() -> str:
    raise ValueError("the key has a password")


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches this address; a name is what it resolves to."""
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"listen.host is {host!r}, which is no address of this machine: {error}") from error
    return all(is_loopback_host(str(info[4][0])) for info in addresses)
