"""Signing in and out: argon2id passwords, sessions that the server can end, slow guessing."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError
from flask import Blueprint, g, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from survey.errors import SurveyError
from survey.research.forms import SignInForm, SignOutForm
from survey.store import Researcher, Store

MIN_PASSWORD_LENGTH = 12
IDLE_SECONDS = 2 * 3600
ABSOLUTE_SECONDS = 12 * 3600
MAX_TRIES = 10
MAX_TRIES_PER_ADDRESS = 50
TRY_SECONDS = 15 * 60
MAX_REMEMBERED = 10_000
WRONG = "This email address and password do not belong together."
THROTTLED = "Too many wrong passwords. Wait 15 minutes and try again."


class Passwords:
    """Hash and verify passwords; an unknown address takes as long as a wrong password."""

    def __init__(self, cost: int) -> None:
        self._hasher = PasswordHasher(time_cost=cost)
        self._nobody = self._hasher.hash(secrets.token_hex())

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


class SignedIn:
    """Who a request comes from, by a random token of which the server keeps the hash."""

    def __init__(self, store: Store, passwords: Passwords) -> None:
        self._store = store
        self._passwords = passwords

    def researcher(self) -> Researcher | None:
        """The researcher behind this request."""
        if "researcher" not in g:
            token = session.get("token")
            g.researcher = (
                self._store.session_researcher(
                    _hash(token),
                    int(time.time()),
                    IDLE_SECONDS,
                    ABSOLUTE_SECONDS,
                )
                if isinstance(token, str)
                else None
            )
        found: Researcher | None = g.researcher
        return found

    def sign_in(self, email: str, password: str) -> bool:
        """Open a new session when the password is right; the old one's cookie is worthless."""
        researcher = self._store.researcher(email)
        if not self._passwords.verify(researcher, password) or researcher is None:
            return False
        self.sign_out()
        session["token"] = secrets.token_urlsafe(32)
        self._store.start_session(
            _hash(session["token"]), researcher.key, int(time.time()), ABSOLUTE_SECONDS
        )
        return True

    def sign_out(self) -> None:
        """End this session on the server, and forget it in the browser."""
        if isinstance(token := session.get("token"), str):
            self._store.end_session(_hash(token))
        session.clear()

    def required(self, view: Callable[..., Any]) -> Callable[..., Any]:
        """Show a page to researchers only; others sign in first and come back."""

        @wraps(view)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if self.researcher() is None:
                return redirect(url_for("accounts.sign_in", next=request.path))
            return view(*args, **kwargs)

        return guarded


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8")).digest()


def blueprint(signed_in: SignedIn) -> Blueprint:
    """The routes to sign in and out."""
    routes = Blueprint("accounts", __name__, url_prefix="/research")
    throttle = Throttle()

    @routes.app_context_processor
    def researcher() -> dict[str, Any]:
        known = signed_in.researcher() if request.path.startswith("/research") else None
        return {"researcher": known, "sign_out_form": SignOutForm(formdata=None) if known else None}

    @routes.route("/sign-in", methods=["GET", "POST"])
    def sign_in() -> Any:
        form = SignInForm()
        if not form.validate_on_submit():
            page = render_template("research/sign_in.html", form=form)
            return page, 422 if form.errors else 200
        address, email = request.remote_addr or "", form.email.data.strip()
        if not throttle.admits(address, email, time.monotonic()):
            form.password.errors = [THROTTLED]
            return render_template("research/sign_in.html", form=form), 429
        if not signed_in.sign_in(email, form.password.data):
            form.password.errors = [WRONG]
            return render_template("research/sign_in.html", form=form), 403
        throttle.succeeded(address, email)
        return redirect(_own_page(request.args.get("next", "")))

    @routes.post("/sign-out")
    def sign_out() -> Response:
        signed_in.sign_out()
        return redirect(url_for("accounts.sign_in"))

    return routes


def _own_page(path: str) -> str:
    """Where to go after signing in: a researchers' page of ours, never another site."""
    own = re.fullmatch(r"/research/[A-Za-z0-9/._-]*", path)
    return path if own else url_for("research.surveys")
