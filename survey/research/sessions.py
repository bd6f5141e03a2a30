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
HALF_WAY_SECONDS = 5 * 60
"""How long after the password the code of the second step is taken."""


class Sessions:
    """Who a request comes from, by a random token of which the server keeps the hash."""

    def __init__(self, store: Store, passwords: Passwords) -> None:
        self._store = store
        self._passwords = passwords

    def researcher(self) -> Researcher | None:
        """The researcher behind this request."""
        if "researcher" not in g:
            token = session.get("token")
            g.researcher = (
                self._store.session_researcher(
                    hash_of(token), int(time.time()), IDLE_SECONDS, ABSOLUTE_SECONDS
                )
                if isinstance(token, str)
                else None
            )
        found: Researcher | None = g.researcher
        return found

    def known(self) -> Researcher:
        """The researcher behind a request that only researchers can make."""
        found = self.researcher()
        if found is None:
            raise RuntimeError("this page is open to people who have not signed in")
        return found

    def verified(self, email: str, password: str) -> Researcher | None:
        """The researcher whose password this is; nobody takes as long."""
        researcher = self._store.researcher(email)
        if not self._passwords.verify(researcher, password) or researcher is None:
            return None
        if self._passwords.is_outdated(researcher.password_hash):
            self._store.renew_hash(researcher, self._passwords.hash(password))
        return researcher

    def open(self, researcher: Researcher) -> None:
        """Open a new session; the old one's cookie is worthless from now on."""
        self.close()
        session["token"] = secrets.token_urlsafe(32)
        self._store.start_session(
            hash_of(session["token"]), researcher.key, int(time.time()), ABSOLUTE_SECONDS
        )
        g.pop("researcher", None)

    def go_half_way(self, researcher: Researcher) -> None:
        """The password was right; nothing is open yet, a code is still to come."""
        self.close()
        session["half_way"] = [researcher.email, int(time.time())]

    def half_way(self) -> Researcher | None:
        """Whoever has given the right password and must give a code now."""
        email, since = session.get("half_way") or ("", 0)
        if not email or int(time.time()) - since > HALF_WAY_SECONDS:
            return None
        return self._store.researcher(email)

    def token_hash(self) -> bytes:
        """The hash by which the server knows this session."""
        return hash_of(session.get("token", ""))

    def close(self) -> None:
        """End this session on the server, and forget it in the browser."""
        if isinstance(token := session.get("token"), str):
            self._store.end_session(hash_of(token))
        session.clear()


MAX_TRIES = 10
MAX_TRIES_PER_ADDRESS = 50
MAX_CODES = 20
"""Of one account, wherever they come from: who is asked for one has given the password, so no
stranger can use them up. In a day a code of six digits, of which three are good at a time, is
guessed with a chance of .6 per cent at most (20 * 96 * 3 / 10^6)."""
TRY_SECONDS = 15 * 60
THROTTLED = "Too many wrong tries. Wait 15 minutes and try again."


def network_of(address: str) -> str:
    """What one household or server has: its address, of version 6 the network of the first 64 bits.

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
    """Counts tries per address and account, for all workers and servers of one database together.

    A try is counted before its password is verified, so that tries at once do not slip through.
    An account is throttled per address: a stranger elsewhere cannot lock its owner out. The
    database sees hashes under the server's secret, for a quarter of an hour.
    """

    def __init__(self, store: Store, secret: str) -> None:
        self._store = store
        self._key = hmac.digest(secret.encode(), b"tries to sign in", "sha256")

    def admits(self, address: str, email: str, now: float) -> bool:
        """Count a try at `now` (seconds since 1970); False when there were too many before it."""
        network = network_of(address)
        return self._count_attempt([_alone(network), (_pair(network, email), MAX_TRIES)], now)

    def admits_code(self, address: str, email: str, now: float) -> bool:
        """The same of a code, after the right password."""
        network, code = network_of(address), f"code\n{email}"
        account, pair = (_pair("", code), MAX_CODES), (_pair(network, code), MAX_TRIES)
        return self._count_attempt([account, _alone(network), pair], now)

    def succeeded(self, address: str, email: str) -> None:
        """The password was right: earlier tries of this pair no longer count."""
        self._store.forget_attempts(self._hash(_pair(network_of(address), email)))

    def succeeded_with_code(self, address: str, email: str) -> None:
        """The code was right: earlier ones no longer count, wherever they came from."""
        for network in (network_of(address), ""):
            self._store.forget_attempts(self._hash(_pair(network, f"code\n{email}")))

    def _count_attempt(self, limits: Sequence[tuple[str, int]], now: float) -> bool:
        hashed = [(self._hash(text), limit) for text, limit in limits]
        return self._store.count_attempt(hashed, int(now), TRY_SECONDS)

    def _hash(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(), "sha256")


def _pair(network: str, email: str) -> str:
    return f"{network}\n{email.lower()}"


def _alone(network: str) -> tuple[str, int]:
    return f"{network}\n", MAX_TRIES_PER_ADDRESS
