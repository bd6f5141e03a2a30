"""What all researchers' pages share."""

from __future__ import annotations

from dataclasses import dataclass

from survey.research.access import Gate
from survey.research.log import Log
from survey.research.people.passwords import Passwords
from survey.research.people.signed_in import SignedIn
from survey.research.people.throttle import Throttle
from survey.results.estimates.result import Results
from survey.settings import Settings
from survey.store import Store


@dataclass(frozen=True)
class Workspace:
    """One store, who is signed in to it, and what they may do there."""

    store: Store
    results: Results
    settings: Settings
    client_hash: str
    passwords: Passwords
    throttle: Throttle
    signed_in: SignedIn
    gate: Gate
    log: Log

    @classmethod
    def over(
        cls, store: Store, results: Results, settings: Settings, client_hash: str
    ) -> Workspace:
        """A workspace with nobody signed in yet."""
        passwords = Passwords(settings.password_cost)
        signed_in = SignedIn(store, passwords)
        return cls(
            store,
            results,
            settings,
            client_hash,
            passwords,
            Throttle(store, settings.secret),
            signed_in,
            Gate(store, signed_in),
            Log(store, signed_in),
        )
