"""Passwords (argon2id), and two-factor authentication with time-based codes (TOTP, RFC 6238)."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from survey.errors import SurveyError
from survey.store import Researcher, Store

if TYPE_CHECKING:
    from argon2 import PasswordHasher

MIN_PASSWORD_LENGTH = 12

STEP_SECONDS = 30
"""Time for which a code is shown."""

TOLERATED_STEPS = 1
"""Steps by which the clock of a device may be wrong, in either direction."""

RECOVERY_CODES = 10
RECOVERY_BYTES = 10
"""80 random bits cannot be guessed, so recovery codes need no slow hash."""


def _password_hasher(cost: int) -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=cost)


@cache
def _dummy_hash(cost: int) -> str:
    """Return the hash of a random password, as slow to verify as a real one."""
    return _password_hasher(cost).hash(secrets.token_hex())


def _cost_of(password_hash: str) -> int:
    from argon2 import extract_parameters

    return extract_parameters(password_hash).time_cost


class Passwords:
    """Hashes and verifies passwords; an unknown address takes as long as a wrong password."""

    def __init__(self, cost: int) -> None:
        self._cost = cost

    @cached_property
    def _hasher(self) -> PasswordHasher:
        return _password_hasher(self._cost)

    def hash(self, password: str) -> str:
        """Hash a new password. Raises SurveyError if it is too short."""
        if len(password) < MIN_PASSWORD_LENGTH:
            raise SurveyError(f"the password must have at least {MIN_PASSWORD_LENGTH} characters")
        return self._hasher.hash(password)

    def verify(self, researcher: Researcher | None, password: str) -> bool:
        """Return whether the password is the researcher's; for None, False in the same time."""
        from argon2.exceptions import InvalidHashError, VerifyMismatchError

        # Always made, so that its first computation does not tell the two cases apart.
        dummy = _dummy_hash(self._cost)
        try:
            expected = researcher.password_hash if researcher else dummy
            self._spend(self._cost - _cost_of(expected))
            self._hasher.verify(expected, password)
        except (VerifyMismatchError, InvalidHashError):
            return False
        return researcher is not None

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether a hash has another cost than new ones."""
        return _cost_of(password_hash) != self._cost

    @staticmethod
    def _spend(passes: int) -> None:
        """Take the time of additional passes: older hashes have fewer than the dummy hash."""
        if passes > 0:
            _password_hasher(passes).hash("")


@dataclass(frozen=True)
class NewSecret:
    """A secret that an authenticator app has yet to scan."""

    secret: str
    uri: str

    def qr_code(self) -> str:
        """Return the secret as a QR code in a data URI."""
        import segno

        image: str = segno.make(self.uri, micro=False).svg_data_uri(scale=4, border=4, light="#fff")
        return image


def new_secret(email: str, secret: str = "") -> NewSecret:
    """Return a secret with its URI for authenticator apps; make the secret unless it is given."""
    import pyotp

    secret = secret or pyotp.random_base32()
    uri = pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name="Survey")
    return NewSecret(secret, uri)


def step_of(secret: str, code: str, now: float) -> int | None:
    """Return the time step of a code, or None if the code is not valid at `now` (Unix time)."""
    import pyotp

    totp = pyotp.TOTP(secret)
    current = int(now) // STEP_SECONDS
    steps = range(current - TOLERATED_STEPS, current + TOLERATED_STEPS + 1)
    digits = re.sub(r"\s", "", code)
    matches = [
        step
        for step in steps
        # All steps are compared, so that the time reveals nothing.
        if secrets.compare_digest(totp.generate_otp(step).encode(), digits.encode())
    ]
    return matches[-1] if matches else None


def use_code(store: Store, researcher: Researcher, code: str, now: float) -> bool:
    """Use up a code of the app or a recovery code; return False if it is neither, or was used."""
    factor = store.second_factor(researcher.key)
    if factor is None:
        return False
    step = step_of(factor.secret, code, now)
    if step is not None:
        return store.use_step(researcher.key, step)
    return store.use_recovery_code(researcher.key, recovery_hash(code))


def new_recovery_codes() -> list[str]:
    """Return single-use codes for the case that the app is lost.

    >>> len(new_recovery_codes()[0])
    19
    """
    return [_format_code(secrets.token_bytes(RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)]


def _format_code(random: bytes) -> str:
    letters = base64.b32encode(random).decode().lower()
    return "-".join(letters[at : at + 4] for at in range(0, len(letters), 4))


def recovery_hash(code: str) -> bytes:
    """Return the hash of a recovery code; case, spaces and hyphens do not matter."""
    return hashlib.sha256(re.sub(r"[\s-]", "", code).lower().encode()).digest()
