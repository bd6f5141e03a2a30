"""Researchers' passwords: argon2id, and the same time for everybody who has none here."""

from __future__ import annotations

import secrets
from functools import cache

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from survey.errors import SurveyError
from survey.store import Researcher

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
