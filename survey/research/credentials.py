"""Passwords (argon2id) and sessions."""

from __future__ import annotations

import re
import secrets
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from flask import g, session

from survey.errors import SurveyError
from survey.questionnaire import is_test_run
from survey.research.sign_in_limits import KnownBrowsers
from survey.security import hash_of
from survey.settings import Settings, host_of
from survey.store import Researcher, Store

if TYPE_CHECKING:
    from argon2 import PasswordHasher

NO_PASSWORD = ""
"""The password hash of an account that a provider created and that has no password yet."""

MIN_PASSWORD_LENGTH = 12

MIN_GUESSES_LOG10 = 9.0
"""Minimum number of guesses that a password must resist, as a power of ten.

zxcvbn estimates this number for an attacker who tries common passwords, words, names, dates and
keyboard rows in the best order. It adds 10^8 for any three words, so a lower limit would admit
three known names.
"""

EXAMPLES = ("correct horse battery staple", "survey")
"""Words to avoid: the best-known passphrase, and the name of this software."""

JUDGED_LENGTH = 72
"""Maximum number of characters that zxcvbn judges; its time grows with their square."""

TOO_COMMON = (
    "This password is too easy to guess. Avoid common passwords, single words, dates, your own "
    "address and the names of this server and its surveys; four unrelated words are a good choice."
)
_judging = threading.Lock()
"""A lock, because zxcvbn stores the words to avoid in a variable that all threads share."""


def password_mistake(email: str, password: str, names: Iterable[str] = ()) -> str:
    """Return why a new password is not accepted for an account, or "" if it is.

    Public names, such as that of the server, count as words to avoid.

    >>> password_mistake("ada@example.org", "Summer2026!!").partition(".")[0]
    'This password is too easy to guess'
    >>> password_mistake("ada@example.org", "copper kite unfolds slowly")
    ''
    """
    if len(password) < MIN_PASSWORD_LENGTH:
        return f"Use at least {MIN_PASSWORD_LENGTH} characters"
    texts = [email, *email.split("@"), *names]
    words = [part for text in texts for part in re.split(r"[\W_]+", text)]
    words += [form for text in (*texts, *EXAMPLES) for form in (text, _plain(text))]
    symbols = set(re.findall(r"[\W_]", unicodedata.normalize("NFKC", password)))
    # zxcvbn treats "2026!!" as six random characters, so symbols are judged separately.
    guesses = min(
        _guesses_log10(password, words),
        _guesses_log10(_plain(password), words) + max(len(symbols) - 1, 0),
    )
    return "" if guesses >= MIN_GUESSES_LOG10 else TOO_COMMON


def _plain(text: str) -> str:
    """Return the letters and digits of a text.

    >>> _plain("correct-horse, battery!")
    'correcthorsebattery'
    """
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text))


def _guesses_log10(password: str, words: Sequence[str]) -> float:
    # Imported here, because loading its lists takes 35 ms, and only new passwords need them.
    from zxcvbn import zxcvbn

    if not password:
        return 0.0
    with _judging:
        return float(zxcvbn(password[:JUDGED_LENGTH], [*filter(None, words)])["guesses_log10"])


def public_names(store: Store, settings: Settings) -> list[str]:
    """Return names that attackers know: the server's host names and the titles of surveys."""
    hosts = {host_of(url) for url in (settings.public_url, settings.researchers_url)}
    heads = store.survey_heads()
    return [*sorted(hosts), *(head.title for head in heads if not is_test_run(head.slug))]


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

    def __init__(self, cost: int, names: Callable[[], Iterable[str]] = tuple) -> None:
        """Set the cost of hashes, and the source of words to avoid in new passwords."""
        self._cost = cost
        self._names = names

    @cached_property
    def _hasher(self) -> PasswordHasher:
        return _password_hasher(self._cost)

    def hash(self, password: str) -> str:
        """Hash a password that is already accepted, or random."""
        return self._hasher.hash(password)

    def mistake(self, email: str, password: str) -> str:
        """Return why a new password is not accepted for an account, or "" if it is."""
        return password_mistake(email, password, self._names())

    def hash_new(self, email: str, password: str) -> str:
        """Hash the password that a person chose for an account.

        Raises SurveyError if it is too short or easy to guess.
        """
        if mistake := self.mistake(email, password):
            raise SurveyError(mistake)
        return self.hash(password)

    def verify(self, researcher: Researcher | None, password: str) -> bool:
        """Return whether the password is the researcher's; for None, False in the same time."""
        from argon2.exceptions import InvalidHashError, VerifyMismatchError

        # Always made, so that its first computation does not tell the two cases apart.
        dummy = _dummy_hash(self._cost)
        try:
            expected = (researcher and researcher.password_hash) or dummy
            self._spend(self._cost - _cost_of(expected))
            self._hasher.verify(expected, password)
        except (VerifyMismatchError, InvalidHashError):
            return False
        return researcher is not None and researcher.password_hash != NO_PASSWORD

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether a hash has another cost than new ones."""
        return _cost_of(password_hash) != self._cost

    @staticmethod
    def _spend(passes: int) -> None:
        """Take the time of additional passes: older hashes have fewer than the dummy hash."""
        if passes > 0:
            _password_hasher(passes).hash("")


IDLE_SECONDS = 2 * 3600
ABSOLUTE_SECONDS = 12 * 3600
CODE_SECONDS = 5 * 60
"""Time between the password and the authentication code."""


class Sessions:
    """Sessions are random tokens, of which the server stores the hash and which it can end."""

    def __init__(self, store: Store, passwords: Passwords, browsers: KnownBrowsers) -> None:
        self._store = store
        self._passwords = passwords
        self._browsers = browsers

    def researcher(self) -> Researcher | None:
        """Return the researcher who sent this request, None if nobody is signed in."""
        if "researcher" not in g:
            token = session.get("token")
            g.researcher = (
                self._store.session_researcher(
                    hash_of(token), int(time.time()), IDLE_SECONDS, ABSOLUTE_SECONDS
                )
                if isinstance(token, str)
                else None
            )
        researcher: Researcher | None = g.researcher
        return researcher

    def current(self) -> Researcher:
        """Return the researcher who sent this request, on pages that require one."""
        researcher = self.researcher()
        if researcher is None:
            raise RuntimeError("this page is open to people who are not signed in")
        return researcher

    def verify(self, email: str, password: str) -> Researcher | None:
        """Return the researcher if the password matches; unknown addresses take the same time."""
        researcher = self._store.researcher(email)
        if not self._passwords.verify(researcher, password) or researcher is None:
            return None
        if self._passwords.is_outdated(researcher.password_hash):
            self._store.renew_hash(researcher, self._passwords.hash(password))
        return researcher

    def open(self, researcher: Researcher) -> None:
        """Open a new session, end that of the present cookie, and remember the browser."""
        self.close()
        self._browsers.remember(researcher.email)
        session["token"] = secrets.token_urlsafe(32)
        self._store.start_session(
            hash_of(session["token"]), researcher.key, int(time.time()), ABSOLUTE_SECONDS
        )
        g.pop("researcher", None)

    def await_code(self, researcher: Researcher) -> None:
        """Remember that the password was right; the authentication code must follow."""
        self.close()
        session["half_way"] = [researcher.email, int(time.time())]

    def awaiting_code(self) -> Researcher | None:
        """Return the researcher who gave the right password and must enter a code."""
        email, since = session.get("half_way") or ("", 0)
        if not email or int(time.time()) - since > CODE_SECONDS:
            return None
        return self._store.researcher(email)

    def token_hash(self) -> bytes:
        """Return the hash by which the server identifies this session."""
        return hash_of(session.get("token", ""))

    def started(self) -> int:
        """Return when this session was opened, in seconds since 1970."""
        open_sessions = self._store.sessions(self.current().key)
        return next(one.started for one in open_sessions if one.token_hash == self.token_hash())

    def close(self) -> None:
        """End this session on the server and delete its cookie."""
        if isinstance(token := session.get("token"), str):
            self._store.end_session(hash_of(token))
        session.clear()
