"""A survey's team, its log, and everybody who may sign in: who may do what, and what was done."""

from __future__ import annotations

import secrets
import time
from typing import Any

from flask import Blueprint, flash, redirect, render_template, url_for

from survey.errors import NotFoundError
from survey.research.forms import InviteForm, NewcomerForm, RoleForm
from survey.research.log import Log
from survey.research.workspace import Workspace
from survey.security import hash_of
from survey.store import (
    ROLES,
    ColleagueLink,
    Draft,
    PublishedSurvey,
    Role,
    Store,
    draft_key,
    find_survey,
)

LINK_SECONDS = 7 * 24 * 3600


def blueprints(workspace: Workspace) -> list[Blueprint]:
    """The routes of a survey's team, and of everybody who may sign in."""
    return [
        _team(workspace),
        _people(workspace.store, workspace.settings.public_url, workspace.log),
    ]


def _team(workspace: Workspace) -> Blueprint:
    """The routes by which owners let colleagues in."""
    routes = Blueprint("team", __name__, url_prefix="/research/surveys/<slug>/team")
    pages = _TeamPages(workspace)
    routes.add_url_rule("", view_func=pages.members)
    routes.add_url_rule("/invite", view_func=pages.invite, methods=["POST"])
    routes.add_url_rule("/members/<int:researcher>", view_func=pages.change, methods=["POST"])
    routes.add_url_rule("/log", view_func=pages.log_of)
    return routes


class _TeamPages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log
        self._public_url = workspace.settings.public_url

    def _page(self, slug: str, form: InviteForm, link: str = "") -> str:
        return render_template(
            "research/team.html",
            survey=self._subject(slug),
            members=self._store.members(slug),
            form=form,
            role_form=RoleForm(formdata=None),
            roles=ROLES,
            link=link,
        )

    def _subject(self, slug: str) -> PublishedSurvey | Draft:
        """The survey or the draft that a team works on."""
        draft = self._store.draft(draft_key(slug))
        return draft or find_survey(self._store, slug)

    def members(self, slug: str) -> str:
        """Who is in it."""
        return self._page(slug, InviteForm(formdata=None))

    def invite(self, slug: str) -> Any:
        """A link for one colleague, shown once."""
        form = InviteForm()
        if not form.validate_on_submit():
            return self._page(slug, form), 422
        link = _new_link(self._store, self._public_url, slug, form.role.data)
        self._log.write("invited a colleague", slug, form.role.data)
        return self._page(slug, InviteForm(formdata=None), link)

    def change(self, slug: str, researcher: int) -> Any:
        """Another role for a member, or none."""
        form, members = RoleForm(), self._store.members(slug)
        member = next((one for one in members if one.researcher == researcher), None)
        if member is None:
            raise NotFoundError(f"nobody of that number is in the team of {slug}")
        if not form.validate_on_submit():
            return self._page(slug, InviteForm(formdata=None)), 422
        role: Role | None = form.role.data if form.role.data in ROLES else None
        self._store.set_role(slug, researcher, role)
        self._log.write("changed a role", slug, f"{member.email}: {role or 'none'}")
        flash(f"{member.email} is {role or 'no member'} now.")
        return redirect(url_for("team.members", slug=slug))

    def log_of(self, slug: str) -> str:
        """What was done with the survey."""
        survey = self._subject(slug)
        return render_template("research/log.html", survey=survey, actions=self._log.read(slug))


def _people(store: Store, public_url: str, log: Log) -> Blueprint:
    """The routes by which an admin lets researchers in."""
    routes = Blueprint("people", __name__, url_prefix="/research/people")

    def page(form: NewcomerForm, link: str = "") -> str:
        found = [
            (one, store.second_factor(one.key) is not None, store.roles(one.key))
            for one in store.researchers()
        ]
        return render_template("research/people.html", people=found, form=form, link=link)

    @routes.get("")
    def researchers() -> str:
        return page(NewcomerForm(formdata=None))

    @routes.post("/invite")
    def invite() -> Any:
        form = NewcomerForm()
        if not form.validate_on_submit():
            return page(form), 422
        link = _new_link(store, public_url, "", "viewer")
        log.write("invited a researcher")
        return page(NewcomerForm(formdata=None), link)

    @routes.get("/log")
    def log_of_all() -> str:
        return render_template("research/log.html", survey=None, actions=log.read())

    return routes


def _new_link(store: Store, public_url: str, slug: str, role: Role) -> str:
    """A link that lets one person in, for a week; only its hash is kept."""
    token = secrets.token_urlsafe(32)
    expires = int(time.time()) + LINK_SECONDS
    store.add_colleague_link(hash_of(token), ColleagueLink(slug, role, expires))
    return f"{public_url.rstrip('/')}{url_for('accounts.join', token=token)}"
