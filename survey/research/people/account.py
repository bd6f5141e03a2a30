"""Somebody's own account: password, second step, open sessions."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from flask import flash, redirect, render_template, session, url_for
from werkzeug.wrappers import Response

from survey.research.access import Route, Section
from survey.research.forms import AddSecondStepForm, ConfirmForm, PasswordForm, SessionForm
from survey.research.people import second_factor
from survey.research.people.proof import proves_password
from survey.research.workspace import Workspace

WRONG_FIRST_CODE = "This is not the code of this secret. Check the clock of your device."


def sections(workspace: Workspace) -> list[Section]:
    """The pages of an account; changes to its protection require the password."""
    pages = _Pages(workspace)
    routes = [
        Route("GET", "", "researcher", pages.overview),
        Route("GET POST", "/password", "researcher", pages.password),
        Route("GET POST", "/second-step", "researcher", pages.add_second_step),
        Route("GET POST", "/second-step/remove", "researcher", pages.remove_second_step),
        Route("POST", "/sessions/end", "researcher", pages.end_session),
    ]
    return [Section("account", "/research/account", routes)]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log
        self._passwords = workspace.passwords
        self._signed_in = workspace.signed_in
        self._proves_password = partial(proves_password, workspace)

    def overview(self) -> str:
        """Everything about the account."""
        known = self._signed_in.known()
        return render_template(
            "research/account.html",
            sessions=self._store.sessions(known.key),
            own=self._signed_in.token_hash(),
            form=SessionForm(formdata=None),
            factor=self._store.second_factor(known.key),
            codes_left=self._store.recovery_codes_left(known.key),
        )

    def password(self) -> Any:
        """Change the password, which ends all other sessions and all tokens of programs."""
        form = PasswordForm()
        if not form.validate_on_submit() or not self._proves_password(form):
            page = render_template("research/password.html", form=form)
            return page, 422 if form.is_submitted() else 200
        known = self._signed_in.known()
        self._store.set_password(known.email, self._passwords.hash(form.new.data))
        self._signed_in.open(known)
        self._log.write("changed the password")
        flash("Your password was changed; all other sessions and all tokens were ended.")
        return redirect(url_for("account.overview"))

    def add_second_step(self) -> Any:
        """Show a secret until its first code comes back, then the recovery codes, once."""
        known = self._signed_in.known()
        form = AddSecondStepForm()
        made = second_factor.new_secret(known.email, session.get("new_secret", ""))
        session["new_secret"] = made.secret
        if not form.validate_on_submit() or not self._proves_password(form):
            return _second_step_page(form, made)
        step = second_factor.step_of(made.secret, form.code.data, time.time())
        if step is None:
            form.code.errors = [WRONG_FIRST_CODE]
            return _second_step_page(form, made)
        codes = second_factor.new_recovery_codes()
        hashes = [second_factor.recovery_hash(code) for code in codes]
        self._store.set_second_factor(known.key, made.secret, hashes)
        self._store.use_step(known.key, step)
        session.pop("new_secret")
        self._log.write("added a second step")
        return render_template("research/recovery_codes.html", codes=codes)

    def remove_second_step(self) -> Any:
        """Let the password alone sign in again."""
        form = ConfirmForm()
        if not form.validate_on_submit() or not self._proves_password(form):
            page = render_template("research/remove_second_step.html", form=form)
            return page, 422 if form.is_submitted() else 200
        self._store.set_second_factor(self._signed_in.known().key, "", [])
        self._log.write("removed the second step")
        flash("From now on your password alone signs you in.")
        return redirect(url_for("account.overview"))

    def end_session(self) -> Response:
        """End another session of the same person."""
        wanted, own = SessionForm().session.data or "", self._signed_in.token_hash()
        for one in self._store.sessions(self._signed_in.known().key):
            if one.token_hash.hex() == wanted and one.token_hash != own:
                self._store.end_session(one.token_hash)
                self._log.write("ended a session")
                flash("The session was ended.")
        return redirect(url_for("account.overview"))


def _second_step_page(form: AddSecondStepForm, made: second_factor.NewSecret) -> Any:
    page = render_template("research/add_second_step.html", form=form, made=made)
    return page, 422 if form.is_submitted() else 200
