"""Who may open which researchers' page: a table, and the one place that asks it.

A survey somebody is no member of does not exist for them (404); what their role there does not
allow is refused by name (403).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from flask import Flask, current_app, redirect, request, url_for

from survey.errors import ForbiddenError, NotFoundError
from survey.research.people.signed_in import SignedIn
from survey.store import ROLES, Researcher, Role, Store, draft_key, team_of

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
    "tokens.overview": "researcher",
    "tokens.end": "researcher",
    "research.surveys": "researcher",
    "research.publish": "researcher",
    "research.newest": "viewer",
    "research.dashboard": "viewer",
    "research.estimates": "viewer",
    "research.estimates_xlsx": "viewer",
    "research.figure": "viewer",
    "microdata.explained": "editor",
    "microdata.given": "editor",
    "reporting.stylesheet": "anybody",
    "reporting.methods": "researcher",
    "reporting.survey_methods": "viewer",
    "reporting.report": "viewer",
    "reporting.report_pdf": "viewer",
    "research.question": "viewer",
    "research.chart": "viewer",
    "grouping.links": "viewer",
    "grouping.trend": "viewer",
    "grouping.versions": "viewer",
    "grouping.as_csv": "viewer",
    "grouping.chart": "viewer",
    "grouping.figure": "viewer",
    "exploring.crosstab": "viewer",
    "exploring.as_csv": "viewer",
    "comparing.difference": "viewer",
    "comparing.as_csv": "viewer",
    "comparing.figure": "viewer",
    "weighing.weighting": "viewer",
    "weighing.upload": "viewer",
    "weighing.as_csv": "viewer",
    "regressing.regression": "viewer",
    "regressing.as_csv": "viewer",
    "exploring.as_xlsx": "viewer",
    "collecting.overview": "editor",
    "collecting.drawn_link": "editor",
    "collecting.invite": "editor",
    "collecting.schedule": "editor",
    "collecting.release": "editor",
    "collecting.close": "owner",
    "team.members": "owner",
    "team.invite": "owner",
    "team.end_link": "owner",
    "team.change": "owner",
    "team.log_of": "owner",
    "drafts.script": "anybody",
    "drafts.new": "researcher",
    "drafts.of_file": "researcher",
    "drafts.of_survey": "editor",
    "drafts.outline": "viewer",
    "drafts.edit": "editor",
    "drafts.page": "editor",
    "drafts.delete": "owner",
    "drafts.question": "editor",
    "drafts.texts": "editor",
    "drafts.plan": "editor",
    "drafts.languages": "editor",
    "drafts.translation": "editor",
    "drafts.remove_language": "editor",
    "drafts.tradeoff": "viewer",
    "drafts.trial": "editor",
    "drafts.make_trial": "editor",
    "drafts.simulate": "editor",
    "drafts.publish": "editor",
    "lifecycle.archive": "owner",
    "lifecycle.delete": "owner",
    "people.researchers": "admin",
    "people.invite": "admin",
    "people.end_link": "admin",
    "people.log_of_all": "admin",
}
"""What one must be to open an endpoint; of a survey's page, the least role in that survey."""


GONE = "This draft is not there any more."

OF_REAL_SURVEYS = ("collecting", "lifecycle")
"""Parts that follow real surveys: a draft and its try-out have none of it."""


class Gate:
    """Lets through who may, before a view runs."""

    def __init__(self, store: Store, signed_in: SignedIn) -> None:
        self._store = store
        self._signed_in = signed_in
        self.keeps: Callable[[str, int], Any] = lambda _reason, _status: None
        """What gives back a form that cannot be saved, told why, if anything does."""

    def researcher(self) -> Researcher:
        """Whoever is behind this request."""
        return self._signed_in.known()

    def roles(self) -> Mapping[str, Role]:
        """The surveys and drafts that the researcher behind this request may see."""
        known = self._signed_in.known()
        if not known.is_admin:
            return self._store.roles(known.key)
        published = [survey.slug for survey in self._store.surveys()]
        return dict.fromkeys([*published, *(one.slug for one in self._store.drafts())], "owner")

    def role(self, slug: str) -> Role | None:
        """What the researcher behind this request may do with a survey."""
        known = self._signed_in.known()
        if known.is_admin:
            return "owner"
        return self._store.roles(known.key).get(team_of(slug))

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
            if kept := self.keeps("", 401):
                return kept
            return redirect(url_for("accounts.sign_in", next=_page_asked_for()))
        if wanted == "admin" and not researcher.is_admin:
            raise NotFoundError("there is nothing at this address")
        if wanted in ROLES:
            return self._check_role(str((request.view_args or {})["slug"]), wanted)
        return None

    def _check_role(self, slug: str, least: Role) -> Any:
        if self.role(slug) is None or not self._is_there(slug):
            return self._gone(slug)
        # Who works on a try-out stands on its draft's page, under the draft's name.
        of_others = OF_REAL_SURVEYS if draft_key(slug) else (*OF_REAL_SURVEYS, "team")
        if draft_key(team_of(slug)) and (request.blueprint or "") in of_others:
            raise NotFoundError("a try-out is made and removed on the pages of its draft")
        if not self.allows(slug, least):
            refusal = f"this needs the role {least} in the survey {slug}; ask one of its owners"
            here = "draft" if draft_key(slug) else "survey"
            if kept := self.keeps(f"Your role in this {here} has changed: {refusal}.", 403):
                return kept
            raise ForbiddenError(refusal)
        return None

    def _gone(self, slug: str) -> Any:
        """The answer about what is not there, or is none of theirs."""
        became = self._store.became(key) if (key := draft_key(team_of(slug))) else ""
        if became and self.role(became):
            # What was written meanwhile comes back; pressing a button twice leads to what it made.
            told = f"This draft was published meanwhile, as {became}, and takes no more changes."
            return self.keeps(told, 409) or redirect(url_for("research.newest", slug=became))
        if draft_key(slug) and (kept := self.keeps(GONE, 404)):
            return kept
        raise NotFoundError(f'there is no survey "{slug}"')

    def _is_there(self, slug: str) -> bool:
        """Whether there is such a survey, or such a draft."""
        if key := draft_key(slug):
            return self._store.draft(key) is not None
        return bool(self._store.versions(slug))


def _page_asked_for() -> str:
    """The page to come back to: with what its address asks for, unless a form was sent to it."""
    page = _page_of(request.path)
    query = request.query_string.decode("ascii", "ignore") if request.method == "GET" else ""
    return f"{page}?{query}" if query else page


def _page_of(path: str) -> str:
    """The address itself, or of a form's, the page it stands on."""
    adapter = current_app.url_map.bind("")
    while path.count("/") > 1 and not adapter.test(path, "GET"):
        path = path.rpartition("/")[0]
    return path


def guard(app: Flask, gate: Gate) -> None:
    """Ask the table before every researchers' page; a page that is not in it stops the start."""
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/research") and rule.endpoint not in POLICY:
            raise RuntimeError(f"who may open {rule.rule} ({rule.endpoint}) is not said")
    app.before_request(gate.check)
