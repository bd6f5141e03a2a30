"""Signing in through the shipped nginx before two servers (security 17)."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import EMAIL, PASSWORD
from tests.deploy.headers import check_application
from tests.web.clients import SIGN_IN, WebClient

pytestmark = [pytest.mark.web, pytest.mark.security]

GUESSES, PARALLEL = 1000, 8
COOKIE = "__Host-survey"
WIDER = ("rate=20r/m", "rate=5000r/s"), ("rate=50r/s", "rate=5000r/s")
"""The servers must count attempts themselves, even if the proxy does not limit them."""


@pytest.fixture
def visit(start_proxy, researcher):
    proxy = start_proxy(*WIDER)
    return lambda source="127.0.0.1": WebClient(lambda: proxy.research.connect(source))


def test_logins_only_ten_of_a_thousand_guesses_are_checked_and_the_owner_can_still_sign_in(visit):
    def guess_passwords(number: int) -> list[int]:
        guesser = visit()
        token = guesser.token()
        form = {"csrf_token": token, "email": EMAIL}
        guesses = [f"guess {number} {i} of a thousand" for i in range(GUESSES // PARALLEL)]
        return [guesser.post(SIGN_IN, **form, password=guess).status for guess in guesses]

    with ThreadPoolExecutor(PARALLEL) as pool:
        statuses = Counter(
            status for part in pool.map(guess_passwords, range(PARALLEL)) for status in part
        )
    assert statuses == {403: 10, 429: GUESSES - 10}
    # The correct password is rejected from that address and accepted from any other.
    response = visit().sign_in()
    check_application((response.status, response.headers, b""), SIGN_IN, 429)
    owner = visit("127.0.0.2")
    assert owner.sign_in().status == 302
    assert owner.get("/research/").status == 200


def test_logins_to_many_accounts_from_one_address_are_limited(visit):
    guesser = visit()
    token = guesser.token()
    statuses = Counter(
        guesser.post(SIGN_IN, csrf_token=token, email=f"{i}@example.org", password=PASSWORD).status
        for i in range(80)
    )
    assert statuses == {403: 50, 429: 30}


def test_logins_replace_a_session_that_an_attacker_fixed(visit):
    attacker, victim = visit(), visit("127.0.0.2")
    attacker.token()
    victim.cookies |= attacker.cookies
    assert victim.sign_in().status == 302
    assert victim.cookies[COOKIE] != attacker.cookies[COOKIE]
    assert victim.get("/research/").status == 200
    assert attacker.get("/research/").location.startswith(SIGN_IN)


def test_logins_set_a_session_cookie_for_this_host_only(visit):
    page = visit().sign_in()
    (cookie,) = [
        value
        for name, value in page.headers
        if name == "set-cookie" and value.startswith("__Host-")
    ]
    name, *attributes = cookie.split("; ")
    assert name.startswith(f"{COOKIE}=")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict", "Secure"]


def test_logins_end_on_both_servers_at_the_same_time(visit):
    visitor, thief = visit(), visit("127.0.0.2")
    visitor.sign_in()
    thief.cookies |= visitor.cookies
    assert {thief.get("/research/").status for _ in range(6)} == {200}
    account = visitor.get("/research/account").text
    token = account.partition('name="csrf_token" type="hidden" value="')[2].partition('"')[0]
    assert visitor.post("/research/sign-out", csrf_token=token).status == 302
    assert {thief.get("/research/").status for _ in range(6)} == {302}
