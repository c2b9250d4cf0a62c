"""Email by SMTP: plain text, and one thread per alert.

The id of an alert's first message follows from its key and its beginning; all others refer to it, also after a restart,
so that mail programs show them together.
"""

from __future__ import annotations

import asyncio
import hashlib
import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate
from enum import StrEnum
from typing import Final

from lifesigns.errors import UsageError
from lifesigns.ports import NotDelivered, Notice, NoticeStage
from lifesigns.wire.codec import written

TIMEOUT: Final = 20.0


class Security(StrEnum):
    """How the connection to the server is secured."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


PORTS: Final[Mapping[Security, int]] = {Security.STARTTLS: 587, Security.TLS: 465, Security.NONE: 25}


@dataclass(frozen=True, slots=True)
class Server:
    """A mail server, and the login. We never send a password unencrypted."""

    host: str
    port: int | None = None
    security: Security = Security.STARTTLS
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    context: ssl.SSLContext | None = field(default=None, repr=False)
    """The trusted authorities; None: the system's."""

    def __post_init__(self) -> None:
        if self.password and self.security is Security.NONE:
            raise UsageError("a password on an open line can be read by everybody; use starttls or tls")


class EmailChannel:
    """Sends mail to `to`, one message for all of them."""

    def __init__(self, server: Server, sender: str, to: tuple[str, ...]) -> None:
        for address in (sender, *to):
            _check(address)
        if not to:
            raise UsageError("email needs somebody to send to")
        self._server = server
        self._sender = sender
        self._to = to

    async def tell(self, notice: Notice) -> None:
        # smtplib blocks. If we stop first, the thread ends by its own timeout.
        await asyncio.to_thread(self._send, compose(notice, self._sender, self._to))

    async def close(self) -> None:
        """Every message has its own connection."""

    def _send(self, message: EmailMessage) -> None:
        server, handed_over = self._server, False
        try:
            with self._connected() as smtp:
                if server.user:
                    smtp.login(server.user, server.password or "")
                handed_over = True
                smtp.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            text = f"{server.host} takes nothing for {', '.join(error.recipients)}: {min(codes)}"
            raise NotDelivered(text, transient=all(400 <= code < 500 for code in codes)) from None
        except smtplib.SMTPAuthenticationError as error:
            transient = 400 <= error.smtp_code < 500
            raise NotDelivered(
                f"{server.host} did not let {server.user} in: {error.smtp_code}", transient=transient
            ) from None
        except smtplib.SMTPResponseException as error:
            reply = (
                error.smtp_error.decode("utf-8", "replace")
                if isinstance(error.smtp_error, bytes)
                else str(error.smtp_error)
            )
            text = self._clean(f"{server.host} answered {error.smtp_code}: {' '.join(reply.split())}")
            raise NotDelivered(text, transient=not 500 <= error.smtp_code < 600) from None
        except smtplib.SMTPNotSupportedError as error:
            raise NotDelivered(f"{server.host}: {error}", transient=False) from None
        except ssl.SSLCertVerificationError as error:
            raise NotDelivered(f"{server.host}: {error.verify_message}", transient=False) from None
        except (OSError, smtplib.SMTPException) as error:
            raise NotDelivered(
                self._clean(f"{server.host}: {str(error) or type(error).__name__}"), uncertain=handed_over
            ) from None

    def _connected(self) -> smtplib.SMTP:
        server = self._server
        port = server.port or PORTS[server.security]
        if server.security is Security.TLS:
            return smtplib.SMTP_SSL(server.host, port, timeout=TIMEOUT, context=self._context())
        smtp = smtplib.SMTP(server.host, port, timeout=TIMEOUT)
        if server.security is Security.STARTTLS:
            try:
                smtp.starttls(context=self._context())
            except BaseException:
                smtp.close()
                raise
        return smtp

    def _context(self) -> ssl.SSLContext:
        return self._server.context or ssl.create_default_context()

    def _clean(self, text: str) -> str:
        password = self._server.password
        return (text.replace(password, "***") if password else text)[:200]


def compose(notice: Notice, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """A notice as an email."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = ", ".join(to)
    message["Subject"] = " ".join(f"[{notice.severity}] {notice.title}".split())
    message["Date"] = formatdate(notice.at)
    host = sender.rpartition("@")[2].rstrip(">")
    first = _id(f"{notice.key}\n{notice.since:.3f}", host)
    if notice.stage is NoticeStage.OPENED:
        message["Message-ID"] = first
    else:
        message["Message-ID"] = _id(
            f"{notice.key}\n{notice.since:.3f}\n{notice.stage}\n{notice.at:.3f}", host
        )
        message["In-Reply-To"] = message["References"] = first
    message["Auto-Submitted"] = "auto-generated"  # No out-of-office reply should answer us.
    message["X-Lifesigns-Key"] = notice.key
    message.set_content(_body(notice))
    return message


def _body(notice: Notice) -> str:
    lines = [notice.title, "", notice.text, ""] if notice.text else [notice.title, ""]
    facts: dict[str, object] = {"stage": notice.stage, "severity": notice.severity, "kind": notice.kind}
    facts |= {"group": notice.group, "since": written(notice.since), **notice.details, "more": notice.link}
    if notice.agents:
        more = f" and {notice.count - len(notice.agents)} more" if notice.count > len(notice.agents) else ""
        facts["agents"] = ", ".join(notice.agents) + more
    lines += [f"{name}: {value}" for name, value in facts.items() if value not in ("", None)]
    return "\n".join(lines) + "\n"


def _id(identity: str, host: str) -> str:
    digest = hashlib.sha256(identity.encode()).hexdigest()[:32]
    return f"<{digest}@{host or 'lifesigns.invalid'}>"


def _check(address: str) -> None:
    try:
        Address(addr_spec=address.rpartition("<")[2].rstrip(">") if "<" in address else address)
    except (ValueError, IndexError, TypeError) as error:
        raise UsageError(f"{address!r} is no address; it would be ops@example.org") from error
