"""Passwords (argon2id), and two-factor authentication by codes that change every 30 seconds."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from functools import cache

import pyotp
import segno
from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from survey.errors import SurveyError
from survey.store import Researcher, Store

MIN_PASSWORD_LENGTH = 12


@cache
def _nobodys(cost: int) -> str:
    """The hash of a password that nobody has, as slow to verify as anybody's."""
    return PasswordHasher(time_cost=cost).hash(secrets.token_hex())


def _cost_of(password_hash: str) -> int:
    return extract_parameters(password_hash).time_cost


class Passwords:
    """Hash and verify passwords; an unknown address takes as long as a wrong password."""

    def __init__(self, cost: int) -> None:
        self._cost = cost
        self._hasher = PasswordHasher(time_cost=cost)
        self._nobody = _nobodys(cost)

    def hash(self, password: str) -> str:
        """Hash a new password; refuses a short one."""
        if len(password) < MIN_PASSWORD_LENGTH:
            raise SurveyError(f"a password has at least {MIN_PASSWORD_LENGTH} characters")
        return self._hasher.hash(password)

    def verify(self, researcher: Researcher | None, password: str) -> bool:
        """Whether the password is the researcher's; False, slowly, for nobody."""
        try:
            hashed = researcher.password_hash if researcher else self._nobody
            self._spend(self._cost - _cost_of(hashed))
            self._hasher.verify(hashed, password)
        except (VerifyMismatchError, InvalidHashError):
            return False
        return researcher is not None

    def is_outdated(self, password_hash: str) -> bool:
        """Whether a hash was made at another cost: the next right password makes it anew."""
        return _cost_of(password_hash) != self._cost

    @staticmethod
    def _spend(passes: int) -> None:
        """As long as so many passes take: the hash of an account is of when it was made."""
        if passes > 0:
            PasswordHasher(time_cost=passes).hash("")


STEP_SECONDS = 30
TOLERATED_STEPS = 1
"""How far a device's clock may be off, to either side."""

RECOVERY_CODES = 10
RECOVERY_BYTES = 10
"""80 random bits: nobody guesses one, and no slow hash is needed."""


@dataclass(frozen=True)
class NewSecret:
    """A secret that is not in use yet, for an app to take over."""

    secret: str
    uri: str

    def picture(self) -> str:
        """The secret as a QR code, as a data URI."""
        drawn: str = segno.make(self.uri, micro=False).svg_data_uri(scale=4, border=4, light="#fff")
        return drawn


def new_secret(email: str, secret: str = "") -> NewSecret:
    """A new secret, or one that was made before, as an app reads it."""
    secret = secret or pyotp.random_base32()
    uri = pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name="Survey")
    return NewSecret(secret, uri)


def step_of(secret: str, code: str, now: float) -> int | None:
    """The time step that a code belongs to, None when it is none of about now."""
    totp = pyotp.TOTP(secret)
    current = int(now) // STEP_SECONDS
    steps = range(current - TOLERATED_STEPS, current + TOLERATED_STEPS + 1)
    given = re.sub(r"\s", "", code)
    matching = [
        step
        for step in steps
        # Every step is compared: how long it takes tells nothing.
        if secrets.compare_digest(totp.generate_otp(step).encode(), given.encode())
    ]
    return matching[-1] if matching else None


def is_right(store: Store, researcher: Researcher, code: str, now: float) -> bool:
    """Use up a code of the app or a recovery code; False when it is neither, or was used."""
    factor = store.second_factor(researcher.key)
    if factor is None:
        return False
    step = step_of(factor.secret, code, now)
    if step is not None:
        return store.use_step(researcher.key, step)
    return store.use_recovery_code(researcher.key, recovery_hash(code))


def new_recovery_codes() -> list[str]:
    """Codes for when the app is lost, each good once.

    >>> len(new_recovery_codes()[0])
    19
    """
    return [_grouped(secrets.token_bytes(RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)]


def _grouped(random: bytes) -> str:
    letters = base64.b32encode(random).decode().lower()
    return "-".join(letters[at : at + 4] for at in range(0, len(letters), 4))


def recovery_hash(code: str) -> bytes:
    """What is kept of a recovery code, however it is typed."""
    return hashlib.sha256(re.sub(r"[\s-]", "", code).lower().encode()).digest()
