"""Who a request comes from: sessions that the server can end, in one or two steps."""

from __future__ import annotations

import secrets
import time

from flask import g, session

from survey.research.people.passwords import Passwords
from survey.security import hash_of
from survey.store import Researcher, Store

IDLE_SECONDS = 2 * 3600
ABSOLUTE_SECONDS = 12 * 3600
HALF_WAY_SECONDS = 5 * 60
"""How long after the password the code of the second step is taken."""


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
                    hash_of(token), int(time.time()), IDLE_SECONDS, ABSOLUTE_SECONDS
                )
                if isinstance(token, str)
                else None
            )
        found: Researcher | None = g.researcher
        return found

    def known(self) -> Researcher:
        """The researcher behind a request that only researchers can make."""
        found = self.researcher()
        if found is None:
            raise RuntimeError("this page is open to people who have not signed in")
        return found

    def verified(self, email: str, password: str) -> Researcher | None:
        """The researcher whose password this is; nobody takes as long."""
        researcher = self._store.researcher(email)
        if not self._passwords.verify(researcher, password) or researcher is None:
            return None
        if self._passwords.is_outdated(researcher.password_hash):
            self._store.renew_hash(researcher, self._passwords.hash(password))
        return researcher

    def open(self, researcher: Researcher) -> None:
        """Open a new session; the old one's cookie is worthless from now on."""
        self.close()
        session["token"] = secrets.token_urlsafe(32)
        self._store.start_session(
            hash_of(session["token"]), researcher.key, int(time.time()), ABSOLUTE_SECONDS
        )
        g.pop("researcher", None)

    def go_half_way(self, researcher: Researcher) -> None:
        """The password was right; nothing is open yet, a code is still to come."""
        self.close()
        session["half_way"] = [researcher.email, int(time.time())]

    def half_way(self) -> Researcher | None:
        """Whoever has given the right password and must give a code now."""
        email, since = session.get("half_way") or ("", 0)
        if not email or int(time.time()) - since > HALF_WAY_SECONDS:
            return None
        return self._store.researcher(email)

    def token_hash(self) -> bytes:
        """The hash by which the server knows this session."""
        return hash_of(session.get("token", ""))

    def close(self) -> None:
        """End this session on the server, and forget it in the browser."""
        if isinstance(token := session.get("token"), str):
            self._store.end_session(hash_of(token))
        session.clear()
