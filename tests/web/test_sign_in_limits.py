"""Guesses at one account from many networks, and the browsers that its owner has used before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pyotp
import pytest
from flask import Flask
from flask.testing import FlaskClient

from survey.app import create_app
from survey.research.sign_in_limits import (
    DAY_TRIES,
    FREE_TRIES,
    MAX_DAY_TRIES,
    SLOWED_DOWN,
    KnownBrowsers,
    Throttle,
    Visitor,
)
from survey.store.sign_ins import UNKNOWN_ACCOUNT
from tests.conftest import EMAIL, PASSWORD, SECRET, hashed_password
from tests.web.researchers import send, sign_in, token
from tests.web.test_logins import Clock, clock  # noqa: F401  a fixture

pytestmark = pytest.mark.security

SIGN_IN = "/research/sign-in"
NETWORKS, GUESSES = 200, 2_000
NOBODY = "nobody@example.org"


class Guesser:
    """Guesses passwords from many networks, with the cookie and token of one page."""

    def __init__(self, app: Flask, networks: int = NETWORKS) -> None:
        self._networks = networks
        self._client = app.test_client()
        self._token = token(self._client.get(SIGN_IN))
        self._n = 0

    def guess(self, email: str) -> int:
        """Return the status of one wrong password, from the next network."""
        self._n += 1
        source = f"198.51.{self._n % self._networks}.7"
        form = {"csrf_token": self._token, "email": email, "password": f"guess {self._n}"}
        return self._client.post(
            SIGN_IN, data=form, environ_base={"REMOTE_ADDR": source}
        ).status_code


def from_network(client: FlaskClient, address: str) -> FlaskClient:
    client.environ_base["REMOTE_ADDR"] = address
    return client


def owner_of_known_browser(app: Flask) -> FlaskClient:
    """Return a browser in which the owner has signed in, and out again."""
    client = app.test_client()
    assert sign_in(client).status_code == 302
    assert send(client, "/research/sign-out", page="/research/account").status_code == 302
    return from_network(client, "203.0.113.9")


def guess_from_new_network(throttle: Throttle, email: str) -> str:
    """Use up the attempts that a network has without delay; return how the next one is answered."""
    visitor = Visitor("203.0.113.9")
    return [throttle.refusal(visitor, email, 1e9) for _ in range(DAY_TRIES + 1)][-1]


def guesses(app: Flask, clock: Clock) -> Iterator[int]:  # noqa: F811
    """Guess at a known address in 15 minutes; yield the statuses."""
    guesser = Guesser(app)
    for _ in range(GUESSES):
        clock.now += 900 / GUESSES
        yield guesser.guess(EMAIL)


@pytest.mark.web  # thousands of requests
def test_logins_few_of_2000_guesses_from_200_networks_are_checked(app, researcher, clock):  # noqa: F811
    """Meanwhile, the owner signs in with a known browser, and with new ones on other networks."""
    known = owner_of_known_browser(app)
    statuses = []
    for number, status in enumerate(guesses(app, clock)):
        statuses.append(status)
        if number % 500 == 250:
            assert sign_in(known).status_code == 302
            new_browser = from_network(app.test_client(), "203.0.113.10")
            assert sign_in(new_browser).status_code == 302
            in_attack = from_network(app.test_client(), "198.51.1.7")
            page = sign_in(in_attack)
            if number > 2 * NETWORKS + FREE_TRIES:
                assert (page.status_code, SLOWED_DOWN in page.text) == (429, True)
    # 20 at once, 6 within a minute, then one a minute; and two of each network.
    day_tries = DAY_TRIES * NETWORKS
    assert day_tries + 35 <= statuses.count(403) <= day_tries + 42
    assert statuses.count(429) == GUESSES - statuses.count(403)
    assert statuses[:FREE_TRIES] == [403] * FREE_TRIES


def test_logins_from_a_new_network_are_admitted_during_an_attack_until_500_in_a_day(store):
    throttle, now = Throttle(store, SECRET), 1e9
    admitted = 0
    for number in range(NETWORKS * 3):
        attacker = Visitor(f"198.51.{number % NETWORKS}.7")
        admitted += not throttle.refusal(attacker, EMAIL, now)
    assert admitted == FREE_TRIES + DAY_TRIES * NETWORKS
    home = Visitor("203.0.113.9")
    for _ in range(5):
        assert [throttle.refusal(home, EMAIL, now) for _ in range(DAY_TRIES)] == [""] * DAY_TRIES
        throttle.succeeded(home, EMAIL)
    # With even more networks, only slowed-down attempts are left.
    for number in range(100):
        admitted += not throttle.refusal(Visitor(f"192.0.2.{number}"), EMAIL, now)
    assert admitted <= FREE_TRIES + MAX_DAY_TRIES
    assert throttle.refusal(Visitor("203.0.113.10"), EMAIL, now) == SLOWED_DOWN
    assert not throttle.refusal(Visitor("203.0.113.10"), EMAIL, now + 60)


@pytest.mark.web
def test_logins_are_slowed_down_equally_for_known_and_unknown_addresses(app, researcher, clock):  # noqa: F811
    """The limits do not show whether an address has an account."""
    guessers = {email: Guesser(app, networks=5) for email in (EMAIL, NOBODY)}
    statuses = {email: [] for email in guessers}
    for number in range(40):
        clock.now += 1 + number % 3
        for email, guesser in guessers.items():
            statuses[email].append(guesser.guess(email))
    assert statuses[EMAIL] == statuses[NOBODY]
    assert 429 in statuses[EMAIL]


def test_logins_known_browser_has_ten_separate_attempts(app, researcher, clock):  # noqa: F811
    known = owner_of_known_browser(app)
    statuses = [sign_in(known, password="wrong").status_code for _ in range(11)]
    assert statuses == [403] * 10 + [429]
    # The failures of this browser slow down no others.
    elsewhere = from_network(app.test_client(), "198.51.100.1")
    assert [sign_in(elsewhere, password="wrong").status_code for _ in range(10)] == [403] * 10


def test_logins_accept_the_cookie_of_a_known_browser_only_for_its_account_and_server(
    app, researcher
):
    browser = owner_of_known_browser(app)
    value = browser.get_cookie("survey-browser", path=SIGN_IN).value
    altered = value[:5] + ("A" if value[5] != "A" else "B") + value[6:]
    other_secret = SECRET[::-1]
    for email, cookie, secret, is_known in (
        (EMAIL.upper(), value, SECRET, True),
        (NOBODY, value, SECRET, False),
        (EMAIL, altered, SECRET, False),
        (EMAIL, "", SECRET, False),
        (EMAIL, value, other_secret, False),
    ):
        headers = {"Cookie": f"survey-browser={cookie}"}
        with app.test_request_context(SIGN_IN, headers=headers):
            visitor = KnownBrowsers(secret, secure=False).visitor(email)
        assert bool(visitor.browser) == is_known, (email, cookie, secret)


def test_logins_remember_the_browser_in_a_cookie_for_the_sign_in_page_only(
    store, settings, researcher
):
    secure = replace(settings, public_url="https://survey.example.org")
    client = create_app(secure, store).test_client()
    options = {"base_url": "https://survey.example.org"}
    csrf_token = token(client.get(SIGN_IN, **options))
    form = {"csrf_token": csrf_token, "email": EMAIL, "password": PASSWORD}
    response = client.post(SIGN_IN, data=form, **options)
    (cookie,) = [
        value
        for value in response.headers.getlist("Set-Cookie")
        if value.startswith("__Secure-survey-browser=")
    ]
    flags = {flag for flag in cookie.split("; ")[1:] if not flag.startswith("Expires")}
    assert flags == {"Secure", "HttpOnly", f"Path={SIGN_IN}", "SameSite=Strict", "Max-Age=31536000"}
    assert EMAIL not in cookie


def test_logins_count_of_an_account_survives_a_flood_of_invented_names(store, monkeypatch):
    throttle = Throttle(store, SECRET)
    for number in range(FREE_TRIES):
        assert not throttle.refusal(Visitor(f"198.51.100.{number}"), EMAIL, 1e9)
    monkeypatch.setattr("survey.store.sign_ins.MAX_ATTEMPT_ROWS", 100)
    for number in range(300):
        throttle.refusal(Visitor(f"198.51.{number % 100}.1"), f"{number}@example.org", 1e9)
    assert guess_from_new_network(throttle, EMAIL) == SLOWED_DOWN


@pytest.mark.parametrize("settings", ["sqlite", "postgresql"], indirect=True)
def test_logins_find_an_account_by_the_spellings_that_share_its_limit(store):
    """Databases and Python lower different letters, so each spelling had a separate limit."""
    owner = store.add_researcher("info@example.org", hashed_password())
    throttle = Throttle(store, SECRET)
    spellings = ["info", "INFO", "\u0130nfo", "\u0131nfo", "in\ufb00o", "\uff29nfo"]
    accounts = [store.researcher(f"{name}@example.org") for name in spellings]
    assert accounts == [owner, owner, None, None, None, None]
    for number in range(FREE_TRIES):
        email = f"{spellings[number % 2]}@example.org"
        assert not throttle.refusal(Visitor(f"198.51.100.{number}"), email, 1e9)
    for name in spellings:
        email = f"{name}@example.org"
        is_slowed = guess_from_new_network(throttle, email) == SLOWED_DOWN
        assert is_slowed == (store.researcher(email) is not None), name
        store.add_failed_sign_in(email, 10**9)
    assert {key: failed.n for key, failed in store.failed_sign_ins().items()} == {
        owner.key: 2,
        UNKNOWN_ACCOUNT: 4,
    }


# -- failed attempts, for the owner and in the log


def test_logins_show_the_owner_and_the_administrator_the_failed_attempts(
    app, store, researcher, caplog
):
    owner = "owner@example.org"
    store.add_researcher(owner, hashed_password())
    administrator = app.test_client()
    assert sign_in(administrator).status_code == 302
    guesser = Guesser(app)
    assert [guesser.guess(owner) for _ in range(3)] == [403] * 3
    assert guesser.guess(NOBODY) == 403
    assert "3, the last at 20" in administrator.get("/research/people").text
    client = app.test_client()
    assert sign_in(client, owner).status_code == 302
    note = "Failed attempts since your last sign-in: 3, the last at 20"
    assert note in client.get("/research/").text
    assert note not in client.get("/research/").text
    log = administrator.get("/research/people/log").text
    assert "failed attempts before: 3, the last at 20" in log
    assert "198.51" not in log
    assert store.failed_sign_ins().keys() == {UNKNOWN_ACCOUNT}
    events = [record.getMessage() for record in caplog.records if "accounts" in record.name]
    assert events == ["failed sign-in"] * 4


def test_logins_fail_with_the_same_writes_for_known_and_unknown_addresses(app, store, researcher):
    """Otherwise, the response time would show which addresses have an account."""
    guesser, written = Guesser(app), {}
    for email in (EMAIL, NOBODY):
        guesser.guess(email)
        statements: list[str] = []
        store._connection().set_trace_callback(statements.append)
        guesser.guess(email)
        store._connection().set_trace_callback(None)
        written[email] = [re.sub(r"'[^']*'|\d+", "?", text) for text in statements]
    assert written[EMAIL] == written[NOBODY]
    assert any("failed_sign_in" in text for text in written[EMAIL])


def test_logins_wrong_codes_count_as_failed_until_the_right_one(app, store, researcher):
    secret = pyotp.random_base32()
    store.set_second_factor(store.researcher(EMAIL).key, secret, [])
    client = app.test_client()
    redirect = sign_in(client)
    assert send(client, redirect.location, code="no code").status_code == 403
    assert send(client, redirect.location, code=pyotp.TOTP(secret).now()).status_code == 302
    assert "since your last sign-in: 1, the last at 20" in client.get("/research/").text
