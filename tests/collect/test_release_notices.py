"""Messages about releases reach mailboxes and webhooks, once, signed, and never for one report."""

from __future__ import annotations

import hmac
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from click.testing import CliRunner

from survey.cli import main
from survey.collect.publication import publish
from survey.collect.release_notices import check_webhook, send_due, webhook_secret
from survey.errors import DesignError, SettingsError, StoreError
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import ReleaseNotice, Store, find_survey
from tests.conftest import SECRET, SMALL, TODAY, free_port
from tests.store.reports import add, publish_pending, random_reports


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server_context(authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture(scope="module")
def trusting(authority) -> ssl.SSLContext:
    """Return a client's context that trusts this test's authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@dataclass
class Receiver:
    """A webhook that answers with `status`, and its requests: path, headers and body."""

    port: int
    status: int = 204
    requests: list[tuple[str, Message, bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/hook?team=a"


@pytest.fixture
def receiver(server_context) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.requests.append((self.path, self.headers, body))
            self.send_response(state.status)
            self.send_header("Location", state.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = server_context.wrap_socket(server.socket, server_side=True)
        state = Receiver(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield state
        server.shutdown()
        thread.join()


class Mailbox:
    """A mail server's handler that keeps every message."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.envelopes.append(envelope)
        return "250 OK"

    def messages(self) -> list[Message]:
        return [message_from_bytes(envelope.content, policy=default) for envelope in self.envelopes]


@pytest.fixture
def mail_server() -> Iterator[tuple[str, Mailbox]]:
    mailbox = Mailbox()
    controller = Controller(mailbox, hostname="127.0.0.1", port=free_port())
    controller.start()
    yield f"smtp://127.0.0.1:{controller.port}", mailbox
    controller.stop()


@pytest.fixture
def ada(store: Store, small) -> int:
    key = store.add_researcher("ada@example.org", "hash").key
    store.set_role("small", key, "owner")
    return key


def configured(settings: Settings, **values: str) -> Settings:
    return Settings(secret=SECRET, database=settings.database, keys=settings.keys, **values)


def release(store: Store, survey, n: int) -> None:
    add(store, survey, random_reports(n))
    publish_pending(store, survey)


def test_a_webhook_gets_one_signed_message_for_each_release(
    store, small, settings, ada, receiver, trusting
):
    release(store, small, 25)
    store.add_release_notice(ReleaseNotice("small", ada, receiver.url))
    hooks = configured(settings, webhook_hosts=f"localhost:{receiver.port}")
    assert list(send_due(store, hooks, trusting)) == [], "the release was before the webhook"
    add(store, small, random_reports(24))
    assert list(send_due(store, hooks, trusting)) == [], "pending reports are no release"
    release(store, small, 26)
    assert [problem for _, problem in send_due(store, hooks, trusting)] == [""]
    assert list(send_due(store, hooks, trusting)) == []
    ((path, headers, body),) = receiver.requests
    assert path == "/hook?team=a"
    key = webhook_secret(hooks, "small", receiver.url).encode()
    assert headers["Survey-Signature"] == f"sha256={hmac.digest(key, body, 'sha256').hex()}"
    content = json.loads(body)
    assert (content["event"], content["survey"]) == ("release", "small")
    assert (content["n_new"], content["n_released"]) == (50, 75)
    assert content["results"] == "http://127.0.0.1:8000/research/surveys/small"
    assert set(content) == {
        *("event", "survey", "title", "n_new", "n_released", "results", "sent"),
    }


def test_an_e_mail_states_the_numbers_and_no_result(store, small, settings, ada, mail_server):
    url, mailbox = mail_server
    store.add_release_notice(ReleaseNotice("small", ada))
    mails = configured(settings, smtp=url, mail_from="surveys@example.org")
    release(store, small, 25)
    assert [problem for _, problem in send_due(store, mails)] == [""]
    assert list(send_due(store, mails)) == []
    (message,) = mailbox.messages()
    assert (message["From"], message["To"]) == ("surveys@example.org", "ada@example.org")
    assert message["Subject"] == "New responses: small"
    assert small.definition.title in message.get_content()
    text = message.get_content()
    assert "”: 25." in text
    assert "http://127.0.0.1:8000/research/surveys/small/share#messages" in text
    assert "%" not in text


def test_a_title_adds_no_header_to_an_e_mail(store, settings, mail_server):
    url, mailbox = mail_server
    hidden = "=?utf-8?q?x=0D=0AReply-To:_evil=40example.net=0D=0A=0D=0Aclick?="
    definition = SMALL.replace('title = "', f'title = "{hidden} ', 1)
    survey = publish(store, load(definition.encode(), "small.toml", Caps()), TODAY)
    ada = store.add_researcher("ada@example.org", "hash").key
    store.set_role("small", ada, "owner")
    store.add_release_notice(ReleaseNotice("small", ada))
    release(store, survey, 25)
    mails = configured(settings, smtp=url, mail_from="surveys@example.org")
    assert [problem for _, problem in send_due(store, mails)] == [""]
    (message,) = mailbox.messages()
    assert message["Reply-To"] is None
    assert hidden in message.get_content()


def test_a_webhook_that_answers_byte_by_byte_is_given_up(
    store, small, settings, ada, server_context, trusting, monkeypatch
):
    monkeypatch.setattr("survey.collect.release_notices.MAX_SECONDS", 0.5)

    class Dripping(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with suppress(OSError):
                for character in b"HTTP/1.1 204 No Content\r\n\r\n":
                    if stop.wait(0.5):
                        return
                    self.wfile.write(bytes([character]))

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    stop = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Dripping) as server:
        server.socket = server_context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever).start()
        url = f"https://localhost:{server.server_address[1]}/"
        store.add_release_notice(ReleaseNotice("small", ada, url))
        release(store, small, 25)
        hooks = configured(settings, webhook_hosts=url.split("/")[2])
        ((_, problem),) = send_due(store, hooks, trusting)
        stop.set()
        server.shutdown()
    assert problem.startswith("the connection failed")


def test_a_message_that_fails_is_sent_again_and_stops_no_other(
    store, small, settings, ada, receiver, trusting, mail_server
):
    url, mailbox = mail_server
    for notice in (ReleaseNotice("small", ada), ReleaseNotice("small", ada, receiver.url)):
        store.add_release_notice(notice)
    both = configured(
        settings,
        smtp=url,
        mail_from="surveys@example.org",
        webhook_hosts=f"localhost:{receiver.port}",
    )
    receiver.status = 307
    release(store, small, 25)
    problems = [problem for _, problem in send_due(store, both, trusting)]
    assert problems == ["", "the webhook returned status 307"]
    assert len(receiver.requests) == 1, "it must not follow the redirect"
    assert [due.notice.problem for due in store.release_notices("small")] == problems
    receiver.status = 200
    assert [problem for _, problem in send_due(store, both, trusting)] == [""]
    assert list(send_due(store, both, trusting)) == []
    assert [due.notice.problem for due in store.release_notices("small")] == ["", ""]
    assert len(mailbox.envelopes) == 1


ODD_ADDRESSES = (
    *("a@", "@b", "a@b\r\nBcc: c@example.org", "a b@c", '"@', "<>@<>", "j\u00fcrgen@example.org"),
    *("a@example.org, b@example.org", "a@[", "(@", "a@example.org;"),
    *("=?utf-8?q?x=0ABcc?=@example.org", "=?utf-8?q?x?=@example.org"),
)


def test_an_odd_e_mail_address_stops_no_other_message(store, small, settings, ada, mail_server):
    url, mailbox = mail_server
    for address in ODD_ADDRESSES:
        odd = store.add_researcher(address, "hash").key
        store.set_role("small", odd, "editor")
        store.add_release_notice(ReleaseNotice("small", odd))
    store.add_release_notice(ReleaseNotice("small", ada))
    release(store, small, 25)
    mails = configured(settings, smtp=url, mail_from="surveys@example.org")
    outcomes = list(send_due(store, mails))
    assert len(outcomes) == len(ODD_ADDRESSES) + 1
    assert [problem for due, problem in outcomes if due.email == "ada@example.org"] == [""]
    recipients = {address for envelope in mailbox.envelopes for address in envelope.rcpt_tos}
    assert recipients == {"ada@example.org"}


def test_a_survey_that_cannot_be_read_stops_no_message_about_others(
    store, small, settings, ada, mail_server, monkeypatch
):
    url, mailbox = mail_server
    other = publish(store, load(SMALL.replace("small", "aaa").encode(), "a.toml", Caps()), TODAY)
    store.set_role("aaa", ada, "owner")
    for survey in (other, small):
        store.add_release_notice(ReleaseNotice(survey.slug, ada))
        release(store, survey, 25)

    def find(store: Store, slug: str):
        if slug == "aaa":
            raise StoreError("the definition is damaged")
        return find_survey(store, slug)

    monkeypatch.setattr("survey.collect.release_notices.find_survey", find)
    mails = configured(settings, smtp=url, mail_from="surveys@example.org")
    outcomes = {due.notice.slug: problem for due, problem in send_due(store, mails)}
    assert outcomes == {"aaa": "the definition is damaged", "small": ""}
    assert len(mailbox.envelopes) == 1


def test_a_message_is_given_up_after_many_attempts_and_the_next_release_has_its_own(
    store, small, settings, ada, receiver, trusting, monkeypatch
):
    store.add_release_notice(ReleaseNotice("small", ada, receiver.url))
    hooks = configured(settings, webhook_hosts=f"localhost:{receiver.port}")
    receiver.status = 500
    release(store, small, 25)
    monkeypatch.setattr("survey.store.shared_results.MAX_DELIVERY_TRIES", 5)
    attempts = 0
    while list(send_due(store, hooks, trusting)):
        attempts += 1
        assert attempts <= 5
    assert attempts == 5
    assert store.release_notices("small")[0].notice.problem, "the owner must see the reason"
    receiver.status = 200
    release(store, small, 25)
    assert [problem for _, problem in send_due(store, hooks, trusting)] == [""]
    assert json.loads(receiver.requests[-1][2])["n_new"] == 25


def test_nothing_is_sent_over_a_connection_that_is_not_trusted(
    store, small, settings, ada, receiver, mail_server
):
    store.add_release_notice(ReleaseNotice("small", ada, receiver.url))
    hooks = configured(settings, webhook_hosts=f"localhost:{receiver.port}")
    release(store, small, 25)
    ((_, problem),) = send_due(store, hooks)
    assert problem.startswith("the server's certificate is not valid")
    ((_, problem),) = send_due(store, configured(settings, webhook_hosts="hooks.example.org"))
    assert problem.startswith("the operator does not allow messages to localhost")
    assert receiver.requests == []


ALLOWED = "hooks.example.org hooks.example.org:8443 other.example.org:443/"
ADDRESSES = {
    "https://hooks.example.org/a?b=c": True,
    "https://hooks.example.org:443/a": True,
    "https://hooks.example.org:8443/a": True,
    "https://other.example.org/a": True,
    "https://hooks.example.org:444/a": False,
    "http://hooks.example.org/a": False,
    "https://hooks.example.org.evil.example/a": False,
    "https://hooks.example.org@evil.example/a": False,
    "https://user:word@hooks.example.org/a": False,
    "https://evil.example\\@hooks.example.org/a": False,
    "https://hooks.example.org/a b": False,
    "https://hooks.example.org/a\r\nX: y": False,
    "https://127.0.0.1/a": False,
    "https://[::1]/a": False,
    "https://hooks.example.org:99999/a": False,
    "https:///a": False,
    "": False,
}


def test_only_https_addresses_of_allowed_hosts_can_be_webhooks():
    settings = Settings(webhook_hosts=ALLOWED)
    for url, is_allowed in ADDRESSES.items():
        try:
            check_webhook(url, settings)
        except DesignError:
            assert not is_allowed, url
        else:
            assert is_allowed, url


def test_the_command_names_the_message_that_failed(store, small, settings, ada, monkeypatch):
    store.add_release_notice(ReleaseNotice("small", ada, "https://hooks.example.org/secret"))
    release(store, small, 25)
    environment = {"SURVEY_DATABASE": settings.database, "SURVEY_SECRET": SECRET}
    run = CliRunner().invoke(main, ["notify"], env=environment)
    assert run.exit_code == 1
    assert "small: not sent to hooks.example.org: the operator does not allow" in run.stderr
    assert "secret" not in run.stderr, "a webhook's path can be a password"
    assert run.stdout == "sent 0 messages\n"


REJECTED: dict[str, dict[str, str]] = {
    "SURVEY_SMTP must be": {"smtp": "http://user:hidden@mail.example.org"},
    "SURVEY_SMTP must be smtps": {"smtp": "smtp://u:p%C3%A4ss@localhost", "mail_from": "a@b.org"},
    "SURVEY_SMTP must be smtps:": {"smtp": "smtp://a..b", "mail_from": "a@b.org"},
    "SURVEY_MAIL_FROM = 'x' must be": {"smtp": "smtp://localhost", "mail_from": "x"},
    "SURVEY_WEBHOOK_HOSTS = ": {"webhook_hosts": "hooks.example.org/a"},
}


def test_settings_reject_what_is_no_mail_server_sender_or_host():
    for message, values in REJECTED.items():
        with pytest.raises(SettingsError, match=message) as error:
            Settings(**values)
        assert "hidden" not in str(error.value)


def test_the_secret_of_a_webhook_is_in_no_file(store, small, settings, ada):
    url = "https://hooks.example.org/a"
    store.add_release_notice(ReleaseNotice("small", ada, url))
    hooks = configured(settings, webhook_hosts="hooks.example.org")
    secret = webhook_secret(hooks, "small", url)
    others = {webhook_secret(hooks, "small", f"{url}b"), webhook_secret(hooks, "other", url)}
    assert len({secret, *others}) == 3
    files = Path(settings.database.removeprefix("sqlite:///")).parent.rglob("*")
    assert not any(secret.encode() in file.read_bytes() for file in files if file.is_file())
