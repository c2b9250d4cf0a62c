"""Over TLS: a hub is believed if its certificate is, and only then."""

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifesigns.adapters.link import http_connection
from lifesigns.assembly.senders import Sender
from lifesigns.core.effects import SendPing
from lifesigns.core.signals import PongReceived
from tests.agent.sender.http_hub import HttpHub
from tests.servers.certificates import self_signed


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of nobody's, for 127.0.0.1, with its key."""
    return self_signed(tmp_path)


@pytest.fixture
def hub(certificate: Path) -> Iterator[HttpHub]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    http_connection.trust.cache_clear()
    with HttpHub(tls=context) as hub:
        yield hub
    http_connection.trust.cache_clear()


def test_a_hub_with_a_known_certificate_is_spoken_to(
    hub: HttpHub, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Sender("a", hub.url, interval=0.1) as life:
        hub.until(lambda: len(hub.beats) >= 3 and hub.polled)
        hub.offer(SendPing(time.time(), "1-1", 1, "a", None, 1, "silence"))
        hub.until(lambda: hub.of(PongReceived))
        assert life.stats.failed == 0


def test_a_hub_with_an_unknown_certificate_is_told_nothing(hub: HttpHub) -> None:
    with Sender("a", hub.url, interval=0.1, retry_after=0.05, close_for=0.1) as life:
        until = time.monotonic() + 10
        while life.stats.consecutive_failures < 2 and time.monotonic() < until:
            time.sleep(0.01)
        assert life.stats.failed >= 2
    assert not hub.requests
