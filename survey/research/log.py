"""The log of what researchers do: who, what, when; never anything of a respondent."""

from __future__ import annotations

import time

from survey.research.people.signed_in import SignedIn
from survey.store import Action, Store, team_of

MOST_SHOWN = 500


class Log:
    """Writes down what the researcher behind a request does."""

    def __init__(self, store: Store, signed_in: SignedIn) -> None:
        self._store = store
        self._signed_in = signed_in

    def write(self, what: str, slug: str = "", detail: str = "") -> None:
        """Write down that it was done, after it was."""
        self.write_of(self._signed_in.known().email, what, slug, detail)

    def write_of(self, who: str, what: str, slug: str = "", detail: str = "") -> None:
        """The same of somebody who is just signing in."""
        self._store.add_action(Action(int(time.time()), who, what, team_of(slug), detail))

    def read(self, slug: str | None = None) -> list[Action]:
        """The latest actions, of one survey or all."""
        return self._store.actions(slug, MOST_SHOWN)
