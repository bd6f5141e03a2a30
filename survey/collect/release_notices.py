"""Messages about releases, by e-mail and to webhooks; `survey notify` sends them.

Neither the server nor the keeper may open connections to other machines, so a separate job sends
the messages. They contain counts that the results pages also show, but no results.
"""

from __future__ import annotations

import hmac
import http.client
import json
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from survey.errors import DesignError, SurveyError
from survey.settings import Settings, host_of, is_email, is_loopback
from survey.store import DueNotice, Store, find_survey
from survey.version import __version__

TIMEOUT_SECONDS = 10.0
"""Maximum wait for each step of a connection."""

MAX_SECONDS = 30.0
"""Maximum duration of a request to a webhook."""

MAX_URL_LENGTH = 500

SIGNATURE = "Survey-Signature"
"""Header with `sha256=` and the HMAC-SHA-256 of the body, in hex, under the webhook's secret."""


@dataclass(frozen=True)
class ReleaseMessage:
    """What a message states: the survey, and its new and all released reports."""

    slug: str
    title: str
    n_new: int
    n_released: int
    results_url: str
    share_url: str
    sent: datetime


class DeliveryError(SurveyError):
    """A message was not delivered; the Share page shows the reason."""


def check_webhook(url: str, settings: Settings) -> None:
    """Raise DesignError unless a URL is https and its host is in SURVEY_WEBHOOK_HOSTS."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme == "https" and parts.port != 0 and len(url) <= MAX_URL_LENGTH
    except ValueError:
        is_valid = False
    if not is_valid or not url.isascii() or not url.isprintable() or " " in url or "#" in url:
        raise DesignError(
            f"enter an address that starts with https:// and has at most {MAX_URL_LENGTH} "
            f"characters (found {url[:80]!r})"
        )
    host = host_of(f"https://{parts.netloc}")
    # Otherwise researchers could reach any machine on the operator's network.
    if host not in {host_of(f"https://{allowed}") for allowed in settings.webhook_hosts.split()}:
        raise DesignError(
            f"the operator does not allow messages to {host[:80]}; allowed hosts: "
            f"{settings.webhook_hosts or 'none'}"
        )


def webhook_secret(settings: Settings, slug: str, url: str) -> str:
    """Return the secret that signs the messages to a webhook, in hex.

    It is derived from the instance's secret, so neither the database nor a backup contains it.
    """
    message = f"webhook\0{slug}\0{url}".encode()
    return hmac.digest(settings.with_real_secret().secret.encode(), message, "sha256").hex()


def send_due(
    store: Store, settings: Settings, context: ssl.SSLContext | None = None
) -> Iterator[tuple[DueNotice, str]]:
    """Send all messages that are due; yield each notice, and why it failed or "".

    A failed message does not stop the others. After a crash, a message may be sent twice, but none
    is lost.
    """
    context = context or ssl.create_default_context()
    due_notices = store.due_notices()
    if any(due.notice.url for due in due_notices):
        # A missing secret is a mistake of the operator, to be found before anything is sent.
        settings.with_real_secret()
    for due in due_notices:
        problem = ""
        try:
            message = _message(store, settings, due)
            if due.notice.url:
                _post(message, due.notice.url, settings, context)
            else:
                _mail(message, due.email, settings, context)
        except SurveyError as error:
            problem = str(error)
        store.record_delivery(due, problem)
        yield due, problem


def _message(store: Store, settings: Settings, due: DueNotice) -> ReleaseMessage:
    slug, pages = due.notice.slug, f"{settings.researchers_url}/research/surveys/{due.notice.slug}"
    return ReleaseMessage(
        slug=slug,
        title=" ".join(find_survey(store, slug).definition.title.split()),
        n_new=due.n_released - due.notice.n,
        n_released=due.n_released,
        results_url=pages,
        share_url=f"{pages}/share#messages",
        sent=datetime.now(UTC),
    )


@contextmanager
def _delivery() -> Iterator[None]:
    """Turn network and protocol errors into a DeliveryError with a reason."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        reason = f"the server's certificate is not valid: {error.verify_message}"
    except TimeoutError:
        reason = f"the server did not answer within {TIMEOUT_SECONDS:g} seconds"
    except smtplib.SMTPException as error:
        # The text of the error contains the address, or what the mail server says of its accounts.
        reason = f"the mail server rejected the message ({type(error).__name__})"
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = f"the connection failed: {error}"[:200]
    else:
        return
    raise DeliveryError(reason)


def _post(message: ReleaseMessage, url: str, settings: Settings, context: ssl.SSLContext) -> None:
    """Send a signed message to a webhook; raise DeliveryError, also for a redirect."""
    # The operator may have removed the host since the webhook was added.
    check_webhook(url, settings)
    content = {
        "event": "release",
        "survey": message.slug,
        "title": message.title,
        "n_new": message.n_new,
        "n_released": message.n_released,
        "results": message.results_url,
        "sent": message.sent.isoformat(timespec="seconds"),
    }
    body = json.dumps(content).encode()
    key = webhook_secret(settings, message.slug, url).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"ldp-survey/{__version__}",
        SIGNATURE: f"sha256={hmac.digest(key, body, 'sha256').hex()}",
    }
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with _delivery():
        connection = http.client.HTTPSConnection(
            parts.netloc, timeout=TIMEOUT_SECONDS, context=context
        )
        # A receiver that sends a byte now and then would block the job forever.
        end = threading.Timer(MAX_SECONDS, _shut_down, [connection])
        end.start()
        try:
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
        finally:
            end.cancel()
            connection.close()
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise DeliveryError(f"the webhook returned status {status}")


def _shut_down(connection: http.client.HTTPSConnection) -> None:
    """End a connection that another thread uses, which then gets an error."""
    with suppress(OSError):
        if connection.sock is not None:
            connection.sock.shutdown(socket.SHUT_RDWR)


MAIL = """\
New responses released for “{title}”: {n_new:,}.
Total released so far: {n_released:,}.

Results: {results}

You are receiving this e-mail because you requested it on the survey’s Share page.
To stop these e-mails, go to {share}
"""


def _mail(
    message: ReleaseMessage, address: str, settings: Settings, context: ssl.SSLContext
) -> None:
    """Send an e-mail to a researcher."""
    if not settings.smtp:
        raise DeliveryError("e-mail is turned off on this server")
    # A list would reach several people, and Python raises other errors for invalid addresses.
    if not is_email(address):
        raise DeliveryError(f"{address!r} is not an e-mail address to which this server can send")
    mail = EmailMessage()
    with _delivery():
        mail["From"], mail["To"] = settings.mail_from, address
        # Not the title: Python decodes encoded words, which can contain further headers.
        mail["Subject"] = f"New responses: {message.slug}"
        mail["Date"] = format_datetime(message.sent)
        mail["Message-ID"] = make_msgid(domain=settings.mail_from.rpartition("@")[2])
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(
            MAIL.format(
                title=message.title,
                n_new=message.n_new,
                n_released=message.n_released,
                results=message.results_url,
                share=message.share_url,
            )
        )
        with _smtp(settings.smtp, context) as connection:
            connection.send_message(mail)


@contextmanager
def _smtp(url: str, context: ssl.SSLContext) -> Iterator[smtplib.SMTP]:
    """Connect to a mail server: with TLS, unless it runs on this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection: smtplib.SMTP
    if parts.scheme == "smtps":
        connection = smtplib.SMTP_SSL(
            host, parts.port or smtplib.SMTP_SSL_PORT, timeout=TIMEOUT_SECONDS, context=context
        )
    else:
        connection = smtplib.SMTP(host, parts.port or smtplib.SMTP_PORT, timeout=TIMEOUT_SECONDS)
    with connection:
        if parts.scheme == "smtp" and not is_loopback(host):
            connection.starttls(context=context)
        if parts.username:
            connection.login(unquote(parts.username), unquote(parts.password or ""))
        yield connection
