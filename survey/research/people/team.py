"""A survey's team, its log, and everybody who may sign in: who may do what, and what was done."""

from __future__ import annotations

import secrets
import time
from typing import Any

from flask import Blueprint, flash, redirect, render_template, url_for

from survey.errors import NotFoundError
from survey.research.forms import EndLinkForm, InviteForm, NewcomerForm, RoleForm
from survey.research.workspace import Workspace
from survey.security import hash_of
from survey.store import (
    ROLES,
    ColleagueLink,
    Draft,
    PublishedSurvey,
    Role,
    draft_key,
    find_survey,
)

LINK_SECONDS = 7 * 24 * 3600


def blueprints(workspace: Workspace) -> list[Blueprint]:
    """The routes of a survey's team, and of everybody who may sign in."""
    return [
        _team(workspace),
        _people(workspace),
    ]


def _team(workspace: Workspace) -> Blueprint:
    """The routes by which owners let colleagues in."""
    routes = Blueprint("team", __name__, url_prefix="/research/surveys/<slug>/team")
    pages = _TeamPages(workspace)
    routes.add_url_rule("", view_func=pages.members)
    routes.add_url_rule("/invite", view_func=pages.invite, methods=["POST"])
    routes.add_url_rule("/links/end", view_func=pages.end_link, methods=["POST"])
    routes.add_url_rule("/members/<int:researcher>", view_func=pages.change, methods=["POST"])
    routes.add_url_rule("/log", view_func=pages.log_of)
    return routes


class _TeamPages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log
        self._links = _Links(workspace)

    def _page(self, slug: str, form: InviteForm, link: str = "") -> str:
        return render_template(
            "research/team.html",
            survey=self._subject(slug),
            members=self._store.members(slug),
            form=form,
            role_form=RoleForm(formdata=None),
            roles=ROLES,
            link=link,
            **self._links.shown(slug),
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
        link = self._links.new(slug, form.role.data)
        self._log.write("invited a colleague", slug, form.role.data)
        return self._page(slug, InviteForm(formdata=None), link)

    def end_link(self, slug: str) -> Any:
        """Let nobody in by a link that is still open."""
        self._links.end(slug)
        return redirect(url_for("team.members", slug=slug))

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


def _people(workspace: Workspace) -> Blueprint:
    """The routes by which an admin lets researchers in."""
    store, log, links = workspace.store, workspace.log, _Links(workspace)
    routes = Blueprint("people", __name__, url_prefix="/research/people")

    def page(form: NewcomerForm, link: str = "") -> str:
        found = [
            (one, store.second_factor(one.key) is not None, store.roles(one.key))
            for one in store.researchers()
        ]
        return render_template(
            "research/people.html", people=found, form=form, link=link, **links.shown("")
        )

    @routes.get("")
    def researchers() -> str:
        return page(NewcomerForm(formdata=None))

    @routes.post("/invite")
    def invite() -> Any:
        form = NewcomerForm()
        if not form.validate_on_submit():
            return page(form), 422
        link = links.new("", "viewer")
        log.write("invited a researcher")
        return page(NewcomerForm(formdata=None), link)

    @routes.post("/links/end")
    def end_link() -> Any:
        links.end("")
        return redirect(url_for("people.researchers"))

    @routes.get("/log")
    def log_of_all() -> str:
        return render_template("research/log.html", survey=None, actions=log.read())

    return routes


class _Links:
    """Links that let one person in, of a survey's team or of none: made, listed, ended."""

    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log, self._gate = workspace.store, workspace.log, workspace.gate
        self._public_url = workspace.settings.public_url

    def new(self, slug: str, role: Role) -> str:
        """A link that is good once, for a week; only its hash is kept."""
        token = secrets.token_urlsafe(32)
        expires = int(time.time()) + LINK_SECONDS
        link = ColleagueLink(slug, role, expires, self._gate.researcher().key)
        self._store.add_colleague_link(hash_of(token), link)
        return f"{self._public_url.rstrip('/')}{url_for('accounts.join', token=token)}"

    def shown(self, slug: str) -> dict[str, Any]:
        """What a page needs to list those that are open."""
        open_links = self._store.colleague_links(slug, int(time.time()))
        return {"open_links": open_links, "end_form": EndLinkForm(formdata=None)}

    def end(self, slug: str) -> None:
        """End the one that a form names."""
        wanted = EndLinkForm().link.data or ""
        for one in self._store.colleague_links(slug, int(time.time())):
            if one.token_hash.hex() == wanted and self._store.end_colleague_link(
                slug, one.token_hash
            ):
                detail = f"{one.role}, of {one.maker}" if slug else f"of {one.maker}"
                self._log.write("withdrew a link", slug, detail)
                flash("The link is good no more.")
