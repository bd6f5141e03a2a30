"""The second step of signing in: codes that change every 30 seconds (TOTP, RFC 6238)."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass

import pyotp
import segno

from survey.store import Researcher, Store

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
