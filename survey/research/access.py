"""Who may open which researchers' page: a table, and the one place that asks it.

A survey somebody is no member of does not exist for them (404); what their role there does not
allow is refused by name (403).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from flask import Flask, redirect, request, url_for

from survey.errors import ForbiddenError, NotFoundError
from survey.research.signed_in import SignedIn
from survey.store import ROLES, Researcher, Role, Store

Access = Literal["anybody", "researcher", "viewer", "editor", "owner", "admin"]

POLICY: Mapping[str, Access] = {
    "research.asset": "anybody",
    "accounts.sign_in": "anybody",
    "accounts.second_step": "anybody",
    "accounts.join": "anybody",
    "accounts.sign_out": "researcher",
    "account.overview": "researcher",
    "account.password": "researcher",
    "account.add_second_step": "researcher",
    "account.remove_second_step": "researcher",
    "account.end_session": "researcher",
    "research.surveys": "researcher",
    "research.publish": "researcher",
    "research.newest": "viewer",
    "research.dashboard": "viewer",
    "research.estimates": "viewer",
    "research.estimates_xlsx": "viewer",
    "research.figure": "viewer",
    "exploring.crosstab": "viewer",
    "exploring.as_csv": "viewer",
    "collecting.overview": "editor",
    "collecting.drawn_link": "editor",
    "collecting.invite": "editor",
    "collecting.schedule": "editor",
    "collecting.release": "editor",
    "collecting.close": "owner",
    "team.members": "owner",
    "team.invite": "owner",
    "team.change": "owner",
    "team.log_of": "owner",
    "people.researchers": "admin",
    "people.invite": "admin",
    "people.log_of_all": "admin",
}
"""What one must be to open an endpoint; of a survey's page, the least role in that survey."""


class Gate:
    """Lets through who may, before a view runs."""

    def __init__(self, store: Store, signed_in: SignedIn) -> None:
        self._store = store
        self._signed_in = signed_in

    def researcher(self) -> Researcher:
        """Whoever is behind this request."""
        return self._signed_in.known()

    def role(self, slug: str) -> Role | None:
        """What the researcher behind this request may do with a survey."""
        known = self._signed_in.known()
        if known.is_admin:
            return "owner"
        return self._store.roles(known.key).get(slug)

    def allows(self, slug: str, least: Role) -> bool:
        """Whether the researcher behind this request may do as much."""
        role = self.role(slug)
        return role is not None and ROLES.index(role) >= ROLES.index(least)

    def check(self) -> Any:
        """Refuse a request by name, or ask to sign in first; None lets it through."""
        wanted = POLICY.get(request.endpoint or "")
        if wanted is None or wanted == "anybody":
            return None
        researcher = self._signed_in.researcher()
        if researcher is None:
            return redirect(url_for("accounts.sign_in", next=request.path))
        if wanted == "admin" and not researcher.is_admin:
            raise NotFoundError("there is nothing at this address")
        if wanted in ROLES:
            self._check_role(str((request.view_args or {})["slug"]), wanted)
        return None

    def _check_role(self, slug: str, least: Role) -> None:
        if self.role(slug) is None or not self._store.versions(slug):
            raise NotFoundError(f'there is no survey "{slug}"')
        if not self.allows(slug, least):
            raise ForbiddenError(
                f"this needs the role {least} in the survey {slug}; ask one of its owners"
            )


def guard(app: Flask, gate: Gate) -> None:
    """Ask the table before every researchers' page; a page that is not in it stops the start."""
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/research") and rule.endpoint not in POLICY:
            raise RuntimeError(f"who may open {rule.rule} ({rule.endpoint}) is not said")
    app.before_request(gate.check)
