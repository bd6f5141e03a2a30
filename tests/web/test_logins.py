"""Signing in: session lifetime, password hashes and the cost of unknown addresses."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace

import pyotp
import pytest
from argon2 import Parameters, PasswordHasher, Type, extract_parameters
from click.testing import CliRunner

from survey.app import create_app
from survey.cli import main
from survey.research.credentials import Passwords
from survey.settings import Settings
from tests.conftest import EMAIL, PASSWORD, SECRET, hashed_password
from tests.web.researchers import send, sign_in
from tests.web.routes import Routes

pytestmark = pytest.mark.security

PAGE = "/research/account"
ATTACKER = "mallory@example.org"


# -- session lifetime


@dataclass
class Clock:
    """Replace the clock of this process."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(time, "time", fake)
    return fake


@pytest.mark.parametrize(("seconds", "status"), [(7_199, 200), (7_201, 302)])
def test_logins_idle_session_ends_after_two_hours(client, researcher, clock, seconds, status):
    assert sign_in(client).status_code == 302
    clock.now += seconds
    assert client.get(PAGE).status_code == status


@pytest.mark.parametrize(("seconds", "status"), [(43_199, 200), (43_201, 302)])
def test_logins_session_in_use_ends_after_twelve_hours(client, researcher, clock, seconds, status):
    assert sign_in(client).status_code == 302
    began = clock.now
    for hour in range(1, 12):
        clock.now = began + 3_600 * hour
        assert client.get(PAGE).status_code == 200
    clock.now = began + seconds
    assert client.get(PAGE).status_code == status


def test_logins_every_page_view_restarts_the_two_hours(client, researcher, clock):
    assert sign_in(client).status_code == 302
    for _ in range(3):
        clock.now += 7_000
        assert client.get(PAGE).status_code == 200
    clock.now += 7_201
    assert client.get(PAGE).status_code == 302


# -- password hashes and the cost of checking one


def hash_prefix(cost: int) -> str:
    """Return the prefix of an argon2id hash with this number of passes over 64 MiB."""
    return f"$argon2id$v=19$m=65536,t={cost},p=4$"


def test_logins_hash_is_argon2id_with_three_passes_by_default():
    assert Settings(secret=SECRET).password_cost == 3
    assert (
        Passwords(Settings(secret=SECRET).password_cost).hash(PASSWORD).startswith(hash_prefix(3))
    )


@pytest.mark.parametrize("cost", [None, "2"])
@pytest.mark.parametrize("command", ["add", "reset"])
def test_logins_hash_created_on_the_command_line_has_the_configured_cost(
    store, settings, monkeypatch, cost, command
):
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    monkeypatch.setenv("SURVEY_SECRET", SECRET)
    if cost:
        monkeypatch.setenv("SURVEY_PASSWORD_COST", cost)
    else:
        monkeypatch.delenv("SURVEY_PASSWORD_COST", raising=False)
    if command == "reset":
        store.add_researcher(EMAIL, hashed_password())
    response = CliRunner().invoke(main, ["researcher", command, EMAIL, "--password", PASSWORD])
    assert response.exit_code == 0, response.output
    assert store.researcher(EMAIL).password_hash.startswith(hash_prefix(int(cost or 3)))


def test_logins_hash_created_on_a_page_has_the_configured_cost(store, settings, small, researcher):
    app = create_app(replace(settings, password_cost=2), store)
    client = app.test_client()
    assert not store.researcher(EMAIL).password_hash.startswith(hash_prefix(2))
    assert sign_in(client).status_code == 302
    assert store.researcher(EMAIL).password_hash.startswith(hash_prefix(2))
    before, new = store.researcher(EMAIL).password_hash, "copper kite unfolds slowly"
    send(client, "/research/account/password", current=PASSWORD, new=new, again=new)
    assert store.researcher(EMAIL).password_hash.startswith(hash_prefix(2))
    assert store.researcher(EMAIL).password_hash != before
    join_path = f"/research/join/{Routes(app, store, small, EMAIL).link()}"
    send(app.test_client(), join_path, email="new@example.org", password=PASSWORD)
    assert store.researcher("new@example.org").password_hash.startswith(hash_prefix(2))


@pytest.fixture
def work(monkeypatch) -> list[tuple[str, Parameters]]:
    """Record the calls of argon2 in order; they take nearly all the time of signing in."""
    calls: list[tuple[str, Parameters]] = []
    verify, make = PasswordHasher.verify, PasswordHasher.hash

    def record_verify(self, hashed, password):
        calls.append(("verify", extract_parameters(hashed)))
        return verify(self, hashed, password)

    def record_hash(self, password, **options):
        result = make(self, password, **options)
        calls.append(("hash", extract_parameters(result)))
        return result

    monkeypatch.setattr(PasswordHasher, "verify", record_verify)
    monkeypatch.setattr(PasswordHasher, "hash", record_hash)
    return calls


@pytest.mark.parametrize("cost", [1, 2])
@pytest.mark.parametrize(
    ("email", "password", "status"),
    [
        (EMAIL, PASSWORD, 302),
        (EMAIL, "wrong password", 403),
        ("nobody@example.org", PASSWORD, 403),
        ("nobody@example.org", "x", 403),
        ("x", "x" * 1_000, 403),
    ],
)
@pytest.mark.web
def test_logins_cost_the_same_work_for_known_and_unknown_addresses(
    store, settings, work, cost, email, password, status
):
    client = create_app(replace(settings, password_cost=cost), store).test_client()
    store.add_researcher(EMAIL, Passwords(cost).hash(PASSWORD))
    # The first verification in a process also computes the placeholder hash for unknown addresses.
    Passwords(cost).verify(None, "")
    work.clear()
    assert sign_in(client, email, password).status_code == status
    parameters = Parameters(
        type=Type.ID,
        version=19,
        salt_len=16,
        hash_len=32,
        time_cost=cost,
        memory_cost=65_536,
        parallelism=4,
    )
    assert work == [("verify", parameters)]


# -- a session cookie planted by an attacker


def by_password(client, store) -> None:
    assert sign_in(client).status_code == 302


def by_two_factor(client, store) -> None:
    secret = pyotp.random_base32()
    store.set_second_factor(store.researcher(EMAIL).key, secret, [])
    redirect = sign_in(client)
    assert "/research/sign-in/code" in redirect.location
    response = send(client, redirect.location, code=pyotp.TOTP(secret).now())
    assert (response.status_code, response.location) == (302, "/research/")


def secrets_in(client) -> dict[str, str]:
    """Return the secrets in the session cookie."""
    with client.session_transaction() as session:
        return {name: session[name] for name in ("token", "csrf_token") if name in session}


@pytest.mark.parametrize("way", [by_password, by_two_factor])
@pytest.mark.parametrize("planted", ["anonymous", "signed in"])
def test_logins_start_a_new_session_despite_a_planted_cookie(app, store, researcher, planted, way):
    attacker, victim = app.test_client(), app.test_client()
    store.add_researcher(ATTACKER, hashed_password())
    if planted == "signed in":
        assert sign_in(attacker, ATTACKER).status_code == 302
        attacker.get(PAGE)
    else:
        attacker.get("/research/sign-in")
    before = secrets_in(attacker)
    assert "csrf_token" in before
    assert ("token" in before) == (planted == "signed in")
    victim.set_cookie("survey", attacker.get_cookie("survey").value)
    way(victim, store)
    assert EMAIL in victim.get(PAGE).text
    after = secrets_in(victim)
    assert re.fullmatch(r"[\w-]{43}", after["token"])
    assert not {*before.values()} & {*after.values()}
    assert attacker.get(PAGE).status_code == 302


@pytest.mark.parametrize("planted", ["anonymous", "signed in"])
def test_logins_by_invitation_link_start_a_new_session_too(app, store, small, researcher, planted):
    client = app.test_client()
    if planted == "signed in":
        assert sign_in(client).status_code == 302
    path = f"/research/join/{Routes(app, store, small, EMAIL).link()}"
    client.get(path)
    before, cookie = secrets_in(client), client.get_cookie("survey").value
    send(client, path, email="new@example.org", password=PASSWORD)
    assert client.get(PAGE).status_code == 200
    assert not {*before.values()} & {*secrets_in(client).values()}
    second_client = app.test_client()
    second_client.set_cookie("survey", cookie)
    assert second_client.get(PAGE).status_code == 302
