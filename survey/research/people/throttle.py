"""Slow guessing: tries are counted per address and account, in memory, and forgotten."""

from __future__ import annotations

import hmac
import secrets
from threading import Lock

MAX_TRIES = 10
MAX_TRIES_PER_ADDRESS = 50
TRY_SECONDS = 15 * 60
MAX_REMEMBERED = 10_000
THROTTLED = "Too many wrong tries. Wait 15 minutes and try again."


class Throttle:
    """Counts tries per address and account, in memory, under a key that is forgotten.

    A try is counted before its password is verified, so that tries at once do not slip through.
    An account is throttled per address: a stranger elsewhere cannot lock its owner out.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._tries: dict[bytes, list[float]] = {}
        self._lock = Lock()

    def _hashes(self, address: str, email: str) -> dict[bytes, int]:
        """What a try counts against, with the limit of each."""
        pair, alone = f"{address}\n{email.lower()}", f"{address}\n"
        return {
            hmac.digest(self._key, text.encode(), "sha256"): limit
            for text, limit in ((pair, MAX_TRIES), (alone, MAX_TRIES_PER_ADDRESS))
        }

    def admits(self, address: str, email: str, now: float) -> bool:
        """Count a try at `now` (seconds); False when there were too many before it."""
        hashes = self._hashes(address, email)
        with self._lock:
            self._forget(now)
            recent = {each: self._recent(each, now) for each in hashes}
            if any(len(recent[each]) >= limit for each, limit in hashes.items()):
                return False
            for each, tries in recent.items():
                # Taken out first: the dictionary stays in the order of the latest tries.
                self._tries.pop(each, None)
                self._tries[each] = [*tries, now]
            return True

    def succeeded(self, address: str, email: str) -> None:
        """The password was right: earlier tries of this pair no longer count."""
        pair = next(iter(self._hashes(address, email)))
        with self._lock:
            self._tries.pop(pair, None)

    def _recent(self, each: bytes, now: float) -> list[float]:
        return [tried for tried in self._tries.get(each, ()) if now - tried < TRY_SECONDS]

    def _forget(self, now: float) -> None:
        """Drop what is too old; a flood of names fills no memory and takes no time."""
        if len(self._tries) > MAX_REMEMBERED:
            self._tries.clear()
        while self._tries and not self._recent(oldest := next(iter(self._tries)), now):
            del self._tries[oldest]
