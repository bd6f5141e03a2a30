"""Researchers' passwords: argon2id, and the same time for everybody who has none here."""

from __future__ import annotations

import secrets
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from survey.errors import SurveyError
from survey.store import Researcher

MIN_PASSWORD_LENGTH = 12


@cache
def _nobodys(cost: int) -> str:
    """The hash of a password that nobody has, as slow to verify as anybody's."""
    return PasswordHasher(time_cost=cost).hash(secrets.token_hex())


class Passwords:
    """Hash and verify passwords; an unknown address takes as long as a wrong password."""

    def __init__(self, cost: int) -> None:
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
            self._hasher.verify(researcher.password_hash if researcher else self._nobody, password)
        except (VerifyMismatchError, InvalidHashError):
            return False
        return researcher is not None
