"""A survey's team, its log, and everybody who may sign in: who may do what, and what was done."""

from __future__ import annotations

import secrets
import time
from typing import Any

from flask import flash, redirect, render_template, url_for

from survey.errors import NotFoundError
from survey.research.access import Route, Section
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


def sections(workspace: Workspace) -> list[Section]:
    """The pages of a survey's team, and of all researchers of this server."""
    team, people = _TeamPages(workspace), _PeoplePages(workspace)
    return [
        Section(
            "team",
            "/research/surveys/<slug>/team",
            [
                Route("GET", "", "owner", team.members),
                Route("POST", "/invite", "owner", team.invite),
                Route("POST", "/links/end", "owner", team.end_link),
                Route("POST", "/members/<int:researcher>", "owner", team.change),
                Route("GET", "/log", "owner", team.log_of),
            ],
        ),
        Section(
            "people",
            "/research/people",
            [
                Route("GET", "", "admin", people.researchers),
                Route("POST", "/invite", "admin", people.invite),
                Route("POST", "/links/end", "admin", people.end_link),
                Route("GET", "/log", "admin", people.log_of_all),
            ],
        ),
    ]


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


class _PeoplePages:
    """The pages on which an administrator lets researchers in."""

    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log
        self._links = _Links(workspace)

    def _page(self, form: NewcomerForm, link: str = "") -> str:
        people = [
            (
                person,
                self._store.second_factor(person.key) is not None,
                self._store.roles(person.key),
            )
            for person in self._store.researchers()
        ]
        return render_template(
            "research/people.html", people=people, form=form, link=link, **self._links.shown("")
        )

    def researchers(self) -> str:
        """List everybody who may sign in."""
        return self._page(NewcomerForm(formdata=None))

    def invite(self) -> Any:
        """Make a link for a new researcher and show it once."""
        form = NewcomerForm()
        if not form.validate_on_submit():
            return self._page(form), 422
        link = self._links.new("", "viewer")
        self._log.write("invited a researcher")
        return self._page(NewcomerForm(formdata=None), link)

    def end_link(self) -> Any:
        """Revoke a link that has not been used."""
        self._links.end("")
        return redirect(url_for("people.researchers"))

    def log_of_all(self) -> str:
        """Show what was done on this server."""
        return render_template("research/log.html", survey=None, actions=self._log.read())


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
