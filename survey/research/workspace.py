"""What all researchers' pages share."""

from __future__ import annotations

import time
from dataclasses import dataclass

from survey.research.access import Gate
from survey.research.credentials import Passwords
from survey.research.sessions import Sessions, Throttle
from survey.results.estimates.result import Results
from survey.settings import Settings
from survey.store import Action, Store, team_slug


@dataclass(frozen=True)
class Workspace:
    """One store, who is signed in to it, and what they may do there."""

    store: Store
    results: Results
    settings: Settings
    client_hash: str
    passwords: Passwords
    throttle: Throttle
    sessions: Sessions
    gate: Gate
    log: Log

    @classmethod
    def over(
        cls, store: Store, results: Results, settings: Settings, client_hash: str
    ) -> Workspace:
        """A workspace with nobody signed in yet."""
        passwords = Passwords(settings.password_cost)
        sessions = Sessions(store, passwords)
        return cls(
            store,
            results,
            settings,
            client_hash,
            passwords,
            Throttle(store, settings.secret),
            sessions,
            Gate(store, sessions),
            Log(store, sessions),
        )


MOST_SHOWN = 500


class Log:
    """Writes down what the researcher behind a request does."""

    def __init__(self, store: Store, sessions: Sessions) -> None:
        self._store = store
        self._sessions = sessions

    def write(self, what: str, slug: str = "", detail: str = "") -> None:
        """Write down that it was done, after it was."""
        self.write_of(self._sessions.known().email, what, slug, detail)

    def write_of(self, who: str, what: str, slug: str = "", detail: str = "") -> None:
        """The same of somebody who is just signing in."""
        self._store.add_action(Action(int(time.time()), who, what, team_slug(slug), detail))

    def read(self, slug: str | None = None) -> list[Action]:
        """The latest actions, of one survey or all."""
        return self._store.actions(slug, MOST_SHOWN)
