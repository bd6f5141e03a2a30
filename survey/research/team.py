"""The team of a survey, all researchers of this server, and the logs of what they did."""

from __future__ import annotations

import secrets
import time
from typing import Any

from flask import flash, redirect, render_template, url_for
from flask_wtf import FlaskForm

from survey.errors import NotFoundError
from survey.research.access import Pages, Route, Section, Workspace
from survey.research.forms import (
    InvitationLinkForm,
    InviteForm,
    InviteResearcherForm,
    RoleForm,
    TwoFactorRuleForm,
)
from survey.research.look import MAX_LOGO_BYTES, MAX_LOGO_PIXELS, OWN, LookForm
from survey.security import hash_of
from survey.store import (
    ROLES,
    ColleagueLink,
    Draft,
    PublishedSurvey,
    Role,
    TeamLook,
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
                Route("POST", "/links/end", "owner", team.revoke_link),
                Route("POST", "/members/<int:researcher>", "owner", team.change_role),
                Route("POST", "/look", "owner", team.change_look),
                Route("GET", "/log", "owner", team.log),
            ],
        ),
        Section(
            "people",
            "/research/people",
            [
                Route("GET", "", "admin", people.researchers),
                Route("POST", "/invite", "admin", people.invite),
                Route("POST", "/two-factor", "admin", people.two_factor),
                Route("POST", "/links/end", "admin", people.revoke_link),
                Route("GET", "/log", "admin", people.log),
            ],
        ),
    ]


class _TeamPages(Pages):
    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._links = _InvitationLinks(workspace)

    def _page(
        self, slug: str, form: InviteForm, link: str = "", look_form: LookForm | None = None
    ) -> str:
        return render_template(
            "research/team.html",
            survey=self._survey_or_draft(slug),
            look_form=look_form or LookForm.of(self._store.team_look(slug) or TeamLook()),
            own_accent=OWN,
            max_logo_bytes=MAX_LOGO_BYTES,
            max_logo_pixels=MAX_LOGO_PIXELS,
            members=self._store.members(slug),
            form=form,
            role_form=RoleForm(formdata=None),
            roles=ROLES,
            link=link,
            **self._links.template_variables(slug),
        )

    def _survey_or_draft(self, slug: str) -> PublishedSurvey | Draft:
        draft = self._store.draft(draft_key(slug))
        return draft or find_survey(self._store, slug)

    def members(self, slug: str) -> str:
        """List the members of the team."""
        return self._page(slug, InviteForm(formdata=None))

    def invite(self, slug: str) -> Any:
        """Create an invitation link for one colleague and show it once."""
        form = InviteForm()
        if not form.validate_on_submit():
            return self._page(slug, form), 422
        link = self._links.create(slug, form.role.data)
        self._log.write("invited a colleague", slug, form.role.data)
        return self._page(slug, InviteForm(formdata=None), link)

    def revoke_link(self, slug: str) -> Any:
        """Revoke an unused invitation link."""
        self._links.revoke(slug)
        return redirect(url_for("team.members", slug=slug))

    def change_role(self, slug: str, researcher: int) -> Any:
        """Change the role of a member, or remove them from the team."""
        form, members = RoleForm(), self._store.members(slug)
        member = next((m for m in members if m.researcher == researcher), None)
        if member is None:
            raise NotFoundError(f"the team of {slug} has no member {researcher}")
        if not form.validate_on_submit():
            return self._page(slug, InviteForm(formdata=None)), 422
        role: Role | None = form.role.data if form.role.data in ROLES else None
        self._store.set_role(slug, researcher, role)
        self._log.write("changed a role", slug, f"{member.email}: {role or 'none'}")
        flash(f"{member.email} is now {role}." if role else f"{member.email} left the team.")
        return redirect(url_for("team.members", slug=slug))

    def change_look(self, slug: str) -> Any:
        """Change the name, the logo and the accent of the team of a published survey."""
        find_survey(self._store, slug)
        form, look = LookForm(), self._store.team_look(slug) or TeamLook()
        changed = form.changed(look) if form.validate_on_submit() else None
        if changed is None:
            return self._page(slug, InviteForm(formdata=None), look_form=form), 422
        self._store.set_team_look(slug, changed)
        detail = f"{changed.name or 'no name'}, {changed.accent or 'standard accent'}"
        self._log.write("changed the look", slug, f"{detail}, {len(changed.logo):,} B of logo")
        flash("The branding has been saved. Results, reports and figures use it now.")
        return redirect(url_for("team.members", slug=slug, _anchor="look"))

    def log(self, slug: str) -> str:
        """Show what researchers did with the survey."""
        survey = self._survey_or_draft(slug)
        return render_template("research/log.html", survey=survey, actions=self._log.read(slug))


class _PeoplePages(Pages):
    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._links = _InvitationLinks(workspace)

    def _page(self, form: FlaskForm, link: str = "") -> str:
        store = self._store
        failures = store.failed_sign_ins()
        people = [
            (
                person,
                store.second_factor(person.key) is not None,
                store.roles(person.key),
                failures.get(person.key),
            )
            for person in store.researchers()
        ]
        return render_template(
            "research/people.html",
            people=people,
            n_without=sum(not has_two_factor for _, has_two_factor, *_ in people),
            is_required=store.two_factor_required(),
            two_factor_form=TwoFactorRuleForm(formdata=None),
            form=form,
            link=link,
            **self._links.template_variables(""),
        )

    def researchers(self) -> str:
        """List everybody who has an account."""
        return self._page(InviteResearcherForm(formdata=None))

    def invite(self) -> Any:
        """Create an invitation link for a new researcher and show it once."""
        form = InviteResearcherForm()
        if not form.validate_on_submit():
            return self._page(form), 422
        link = self._links.create("", "viewer")
        self._log.write("invited a researcher")
        return self._page(InviteResearcherForm(formdata=None), link)

    def two_factor(self) -> Any:
        """Require two-factor authentication of all accounts, or stop requiring it."""
        required = TwoFactorRuleForm().required.data == "yes"
        self._store.set_two_factor_required(required=required)
        verb = "required" if required else "stopped requiring"
        self._log.write(f"{verb} two-factor authentication")
        return redirect(url_for("people.researchers", _anchor="two-factor"))

    def revoke_link(self) -> Any:
        """Revoke an unused invitation link."""
        self._links.revoke("")
        return redirect(url_for("people.researchers"))

    def log(self) -> str:
        """Show what researchers did on this server."""
        return render_template("research/log.html", survey=None, actions=self._log.read())


class _InvitationLinks(Pages):
    """Single-use invitations to the team of a survey, or to this server (slug "")."""

    def create(self, slug: str, role: Role) -> str:
        """Create a link that is valid for a week; only its hash is stored."""
        token = secrets.token_urlsafe(32)
        expires = int(time.time()) + LINK_SECONDS
        link = ColleagueLink(slug, role, expires, self._gate.researcher().key)
        self._store.add_colleague_link(hash_of(token), link)
        return f"{self._settings.researchers_url}{url_for('accounts.join', token=token)}"

    def template_variables(self, slug: str) -> dict[str, Any]:
        """Return the variables of `open_links_table`."""
        links = self._store.colleague_links(slug, int(time.time()))
        return {"open_links": links, "link_form": InvitationLinkForm(formdata=None)}

    def revoke(self, slug: str) -> None:
        """Revoke the link that the form names."""
        link_id = InvitationLinkForm().link.data or ""
        for link in self._store.colleague_links(slug, int(time.time())):
            if link.token_hash.hex() == link_id and self._store.revoke_colleague_link(
                slug, link.token_hash
            ):
                detail = f"{link.role}, by {link.maker}" if slug else f"by {link.maker}"
                self._log.write("revoked an invitation", slug, detail)
                flash("This link has been revoked.")
