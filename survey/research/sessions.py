"""Researchers' sessions, and the limit on attempts to sign in."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Sequence
from ipaddress import IPv4Address, ip_address, ip_network

from flask import g, session

from survey.research.credentials import Passwords
from survey.security import hash_of
from survey.store import Researcher, Store

IDLE_SECONDS = 2 * 3600
ABSOLUTE_SECONDS = 12 * 3600
CODE_SECONDS = 5 * 60
"""Time between the password and the authentication code."""

MAX_TRIES = 10
MAX_TRIES_PER_ADDRESS = 50
MAX_CODES = 20
"""Codes per account from all addresses. Only people who know the password are asked for one, so
strangers cannot use them up. Three codes of six digits are valid at any time; the chance to guess
one within a day is at most 0.6 per cent (20 * 96 * 3 / 10^6)."""
TRY_SECONDS = 15 * 60
THROTTLED = "Too many failed attempts. Wait 15 minutes and try again."


class Sessions:
    """Sessions are random tokens, of which the server stores the hash and which it can end."""

    def __init__(self, store: Store, passwords: Passwords) -> None:
        self._store = store
        self._passwords = passwords

    def researcher(self) -> Researcher | None:
        """Return the researcher who sent this request, None if nobody is signed in."""
        if "researcher" not in g:
            token = session.get("token")
            g.researcher = (
                self._store.session_researcher(
                    hash_of(token), int(time.time()), IDLE_SECONDS, ABSOLUTE_SECONDS
                )
                if isinstance(token, str)
                else None
            )
        researcher: Researcher | None = g.researcher
        return researcher

    def current(self) -> Researcher:
        """Return the researcher who sent this request, on pages that require one."""
        researcher = self.researcher()
        if researcher is None:
            raise RuntimeError("this page is open to people who are not signed in")
        return researcher

    def verify(self, email: str, password: str) -> Researcher | None:
        """Return the researcher if the password matches; unknown addresses take the same time."""
        researcher = self._store.researcher(email)
        if not self._passwords.verify(researcher, password) or researcher is None:
            return None
        if self._passwords.is_outdated(researcher.password_hash):
            self._store.renew_hash(researcher, self._passwords.hash(password))
        return researcher

    def open(self, researcher: Researcher) -> None:
        """Open a new session, and end the one of the present cookie."""
        self.close()
        session["token"] = secrets.token_urlsafe(32)
        self._store.start_session(
            hash_of(session["token"]), researcher.key, int(time.time()), ABSOLUTE_SECONDS
        )
        g.pop("researcher", None)

    def await_code(self, researcher: Researcher) -> None:
        """Remember that the password was right; the authentication code must follow."""
        self.close()
        session["half_way"] = [researcher.email, int(time.time())]

    def awaiting_code(self) -> Researcher | None:
        """Return the researcher who gave the right password and must enter a code."""
        email, since = session.get("half_way") or ("", 0)
        if not email or int(time.time()) - since > CODE_SECONDS:
            return None
        return self._store.researcher(email)

    def token_hash(self) -> bytes:
        """Return the hash by which the server identifies this session."""
        return hash_of(session.get("token", ""))

    def close(self) -> None:
        """End this session on the server and delete its cookie."""
        if isinstance(token := session.get("token"), str):
            self._store.end_session(hash_of(token))
        session.clear()


def network_of(address: str) -> str:
    """Return the address of a household or server; for IPv6, the network of its first 64 bits.

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


class Throttle:
    """Limits attempts per address and account, across all workers and servers of a database.

    An attempt is counted before its password is verified, so concurrent attempts count too.
    Attempts on an account are limited per address, so that strangers cannot lock its owner out.
    The database contains hashes keyed by the server's secret, for 15 minutes.
    """

    def __init__(self, store: Store, secret: str) -> None:
        self._store = store
        self._key = hmac.digest(secret.encode(), b"tries to sign in", "sha256")

    def admits(self, address: str, email: str, now: float) -> bool:
        """Count an attempt at `now` (Unix time); return False if there were too many before it."""
        network = network_of(address)
        return self._count_attempt([_of_network(network), (_pair(network, email), MAX_TRIES)], now)

    def admits_code(self, address: str, email: str, now: float) -> bool:
        """Count an attempt with an authentication code; return False if there were too many."""
        network, code = network_of(address), f"code\n{email}"
        account, pair = (_pair("", code), MAX_CODES), (_pair(network, code), MAX_TRIES)
        return self._count_attempt([account, _of_network(network), pair], now)

    def succeeded(self, address: str, email: str) -> None:
        """Forget the failed attempts of this address and account."""
        self._store.forget_attempts(self._hash(_pair(network_of(address), email)))

    def reset_code_attempts(self, address: str, email: str) -> None:
        """Forget the failed authentication codes of this account, in all and from this address."""
        for network in (network_of(address), ""):
            self._store.forget_attempts(self._hash(_pair(network, f"code\n{email}")))

    def _count_attempt(self, limits: Sequence[tuple[str, int]], now: float) -> bool:
        hashes = [(self._hash(text), limit) for text, limit in limits]
        return self._store.count_attempt(hashes, int(now), TRY_SECONDS)

    def _hash(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(), "sha256")


def _pair(network: str, email: str) -> str:
    return f"{network}\n{email.lower()}"


def _of_network(network: str) -> tuple[str, int]:
    return f"{network}\n", MAX_TRIES_PER_ADDRESS
