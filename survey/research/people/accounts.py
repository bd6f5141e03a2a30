"""The pages to sign in and out, in one or two steps, and to join by a colleague's link."""

from __future__ import annotations

import re
import time
from typing import Any

from flask import redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from survey.errors import NotFoundError
from survey.research.access import Route, Section
from survey.research.forms import CodeForm, JoinForm, SignInForm, SignOutForm
from survey.research.people.second_factor import is_right
from survey.research.people.throttle import THROTTLED
from survey.research.workspace import Workspace
from survey.security import hash_of
from survey.store import ColleagueLink, Researcher

WRONG = "This email address and password do not belong together."
WRONG_CODE = "This code is not right, or was used before. Take the one your app shows now."
KNOWN_ALREADY = "This address can sign in already: do so, then open the link."


def sections(workspace: Workspace) -> list[Section]:
    """The pages to sign in, sign out and join a team."""
    pages = _Pages(workspace)
    routes = [
        Route("GET POST", "/sign-in", "anybody", pages.sign_in),
        Route("GET POST", "/sign-in/code", "anybody", pages.second_step),
        Route("POST", "/sign-out", "researcher", pages.sign_out),
        Route("GET POST", "/join/<token>", "anybody", pages.join),
    ]
    section = Section("accounts", "/research", routes)
    section.app_context_processor(pages.researcher)
    return [section]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log
        self._passwords, self._throttle = workspace.passwords, workspace.throttle
        self._signed_in = workspace.signed_in

    def researcher(self) -> dict[str, Any]:
        """Who reads a page, for its head."""
        known = self._signed_in.researcher() if request.path.startswith("/research") else None
        return {"researcher": known, "sign_out_form": SignOutForm(formdata=None) if known else None}

    def sign_in(self) -> Any:
        """Address and password."""
        form = SignInForm()
        if not form.validate_on_submit():
            return render_template("research/sign_in.html", form=form), 422 if form.errors else 200
        address, email = request.remote_addr or "", form.email.data.strip()
        if not self._throttle.admits(address, email, time.time()):
            form.password.errors = [THROTTLED]
            return render_template("research/sign_in.html", form=form), 429
        found = self._signed_in.verified(email, form.password.data)
        if found is None:
            form.password.errors = [WRONG]
            return render_template("research/sign_in.html", form=form), 403
        self._throttle.succeeded(address, email)
        return self._after_password(found)

    def _after_password(self, found: Researcher) -> Response:
        wanted = _own_page(request.args.get("next", ""))
        if self._store.second_factor(found.key) is not None:
            self._signed_in.go_half_way(found)
            return redirect(url_for("accounts.second_step", next=wanted))
        self._signed_in.open(found)
        self._log.write_of(found.email, "signed in")
        return redirect(wanted)

    def second_step(self) -> Any:
        """The code of whoever has given the right password."""
        found = self._signed_in.half_way()
        if found is None:
            wanted = _own_page(request.args.get("next", ""))
            return redirect(url_for("accounts.sign_in", next=wanted))
        form = CodeForm()
        if not form.validate_on_submit():
            page = render_template("research/second_step.html", form=form)
            return page, 422 if form.errors else 200
        # A code has six digits: without a limit of its own it is guessed in a day.
        address = request.remote_addr or ""
        if not self._throttle.admits_code(address, found.email, time.time()):
            form.code.errors = [THROTTLED]
            return render_template("research/second_step.html", form=form), 429
        if not is_right(self._store, found, form.code.data, time.time()):
            form.code.errors = [WRONG_CODE]
            return render_template("research/second_step.html", form=form), 403
        self._throttle.succeeded_with_code(address, found.email)
        self._signed_in.open(found)
        self._log.write_of(found.email, "signed in", detail="with a second step")
        return redirect(_own_page(request.args.get("next", "")))

    def sign_out(self) -> Response:
        """End the session."""
        self._signed_in.close()
        return redirect(url_for("accounts.sign_in"))

    def join(self, token: str) -> Any:
        """A colleague's link: into an account that is there, or into a new one."""
        link = self._store.colleague_link(hash_of(token), int(time.time()))
        if link is None:
            raise NotFoundError("this link was used, or is older than a week; ask for another")
        known = self._signed_in.researcher()
        form = JoinForm(known=known is not None)
        if not form.validate_on_submit():
            return _join_page(form, link), 422 if form.errors else 200
        known = known or self._newcomer(form)
        if known is None:
            return _join_page(form, link), 422
        if self._store.join(hash_of(token), known.key, int(time.time())) is None:
            raise NotFoundError("this link was used in this moment; ask for another")
        self._signed_in.open(known)
        self._log.write_of(known.email, "joined", link.slug, link.role if link.slug else "")
        return redirect(url_for("research.surveys"))

    def _newcomer(self, form: JoinForm) -> Researcher | None:
        email = form.email.data.strip()
        if self._store.researcher(email) is not None:
            form.email.errors = [KNOWN_ALREADY]
            return None
        return self._store.add_researcher(email, self._passwords.hash(form.password.data))


def _join_page(form: JoinForm, link: ColleagueLink) -> str:
    return render_template("research/join.html", form=form, link=link)


def _own_page(path: str) -> str:
    """Where to go after signing in: a researchers' page of ours, never another site."""
    # What an address asks for comes as the browser sent it: visible ASCII, the rest in %XX.
    own = re.fullmatch(r"/research/[A-Za-z0-9/._-]*(\?[!-~]*)?", path)
    return path if own else url_for("research.surveys")
