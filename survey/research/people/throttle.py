"""Slow guessing: tries are counted per address and account, and forgotten after a while."""

from __future__ import annotations

import hmac
from ipaddress import IPv4Address, ip_address, ip_network

from survey.store import Store

MAX_TRIES = 10
MAX_TRIES_PER_ADDRESS = 50
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

    def _hashes(self, address: str, email: str) -> dict[bytes, int]:
        """What a try counts against, with the limit of each."""
        network = network_of(address)
        pair, alone = f"{network}\n{email.lower()}", f"{network}\n"
        return {
            hmac.digest(self._key, text.encode(), "sha256"): limit
            for text, limit in ((pair, MAX_TRIES), (alone, MAX_TRIES_PER_ADDRESS))
        }

    def admits(self, address: str, email: str, now: float) -> bool:
        """Count a try at `now` (seconds since 1970); False when there were too many before it."""
        return self._store.count_try(self._hashes(address, email), int(now), TRY_SECONDS)

    def succeeded(self, address: str, email: str) -> None:
        """The password was right: earlier tries of this pair no longer count."""
        self._store.forget_tries(next(iter(self._hashes(address, email))))
