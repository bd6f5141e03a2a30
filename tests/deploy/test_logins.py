"""Signing in through the shipped nginx before two servers (security 17)."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import EMAIL, PASSWORD
from tests.deploy.headers import check_application_s
from tests.web.visits import SIGN_IN, Visit

pytestmark = [pytest.mark.web, pytest.mark.security]

TRIES, AT_ONCE = 1000, 8
COOKIE = "__Host-survey"
WIDER = ("rate=20r/m", "rate=5000r/s"), ("rate=50r/s", "rate=5000r/s")
"""The servers are to count by themselves, whatever stands before them."""


@pytest.fixture
def visit(behind, researcher):
    proxy = behind(*WIDER)
    return lambda source="127.0.0.1": Visit(lambda: proxy.connect(source))


def test_logins_of_a_thousand_tries_over_two_servers_ten_are_heard_and_the_owner_comes_in(visit):
    def tries(number: int) -> list[int]:
        guesser = visit()
        token = guesser.token()
        form = {"csrf_token": token, "email": EMAIL}
        guesses = [f"guess {number} {i} of a thousand" for i in range(TRIES // AT_ONCE)]
        return [guesser.post(SIGN_IN, **form, password=guess).status for guess in guesses]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        statuses = Counter(status for some in pool.map(tries, range(AT_ONCE)) for status in some)
    assert statuses == {403: 10, 429: TRIES - 10}
    # The right password is not heard from there any more, and is from anywhere else.
    refused = visit().sign_in()
    check_application_s((refused.status, refused.headers, b""), SIGN_IN, 429)
    owner = visit("127.0.0.2")
    assert owner.sign_in().status == 302
    assert owner.get("/research/").status == 200


def test_logins_of_many_accounts_from_one_address_are_few(visit):
    guesser = visit()
    token = guesser.token()
    statuses = Counter(
        guesser.post(SIGN_IN, csrf_token=token, email=f"{i}@example.org", password=PASSWORD).status
        for i in range(80)
    )
    assert statuses == {403: 50, 429: 30}


def test_logins_take_no_session_that_somebody_else_fixed(visit):
    attacker, victim = visit(), visit("127.0.0.2")
    attacker.token()
    victim.cookies |= attacker.cookies
    assert victim.sign_in().status == 302
    assert victim.cookies[COOKIE] != attacker.cookies[COOKIE]
    assert victim.get("/research/").status == 200
    assert attacker.get("/research/").location.startswith(SIGN_IN)


def test_logins_give_a_cookie_for_this_host_alone(visit):
    page = visit().sign_in()
    (cookie,) = [value for name, value in page.headers if name == "set-cookie"]
    name, *attributes = cookie.split("; ")
    assert name.startswith(f"{COOKIE}=")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict", "Secure"]


def test_logins_end_on_both_servers_at_once(visit):
    here, stolen = visit(), visit("127.0.0.2")
    here.sign_in()
    stolen.cookies |= here.cookies
    assert {stolen.get("/research/").status for _ in range(6)} == {200}
    account = here.get("/research/account").text
    token = account.partition('name="csrf_token" type="hidden" value="')[2].partition('"')[0]
    assert here.post("/research/sign-out", csrf_token=token).status == 302
    assert {stolen.get("/research/").status for _ in range(6)} == {302}
