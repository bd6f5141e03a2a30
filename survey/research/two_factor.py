"""Two-factor authentication: codes of authenticator apps (TOTP, RFC 6238) and recovery codes.

The database, and therefore every backup, contains the secrets of the apps in encrypted form only.
The key is derived from the server's secret.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import re
import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from survey.store import Researcher, Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

logger = logging.getLogger(__name__)

STEP_SECONDS = 30
"""Time for which an app shows a code."""

TOLERATED_STEPS = 1
"""Steps by which the clock of a device may be wrong, in either direction."""

RECOVERY_CODES = 10
RECOVERY_BYTES = 10
"""80 random bits cannot be guessed, so recovery codes need no slow hash."""

ENCRYPTED = "aes-gcm:"
"""Prefix of an encrypted secret; the base32 secrets of earlier versions contain no colon."""

BASE32 = re.compile("[A-Z2-7]{16,}")
"""The form of an unencrypted secret."""

UNREADABLE = (
    "the secret of an authenticator app cannot be read: it is damaged, or SURVEY_SECRET was changed"
)

NONCE_BYTES = 12


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
    """Return a secret with its URI for authenticator apps; create the secret unless it is given."""
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
        # Compare all steps, so that the time that this takes reveals nothing.
        if secrets.compare_digest(totp.generate_otp(step).encode(), digits.encode())
    ]
    return matches[-1] if matches else None


class SecondFactors:
    """The second factors of all accounts: their secrets, and the use of their codes.

    Secrets are encrypted with AES-256-GCM (NIST SP 800-38D) and a random nonce of 96 bits.
    HKDF-SHA256 (RFC 5869) derives the key from the server's secret. The encryption
    also authenticates the account, so that an attacker who can write to the database cannot move a
    secret to another account.
    """

    def __init__(self, store: Store, secret: str) -> None:
        self._store = store
        self._secret = secret.encode()

    @cached_property
    def _cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        kdf = HKDF(SHA256(), length=32, salt=None, info=b"survey: secrets of authenticator apps")
        return AESGCM(kdf.derive(self._secret))

    def set_up(self, researcher: int, secret: str, step: int) -> list[str]:
        """Store the secret of an app whose first code was used; return new recovery codes."""
        codes = new_recovery_codes()
        hashes = [recovery_hash(code) for code in codes]
        self._store.set_second_factor(researcher, self._encrypt(researcher, secret), hashes)
        self._store.use_step(researcher, step)
        return codes

    def use_code(self, researcher: Researcher, code: str, now: float) -> bool:
        """Use up a code of the app or a recovery code; return False if it is invalid or used."""
        factor = self._store.second_factor(researcher.key)
        if factor is None:
            return False
        secret = self._decrypt(researcher.key, factor.secret)
        if secret is None:
            logger.error(UNREADABLE)
        step = step_of(secret, code, now) if secret else None
        if step is not None:
            return self._store.use_step(researcher.key, step)
        return self._store.use_recovery_code(researcher.key, recovery_hash(code))

    def is_readable(self, researcher: Researcher) -> bool:
        """Return whether the codes of the researcher's app can be checked, if there is one."""
        factor = self._store.second_factor(researcher.key)
        return factor is None or self._decrypt(researcher.key, factor.secret) is not None

    def encrypt_all(self) -> int:
        """Encrypt the secrets that earlier versions stored unencrypted; return their number."""
        plain = [
            (researcher, stored)
            for researcher, stored in self._store.second_factor_secrets()
            if BASE32.fullmatch(stored)
        ]
        for researcher, stored in plain:
            self._replace(researcher, stored, stored)
        return len(plain)

    def reencrypt(self, former_secret: str) -> tuple[int, int]:
        """Encrypt again the secrets encrypted with the server's former secret; return their number.

        The second result is the number of secrets that neither secret of the server decrypts.
        """
        former = SecondFactors(self._store, former_secret)
        n, n_lost = 0, 0
        for researcher, stored in self._store.second_factor_secrets():
            if self._decrypt(researcher, stored) is not None:
                continue
            secret = former._decrypt(researcher, stored)
            if secret is None:
                n_lost += 1
            else:
                self._replace(researcher, stored, secret)
                n += 1
        return n, n_lost

    def _replace(self, researcher: int, stored: str, secret: str) -> None:
        encrypted = self._encrypt(researcher, secret)
        self._store.replace_second_factor_secret(researcher, stored, encrypted)

    def _encrypt(self, researcher: int, secret: str) -> str:
        nonce = os.urandom(NONCE_BYTES)
        box = self._cipher.encrypt(nonce, secret.encode(), _owner(researcher))
        return ENCRYPTED + base64.b64encode(nonce + box).decode()

    def _decrypt(self, researcher: int, stored: str) -> str | None:
        """Return a secret, or None if it is damaged or if the server's secret has changed."""
        from cryptography.exceptions import InvalidTag

        plain = stored
        if stored.startswith(ENCRYPTED):
            try:
                box = base64.b64decode(stored.removeprefix(ENCRYPTED), validate=True)
                nonce, encrypted = box[:NONCE_BYTES], box[NONCE_BYTES:]
                plain = self._cipher.decrypt(nonce, encrypted, _owner(researcher)).decode()
            except (InvalidTag, ValueError):
                return None
        return plain if BASE32.fullmatch(plain) else None


def _owner(researcher: int) -> bytes:
    return f"researcher {researcher}".encode()


def new_recovery_codes() -> list[str]:
    """Return single-use codes for researchers who have lost their app.

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
