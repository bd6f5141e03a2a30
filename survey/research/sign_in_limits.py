"""Limits on attempts to sign in, and the browsers in which an account has signed in before.

The server slows down guesses per network, and per account over all networks. A stranger who keeps
guessing must not lock the owner out. Therefore, each browser in which the owner has signed in has
separate attempts (after the OWASP article "Slow Down Online Guessing Attacks with Device Cookies").
For an owner in a new browser, each network has a few attempts a day that others cannot use up.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address, ip_network

from flask import after_this_request, request
from itsdangerous import BadSignature, URLSafeTimedSerializer
from werkzeug.wrappers import Response

from survey.store import AttemptLimit, Store, normalized_email

MAX_TRIES = 10
MAX_TRIES_PER_ADDRESS = 50
MAX_CODES = 20
"""Maximum number of codes per account from all addresses.

The server asks for a code only after the correct password, so strangers cannot use these attempts
up. Three codes of six digits are valid at any time. The probability of guessing one within a day is
at most 0.6 percent (20 * 96 * 3 / 10^6).
"""

FREE_TRIES = 20
"""Number of attempts on an account, from all networks and unknown browsers, without a delay.

A single network is limited to `MAX_TRIES`, so it cannot slow down the others.
"""

MAX_DELAY = 60
"""Longest delay between two attempts on an account, in seconds.

All strangers together have at most 98 attempts an hour (26 within a minute, then a pause of 15
minutes).
"""

DAY_TRIES = 2
MAX_DAY_TRIES = 500
"""Attempts without delay on a slowed-down account in a day, for each network and for all networks.

Unless an attacker has 250 networks, the owner can sign in at once from another network. Together
with the 98 attempts an hour, strangers have 1.1 million attempts a year; a password resists 10^9.
"""

TRY_SECONDS = 15 * 60
DAY_SECONDS = 24 * 3600
THROTTLED = "Too many failed attempts. Wait 15 minutes and try again."
SLOWED_DOWN = (
    "There were too many failed attempts with this email address. Wait a minute and try again. You "
    "can also use a browser in which you have signed in before, or another network."
)

COOKIE_DAYS = 365
COOKIE_PATH = "/research/sign-in"
"""Browsers send the cookie to the sign-in pages only, never with a respondent's request."""


def network_of(address: str) -> str:
    """Return the address of a household or server: for IPv6, the network of the first 64 bits.

    >>> network_of("203.0.113.9"), network_of("2001:db8::1:2"), network_of("::ffff:203.0.113.9")
    ('203.0.113.9', '2001:db8::/64', '203.0.113.9')
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv4Address):
        return address
    return str(parsed.ipv4_mapped or ip_network((parsed, 64), strict=False))


@dataclass(frozen=True)
class Visitor:
    """The sender of an attempt: a network address, and the name of the browser if it is known.

    A browser is known if the owner of the account has signed in there before, or is signed in now.
    Its name is random; "" means that the browser is unknown.
    """

    address: str
    browser: str = ""


class KnownBrowsers:
    """Recognizes browsers by a signed cookie; the server stores nothing about them."""

    def __init__(self, secret: str, *, secure: bool) -> None:
        self._serializer = URLSafeTimedSerializer(secret, salt="known browser")
        self._key = hmac.digest(secret.encode(), b"account of a known browser", "sha256")
        self._secure = secure
        self._cookie = "__Secure-survey-browser" if secure else "survey-browser"

    def visitor(self, email: str) -> Visitor:
        """Return the sender of the current request to sign in to an account."""
        try:
            name, account = self._serializer.loads(
                request.cookies.get(self._cookie, ""), max_age=COOKIE_DAYS * 86_400
            )
        except (BadSignature, ValueError):
            name, account = "", ""
        is_known = hmac.compare_digest(str(account), self._account(email))
        return Visitor(request.remote_addr or "", str(name) if is_known else "")

    def remember(self, email: str) -> None:
        """Mark the browser of the current request as known for an account."""
        value = self._serializer.dumps([secrets.token_urlsafe(16), self._account(email)])

        @after_this_request
        def set_cookie(response: Response) -> Response:
            response.set_cookie(
                self._cookie,
                str(value),
                max_age=COOKIE_DAYS * 86_400,
                path=COOKIE_PATH,
                secure=self._secure,
                httponly=True,
                samesite="Strict",
            )
            return response

    def _account(self, email: str) -> str:
        return hmac.digest(self._key, normalized_email(email).encode(), "sha256").hex()


class Throttle:
    """Limits attempts per address and account, across all workers and servers of a database.

    An attempt is counted before its password is verified, so concurrent attempts count too.
    Addresses without an account are treated in the same way. The database contains hashes keyed by
    the server's secret for 15 minutes, or for a day if a network tried to sign in to a slowed-down
    account.
    """

    def __init__(self, store: Store, secret: str) -> None:
        self._store = store
        self._key = hmac.digest(secret.encode(), b"tries to sign in", "sha256")

    def refusal(self, visitor: Visitor, email: str, now: float) -> str:
        """Count an attempt at `now` (Unix time); return why it is rejected, or "" if it is not."""
        limits = self._password_limits(visitor, email)
        exceeded = self._exceeded(limits, now)
        if exceeded and exceeded.max_delay_seconds:
            others = [limit for limit in limits if limit is not exceeded]
            exceeded = self._exceeded([*others, *self._day_limits(visitor, email)], now)
        return _reason(exceeded)

    def code_refusal(self, visitor: Visitor, email: str, now: float) -> str:
        """Count an attempt with an authentication code, like `refusal`."""
        return _reason(self._exceeded(self._code_limits(visitor, email), now))

    def succeeded(self, visitor: Visitor, email: str) -> None:
        """Forget this attempt, and the failed ones of this browser or network on this account.

        Otherwise, fifty colleagues who sign in within 15 minutes would lock out the others.
        """
        *shared, own = self._password_limits(visitor, email)
        for limit in shared:
            self._store.forget_attempt(limit.key_hash)
        self._store.forget_attempts(own.key_hash)
        # The owner may sign in repeatedly in browsers that keep no cookies.
        self._store.forget_attempts(self._day_limits(visitor, email)[0].key_hash)

    def provider_refusal(self, visitor: Visitor, now: float) -> str:
        """Count a return from a provider, which causes requests to the provider, like `refusal`."""
        return _reason(self._exceeded([self._network(visitor)], now))

    def provider_succeeded(self, visitor: Visitor) -> None:
        """Forget this return from a provider."""
        self._store.forget_attempt(self._network(visitor).key_hash)

    def code_succeeded(self, visitor: Visitor, email: str) -> None:
        """Forget this attempt, and the failed codes of this account from every network."""
        for limit in self._code_limits(visitor, email):
            if limit.key_hash == self._network(visitor).key_hash:
                self._store.forget_attempt(limit.key_hash)
            else:
                self._store.forget_attempts(limit.key_hash)

    def _password_limits(self, visitor: Visitor, email: str) -> list[AttemptLimit]:
        if visitor.browser:
            return [self._limit(f"browser\n{visitor.browser}", MAX_TRIES)]
        name, network = normalized_email(email), network_of(visitor.address)
        account = self._limit(f"account\n{name}", FREE_TRIES, MAX_DELAY)
        pair = self._limit(f"{network}\n{name}", MAX_TRIES)
        return [self._network(visitor), account, pair]

    def _day_limits(self, visitor: Visitor, email: str) -> list[AttemptLimit]:
        """Return the limits of attempts without delay: for the network, and for all networks."""
        name, extra = f"day\n{normalized_email(email)}", DAY_SECONDS - TRY_SECONDS
        return [
            self._limit(f"{network_of(visitor.address)}\n{name}", DAY_TRIES, extra_seconds=extra),
            self._limit(name, MAX_DAY_TRIES, extra_seconds=extra),
        ]

    def _code_limits(self, visitor: Visitor, email: str) -> list[AttemptLimit]:
        if visitor.browser:
            return [self._limit(f"code of browser\n{visitor.browser}", MAX_TRIES)]
        code = f"code\n{normalized_email(email)}"
        account = self._limit(code, MAX_CODES)
        pair = self._limit(f"{network_of(visitor.address)}\n{code}", MAX_TRIES)
        return [account, self._network(visitor), pair]

    def _network(self, visitor: Visitor) -> AttemptLimit:
        return self._limit(f"{network_of(visitor.address)}\n", MAX_TRIES_PER_ADDRESS)

    def _limit(
        self, text: str, max_attempts: int, max_delay_seconds: int = 0, *, extra_seconds: int = 0
    ) -> AttemptLimit:
        key_hash = hmac.digest(self._key, text.encode(), "sha256")
        return AttemptLimit(key_hash, max_attempts, max_delay_seconds, extra_seconds)

    def _exceeded(self, limits: Sequence[AttemptLimit], now: float) -> AttemptLimit | None:
        return self._store.count_attempt(limits, int(now), TRY_SECONDS)


def _reason(exceeded: AttemptLimit | None) -> str:
    if exceeded is None:
        return ""
    return SLOWED_DOWN if exceeded.max_delay_seconds or exceeded.extra_seconds else THROTTLED
