"""A hub listens where tokens are safe, or says what is missing."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from lifesigns.config.listening import check, tls_context
from lifesigns.config.values import Listen
from lifesigns.errors import UsageError
from tests.config.conftest import Complained, Said
from tests.servers.certificates import self_signed


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    check(Listen(host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "192.168.1.1", "fe80::1%eth0", "2001:db8::1"])
def test_anything_else_is_refused_with_the_ways_out(host: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(Listen(host))
    for way in ("--tls-cert", "--tls-key", "--behind-proxy", "127.0.0.1", str(Listen(host))):
        assert way in str(caught.value)


def test_a_name_is_what_it_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.1.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    check(Listen("this-machine"))
    found.append((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 0)))
    with pytest.raises(UsageError, match="others can reach"):
        check(Listen("this-machine"))


def test_a_name_that_nobody_knows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(UsageError, match=r"listen.host is 'nowhere'"):
        check(Listen("nowhere"))


def test_a_certificate_or_a_proxy_is_a_way_out(tmp_path: Path) -> None:
    cert = self_signed(tmp_path)
    check(Listen("0.0.0.0", tls_cert=cert, tls_key=cert.with_name("key.pem")))
    check(Listen("0.0.0.0", behind_proxy=True))


def test_the_key_may_be_in_the_same_file(tmp_path: Path) -> None:
    cert = self_signed(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(cert.read_bytes() + cert.with_name("key.pem").read_bytes())
    assert tls_context(Listen(tls_cert=both)) is not None
    assert Listen(tls_cert=both).tls == (str(both), str(both))


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").mkdir()
    cert, other = self_signed(tmp_path / "mine"), self_signed(tmp_path / "other")
    key = cert.with_name("key.pem")
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.touch()
    for listen, complaint in (
        (
            Listen(tls_cert=missing, tls_key=key),
            f"listen.tls_cert is {missing}, which cannot be read: No such file",
        ),
        (
            Listen(tls_cert=cert, tls_key=missing),
            f"listen.tls_key is {missing}, which cannot be read: No such file",
        ),
        (
            Listen(tls_cert=tmp_path, tls_key=key),
            f"listen.tls_cert is {tmp_path}, which cannot be read: Is a directory",
        ),
        (Listen(tls_cert=cert, tls_key=other.with_name("key.pem")), "do not work together"),
        (Listen(tls_cert=cert), "do not work together"),
        (Listen(tls_cert=empty, tls_key=key), "do not work together"),
        (Listen(tls_key=key), "there is no listen.tls_cert"),
    ):
        with pytest.raises(UsageError) as caught:
            check(listen)
        assert complaint in str(caught.value)
        assert "PRIVATE KEY" not in str(caught.value)


# --- how it is said -------------------------------------------------------------------------------------


def test_everything_about_listening_can_be_said_in_the_file(said: Said) -> None:
    listen = said(
        "listen: {host: 0.0.0.0, port: 443, tls_cert: /etc/hub.pem, tls_key: /etc/hub.key, behind_proxy: yes,\n"
        "         names: [hub.example.org, Hub]}\n"
    ).listen
    assert listen == Listen(
        "0.0.0.0", 443, Path("/etc/hub.pem"), Path("/etc/hub.key"), True, ("hub.example.org", "hub")
    )


def test_each_part_can_be_said_outside_and_leaves_the_others_alone(said: Said) -> None:
    file = "listen: {host: 0.0.0.0, tls_cert: /a.pem, tls_key: /a.key, names: a}"
    environ = {"LIFESIGNS_LISTEN": "127.0.0.1:9", "LIFESIGNS_LISTEN__BEHIND_PROXY": "yes"}
    config = said(file, environ, {"tls_key": "/b.key", "names": ("b", "c"), "behind_proxy": None})
    assert config.listen == Listen("127.0.0.1", 9, Path("/a.pem"), Path("/b.key"), True, ("b", "c"))
    shown = {name: str(config.sources[f"listen.{name}"]) for name in ("tls_key", "names", "behind_proxy")}
    assert shown == {
        "tls_key": "--tls-key (flag)",
        "names": "--allow-host (flag)",
        "behind_proxy": "LIFESIGNS_LISTEN__BEHIND_PROXY (environment)",
    }
    assert str(config.sources["listen"]) == "LIFESIGNS_LISTEN (environment)"
    assert config.effective["listen.tls_cert"] == "/a.pem"


def test_flags_that_were_not_given_change_nothing(said: Said) -> None:
    listen = said("listen: {names: a}", {}, {"names": (), "tls_cert": None, "behind_proxy": None}).listen
    assert listen == Listen(names=("a",))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{names: ['*']}", "names: needs names such as hub.example.org, without port or *"),
        ("{names: 'hub:80'}", "names: needs names such as hub.example.org, without port or *"),
        ("{behind_proxy: 1}", "behind_proxy: needs true or false"),
        ("{tls_cert: 5}", "tls_cert: needs a text"),
        ("{tls: x}", "tls: is unknown; did you mean tls_key?"),
    ],
)
def test_what_is_wrong_about_listening_is_named(complained: Complained, text: str, complaint: str) -> None:
    (error,) = complained(f"listen: {text}")
    assert str(error).startswith(f"listen.{complaint}")


@pytest.mark.parametrize(
    ("variable", "complaint"),
    [
        ("LIFESIGNS_LISTEN__TLS_CRT", "LIFESIGNS_LISTEN__TLS_CERT?"),
        ("LIFESIGNS_LISTEN__NAMES", "without port"),
    ],
)
def test_a_wrong_variable_about_listening_is_named(
    complained: Complained, variable: str, complaint: str
) -> None:
    (error,) = complained("", {variable: "*"})
    assert error.key == variable
    assert complaint in error.detail
