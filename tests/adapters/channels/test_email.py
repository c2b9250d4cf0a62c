"""Email to a real SMTP server: safe on the way, threaded, and its refusals understood."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from lifesigns.adapters.channels.email import EmailChannel, Security, Server, compose
from lifesigns.errors import UsageError
from lifesigns.ports import NotDelivered
from tests.adapters.channels.peers import mailer, notice
from tests.servers.certificates import self_signed

FROM, TO = "lifesigns@example.org", ("ada@example.org", "bob@example.org")
PASSWORD = "p4ssw0rd-secret"


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's side, and that of somebody who believes it."""
    file = self_signed(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file, file.with_name("key.pem"))
    return server, ssl.create_default_context(cafile=str(file))


def plain(port: int) -> Server:
    return Server("127.0.0.1", port, Security.NONE)


async def test_a_notice_is_a_letter_to_all_of_them() -> None:
    with mailer() as post:
        await EmailChannel(plain(post.port), FROM, TO).tell(notice(text="No beat.\n.\nIt snows ☃"))
    ((to, mail, _),) = post.letters
    assert to == list(TO)
    assert mail["Subject"] == "[warning] coder-7 is disconnected (crash)"
    assert mail["Auto-Submitted"] == "auto-generated"
    body = mail.get_content()
    assert "No beat.\n.\nIt snows ☃" in body.replace("\r\n", "\n")
    assert "agents: coder-7" in body
    assert "http://127.0.0.1:8710/agents/coder-7" in body


async def test_letters_of_one_alert_are_one_thread_also_after_a_restart() -> None:
    with mailer() as post:
        for stage in ("opened", "worse", "reminder", "resolved"):
            await EmailChannel(plain(post.port), FROM, TO).tell(notice(stage, at=1_800_000_100.0))
        await EmailChannel(plain(post.port), FROM, TO).tell(notice("opened", since=1_800_009_999.0))
    letters = [mail for _, mail, _ in post.letters]
    first = letters[0]["Message-ID"]
    assert [mail["References"] for mail in letters] == [None, first, first, first, None]
    assert len({mail["Message-ID"] for mail in letters}) == 5


async def test_starttls_and_a_password(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with mailer(tls=tls[0], login=f"ada:{PASSWORD}") as post:
        server = Server("127.0.0.1", post.port, Security.STARTTLS, "ada", PASSWORD, tls[1])
        await EmailChannel(server, FROM, TO).tell(notice())
    assert [secure for _, _, secure in post.letters] == [True]


async def test_tls_from_the_first_byte(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with mailer(tls=tls[0], wrapped=True) as post:
        server = Server("127.0.0.1", post.port, Security.TLS, context=tls[1])
        await EmailChannel(server, FROM, TO).tell(notice())
    assert [secure for _, _, secure in post.letters] == [True]


async def test_a_server_without_starttls_gets_nothing() -> None:
    with mailer() as post:
        server = Server("127.0.0.1", post.port, Security.STARTTLS)
        error = await refused(EmailChannel(server, FROM, TO))
    assert not error.transient
    assert post.letters == []


async def test_a_certificate_nobody_vouches_for_is_refused(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    with mailer(tls=tls[0]) as post:
        server = Server("127.0.0.1", post.port, Security.STARTTLS)
        error = await refused(EmailChannel(server, FROM, TO))
    assert not error.transient
    assert "self" in str(error)


async def test_a_wrong_password_is_refused_for_good(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with mailer(tls=tls[0], login="ada:right") as post:
        server = Server("127.0.0.1", post.port, Security.STARTTLS, "ada", PASSWORD, tls[1])
        error = await refused(EmailChannel(server, FROM, TO))
        assert PASSWORD not in repr(server)
    assert not error.transient
    assert "535" in str(error)


@pytest.mark.parametrize(
    ("refuse", "transient"),
    [
        ({"RCPT": "450 4.2.0 greylisted"}, True),
        ({"RCPT": "550 5.1.1 nobody here"}, False),
        ({".": "451 4.3.0 try later"}, True),
        ({".": "554 5.7.1 spam"}, False),
        ({"MAIL": "421 4.3.2 closing"}, True),
    ],
)
async def test_refusals_say_whether_to_come_again(refuse: dict[str, str], transient: bool) -> None:
    with mailer() as post:
        post.refuse = refuse
        error = await refused(EmailChannel(plain(post.port), FROM, TO))
    assert error.transient is transient
    assert next(iter(refuse.values()))[:3] in str(error)


async def test_a_server_that_is_away_and_back() -> None:
    with mailer() as post:
        port = post.port
    error = await refused(EmailChannel(plain(port), FROM, TO))
    assert error.transient
    assert not error.uncertain


async def refused(channel: EmailChannel) -> NotDelivered:
    with pytest.raises(NotDelivered) as caught:
        await channel.tell(notice())
    await channel.close()
    assert PASSWORD not in str(caught.value)
    return caught.value


def test_a_title_cannot_add_a_header() -> None:
    mail = compose(notice(title="x\r\nBcc: eve@example.org"), FROM, TO)
    assert mail["Bcc"] is None
    assert mail["Subject"] == "[warning] x Bcc: eve@example.org"


def test_what_cannot_work_is_said_at_once() -> None:
    with pytest.raises(UsageError, match="open line"):
        Server("mail", 25, Security.NONE, "ada", PASSWORD)
    with pytest.raises(UsageError, match="no address"):
        EmailChannel(plain(25), "nobody", TO)
    with pytest.raises(UsageError, match="somebody"):
        EmailChannel(plain(25), FROM, ())
    EmailChannel(plain(25), "Lifesigns <lifesigns@example.org>", TO)
