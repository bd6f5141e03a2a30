"""Attempts to sign in: their limits, failures, and the rules for all accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from survey.store.people import find_researcher
from survey.store.schema import FAILED_SIGN_IN, INSTANCE_RULE, SIGN_IN_TRY
from survey.store.transactions import REGISTRY, Transactions

MAX_ATTEMPT_ROWS = 10_000
"""Maximum number of rows of attempts.

Above it, half of the rows are deleted, so that a flood of names cannot fill the disk.
"""


@dataclass(frozen=True)
class AttemptLimit:
    """A limit on the attempts that are counted under a keyed hash.

    If `max_delay_seconds` is 0, no attempt is admitted after `max_attempts` attempts until these
    are forgotten. Otherwise, one attempt is admitted after each delay. Delays double from one
    second up to `max_delay_seconds`. Attempts are forgotten some time after the first one, or after
    the last one if there is a delay; `extra_seconds` extends this time.
    """

    key_hash: bytes
    max_attempts: int
    max_delay_seconds: int = 0
    extra_seconds: int = 0

    def admits(self, n_attempts: int, since: int, now: int) -> bool:
        """Return whether an attempt is admitted now, after others.

        >>> [AttemptLimit(b"", 20, 60).admits(20 + n, 0, 30) for n in (0, 4, 5, 99)]
        [True, True, False, False]
        """
        if n_attempts < self.max_attempts:
            return True
        return self.max_delay_seconds > 0 and now - since >= min(
            2 ** min(n_attempts - self.max_attempts, 30), self.max_delay_seconds
        )


@dataclass(frozen=True)
class FailedSignIns:
    """Failed attempts on an account since its last sign-in; `last` is a second since 1970."""

    n: int
    last: int


UNKNOWN_ACCOUNT = 0
"""The key for counting failures of all addresses without an account."""

TWO_FACTOR = "two-factor"
"""The rule that every account needs two-factor authentication."""


class SignIns(Transactions):
    """The part of a `Store` that counts attempts to sign in."""

    def count_attempt(
        self, limits: Sequence[AttemptLimit], now: int, seconds: int
    ) -> AttemptLimit | None:
        """Count an attempt under each limit, or return the first limit that does not admit it.

        An attempt that is not admitted is not counted, so that it adds no rows and no delays. The
        attempts of a hash are forgotten `seconds` after the first one, or after the last one if the
        limit has a delay; `AttemptLimit.extra_seconds` extends this time.
        """
        with self._write() as transaction:
            # Concurrent attempts must not be admitted by the same count.
            transaction.lock(REGISTRY)
            transaction.execute("DELETE FROM sign_in_try WHERE since <= ?", [now - seconds])
            if transaction.integer("SELECT count(*) FROM sign_in_try") > MAX_ATTEMPT_ROWS:
                # Keep the hashes with the most attempts, which a flood of names must not reset.
                transaction.execute(
                    "DELETE FROM sign_in_try WHERE hash IN "
                    "(SELECT hash FROM sign_in_try ORDER BY tries, since LIMIT ?)",
                    [MAX_ATTEMPT_ROWS // 2],
                )
            for limit in limits:
                row = transaction.row(
                    "SELECT tries, since FROM sign_in_try WHERE hash = ?", [limit.key_hash]
                )
                if row and not limit.admits(int(row[0]), int(row[1]), now):
                    return limit
            for limit in limits:
                since = "?" if limit.max_delay_seconds else "sign_in_try.since"
                transaction.execute(
                    f"{SIGN_IN_TRY.insert} ON CONFLICT (hash) DO UPDATE SET "
                    f"tries = sign_in_try.tries + 1, since = {since}",
                    [
                        limit.key_hash,
                        1,
                        now + limit.extra_seconds,
                        *([now] if limit.max_delay_seconds else []),
                    ],
                )
        return None

    def forget_attempts(self, key_hash: bytes) -> None:
        """Forget the attempts of a hash."""
        self._execute("DELETE FROM sign_in_try WHERE hash = ?", [key_hash])

    def forget_attempt(self, key_hash: bytes) -> None:
        """Forget one attempt of a hash."""
        self._execute(
            "UPDATE sign_in_try SET tries = tries - 1 WHERE hash = ? AND tries > 0", [key_hash]
        )

    def add_failed_sign_in(self, email: str, now: int) -> None:
        """Count a wrong password or code; this takes the same time without an account."""
        with self._write() as transaction:
            researcher = find_researcher(transaction, email)
            transaction.execute(
                f"{FAILED_SIGN_IN.insert} ON CONFLICT (researcher) DO UPDATE SET "
                "n = failed_sign_in.n + 1, last = ?",
                [researcher.key if researcher else UNKNOWN_ACCOUNT, 1, now, now],
            )

    def failed_sign_ins(self) -> dict[int, FailedSignIns]:
        """Return the failures on each account since its last sign-in, by its key."""
        rows = self._rows("SELECT researcher, n, last FROM failed_sign_in")
        return {int(key): FailedSignIns(n, last) for key, n, last in rows}

    def take_failed_sign_ins(self, researcher: int) -> FailedSignIns | None:
        """Return the failures on an account and forget them; return None if there are none."""
        with self._write() as transaction:
            row = transaction.row(
                "DELETE FROM failed_sign_in WHERE researcher = ? RETURNING n, last", [researcher]
            )
        return FailedSignIns(*row) if row else None

    def two_factor_required(self) -> bool:
        """Return whether every account needs two-factor authentication."""
        return self._row("SELECT 1 FROM instance_rule WHERE name = ?", [TWO_FACTOR]) is not None

    def lacks_two_factor(self, researcher: int) -> bool:
        """Return whether an account must set up two-factor authentication before anything else."""
        row = self._row(
            "SELECT 1 FROM instance_rule WHERE name = ? "
            "AND NOT EXISTS (SELECT 1 FROM second_factor WHERE researcher = ?)",
            [TWO_FACTOR, researcher],
        )
        return row is not None

    def set_two_factor_required(self, *, required: bool) -> None:
        """Set whether every account needs two-factor authentication."""
        with self._write() as transaction:
            transaction.execute("DELETE FROM instance_rule WHERE name = ?", [TWO_FACTOR])
            if required:
                transaction.execute(INSTANCE_RULE.insert, [TWO_FACTOR])
