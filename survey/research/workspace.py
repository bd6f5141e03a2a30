"""What all researchers' pages share: objects, the log of actions, and files to download."""

from __future__ import annotations

import time
from dataclasses import dataclass

from flask import Response

from survey.research.access import Gate
from survey.research.credentials import Passwords
from survey.research.sessions import Sessions, Throttle
from survey.results.estimates.result import ResultCache
from survey.settings import Settings
from survey.store import Action, PublishedSurvey, Store, team_slug

LOG_LENGTH = 500
"""Number of actions that a log page shows."""


class Log:
    """The log of researchers' actions: who did what, and when; never anything of a respondent."""

    def __init__(self, store: Store, sessions: Sessions) -> None:
        self._store = store
        self._sessions = sessions

    def write(self, event: str, slug: str = "", detail: str = "") -> None:
        """Log an action of the researcher who sent this request, after it succeeded."""
        self.write_for(self._sessions.current().email, event, slug, detail)

    def write_for(self, email: str, event: str, slug: str = "", detail: str = "") -> None:
        """Log an action of a researcher who is not signed in yet."""
        self._store.add_action(Action(int(time.time()), email, event, team_slug(slug), detail))

    def read(self, slug: str | None = None) -> list[Action]:
        """Return the latest actions in one survey, or on the whole server."""
        return self._store.actions(slug, LOG_LENGTH)


@dataclass(frozen=True)
class Workspace:
    """A store with everything the researchers' pages need to work on it."""

    store: Store
    results: ResultCache
    settings: Settings
    client_hash: str
    passwords: Passwords
    throttle: Throttle
    sessions: Sessions
    gate: Gate
    log: Log

    @classmethod
    def over(
        cls, store: Store, results: ResultCache, settings: Settings, client_hash: str
    ) -> Workspace:
        """Create the workspace of a store."""
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


CSV = "text/csv; charset=utf-8"


def file_name(survey: PublishedSurvey, subject: str) -> str:
    """Return the name of a file about a version; files of test runs begin with TEST."""
    test = "TEST-" if survey.is_test_run else ""
    return f"{test}{survey.slug}-{survey.version}-{subject}"


def download(content: bytes | str, content_type: str, name: str) -> Response:
    """Return a file; its name must consist of slugs, numbers and identifiers."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, content_type=content_type, headers=headers)
