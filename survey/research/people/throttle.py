"""Slow guessing: tries are counted per address and account, and forgotten after a while."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from ipaddress import IPv4Address, ip_address, ip_network

from survey.store import Store

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
        return self._counted([_alone(network), (_pair(network, email), MAX_TRIES)], now)

    def admits_code(self, address: str, email: str, now: float) -> bool:
        """The same of a code, after the right password."""
        network, code = network_of(address), f"code\n{email}"
        account, pair = (_pair("", code), MAX_CODES), (_pair(network, code), MAX_TRIES)
        return self._counted([account, _alone(network), pair], now)

    def succeeded(self, address: str, email: str) -> None:
        """The password was right: earlier tries of this pair no longer count."""
        self._store.forget_tries(self._hash(_pair(network_of(address), email)))

    def succeeded_with_code(self, address: str, email: str) -> None:
        """The code was right: earlier ones no longer count, wherever they came from."""
        for network in (network_of(address), ""):
            self._store.forget_tries(self._hash(_pair(network, f"code\n{email}")))

    def _counted(self, limits: Sequence[tuple[str, int]], now: float) -> bool:
        hashed = [(self._hash(text), limit) for text, limit in limits]
        return self._store.count_try(hashed, int(now), TRY_SECONDS)

    def _hash(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(), "sha256")


def _pair(network: str, email: str) -> str:
    return f"{network}\n{email.lower()}"


def _alone(network: str) -> tuple[str, int]:
    return f"{network}\n", MAX_TRIES_PER_ADDRESS
