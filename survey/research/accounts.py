"""The pages to sign in and out, to join a team, and of one's own account and API tokens."""

from __future__ import annotations

import re
import secrets
import time
from functools import partial
from typing import Any

from flask import flash, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from survey.errors import NotFoundError
from survey.research import credentials
from survey.research.access import Route, Section
from survey.research.credentials import is_right
from survey.research.forms import (
    AddSecondStepForm,
    CodeForm,
    ConfirmForm,
    CurrentPasswordForm,
    EndTokenForm,
    JoinForm,
    PasswordForm,
    SessionForm,
    SignInForm,
    SignOutForm,
    TokenForm,
)
from survey.research.sessions import THROTTLED
from survey.research.workspace import Workspace
from survey.security import hash_of
from survey.store import SCOPES, ApiToken, ColleagueLink, Researcher

WRONG = "This email address and password do not belong together."
WRONG_CODE = "This code is not right, or was used before. Take the one your app shows now."
KNOWN_ALREADY = "This address can sign in already: do so, then open the link."


def sections(workspace: Workspace) -> list[Section]:
    """The pages to sign in, and of an account; changes to its protection require the password."""
    entry, account, tokens = (
        _SignInPages(workspace),
        _AccountPages(workspace),
        _TokenPages(workspace),
    )
    accounts = Section(
        "accounts",
        "/research",
        [
            Route("GET POST", "/sign-in", "anybody", entry.sign_in),
            Route("GET POST", "/sign-in/code", "anybody", entry.second_step),
            Route("POST", "/sign-out", "researcher", entry.sign_out),
            Route("GET POST", "/join/<token>", "anybody", entry.join),
        ],
    )
    accounts.app_context_processor(entry.researcher)
    return [
        accounts,
        Section(
            "account",
            "/research/account",
            [
                Route("GET", "", "researcher", account.overview),
                Route("GET POST", "/password", "researcher", account.password),
                Route("GET POST", "/second-step", "researcher", account.add_second_step),
                Route("GET POST", "/second-step/remove", "researcher", account.remove_second_step),
                Route("POST", "/sessions/end", "researcher", account.end_session),
            ],
        ),
        Section(
            "tokens",
            "/research/account/programs",
            [
                Route("GET POST", "", "researcher", tokens.overview),
                Route("POST", "/end", "researcher", tokens.end),
            ],
        ),
    ]


class _SignInPages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log
        self._passwords, self._throttle = workspace.passwords, workspace.throttle
        self._sessions = workspace.sessions

    def researcher(self) -> dict[str, Any]:
        """Who reads a page, for its head."""
        known = self._sessions.researcher() if request.path.startswith("/research") else None
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
        found = self._sessions.verified(email, form.password.data)
        if found is None:
            form.password.errors = [WRONG]
            return render_template("research/sign_in.html", form=form), 403
        self._throttle.succeeded(address, email)
        return self._after_password(found)

    def _after_password(self, found: Researcher) -> Response:
        wanted = _own_page(request.args.get("next", ""))
        if self._store.second_factor(found.key) is not None:
            self._sessions.go_half_way(found)
            return redirect(url_for("accounts.second_step", next=wanted))
        self._sessions.open(found)
        self._log.write_of(found.email, "signed in")
        return redirect(wanted)

    def second_step(self) -> Any:
        """The code of whoever has given the right password."""
        found = self._sessions.half_way()
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
        self._sessions.open(found)
        self._log.write_of(found.email, "signed in", detail="with a second step")
        return redirect(_own_page(request.args.get("next", "")))

    def sign_out(self) -> Response:
        """End the session."""
        self._sessions.close()
        return redirect(url_for("accounts.sign_in"))

    def join(self, token: str) -> Any:
        """A colleague's link: into an account that is there, or into a new one."""
        link = self._store.colleague_link(hash_of(token), int(time.time()))
        if link is None:
            raise NotFoundError("this link was used, or is older than a week; ask for another")
        known = self._sessions.researcher()
        form = JoinForm(known=known is not None)
        if not form.validate_on_submit():
            return _join_page(form, link), 422 if form.errors else 200
        known = known or self._newcomer(form)
        if known is None:
            return _join_page(form, link), 422
        if self._store.join(hash_of(token), known.key, int(time.time())) is None:
            raise NotFoundError("this link was used in this moment; ask for another")
        self._sessions.open(known)
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


WRONG_PASSWORD = "This is not your password."  # noqa: S105  what a page says


def proves_password(workspace: Workspace, form: CurrentPasswordForm) -> bool:
    """Whether the password in a form is right; its errors say so when it is not."""
    address, email = request.remote_addr or "", workspace.sessions.known().email
    if not workspace.throttle.admits(address, email, time.time()):
        form.current.errors = [THROTTLED]
        return False
    if workspace.sessions.verified(email, form.current.data) is None:
        form.current.errors = [WRONG_PASSWORD]
        return False
    workspace.throttle.succeeded(address, email)
    return True


WRONG_FIRST_CODE = "This is not the code of this secret. Check the clock of your device."


class _AccountPages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log
        self._passwords = workspace.passwords
        self._sessions = workspace.sessions
        self._proves_password = partial(proves_password, workspace)

    def overview(self) -> str:
        """Everything about the account."""
        known = self._sessions.known()
        return render_template(
            "research/account.html",
            sessions=self._store.sessions(known.key),
            own=self._sessions.token_hash(),
            form=SessionForm(formdata=None),
            factor=self._store.second_factor(known.key),
            codes_left=self._store.n_recovery_codes(known.key),
        )

    def password(self) -> Any:
        """Change the password, which ends all other sessions and all tokens of programs."""
        form = PasswordForm()
        if not form.validate_on_submit() or not self._proves_password(form):
            page = render_template("research/password.html", form=form)
            return page, 422 if form.is_submitted() else 200
        known = self._sessions.known()
        self._store.set_password(known.email, self._passwords.hash(form.new.data))
        self._sessions.open(known)
        self._log.write("changed the password")
        flash("Your password was changed; all other sessions and all tokens were ended.")
        return redirect(url_for("account.overview"))

    def add_second_step(self) -> Any:
        """Show a secret until its first code comes back, then the recovery codes, once."""
        known = self._sessions.known()
        form = AddSecondStepForm()
        made = credentials.new_secret(known.email, session.get("new_secret", ""))
        session["new_secret"] = made.secret
        if not form.validate_on_submit() or not self._proves_password(form):
            return _second_step_page(form, made)
        step = credentials.step_of(made.secret, form.code.data, time.time())
        if step is None:
            form.code.errors = [WRONG_FIRST_CODE]
            return _second_step_page(form, made)
        codes = credentials.new_recovery_codes()
        hashes = [credentials.recovery_hash(code) for code in codes]
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
        self._store.set_second_factor(self._sessions.known().key, "", [])
        self._log.write("removed the second step")
        flash("From now on your password alone signs you in.")
        return redirect(url_for("account.overview"))

    def end_session(self) -> Response:
        """End another session of the same person."""
        wanted, own = SessionForm().session.data or "", self._sessions.token_hash()
        for one in self._store.sessions(self._sessions.known().key):
            if one.token_hash.hex() == wanted and one.token_hash != own:
                self._store.end_session(one.token_hash)
                self._log.write("ended a session")
                flash("The session was ended.")
        return redirect(url_for("account.overview"))


def _second_step_page(form: AddSecondStepForm, made: credentials.NewSecret) -> Any:
    page = render_template("research/add_second_step.html", form=form, made=made)
    return page, 422 if form.is_submitted() else 200


TOKEN_PREFIX = "survey_"  # noqa: S105  the part that is no secret
"""How our tokens begin, for whoever searches code that was made public for them."""

MOST_TOKENS = 50
TOO_MANY = f"You have {MOST_TOKENS} tokens. End one that is used no more."
TAKEN = "You have a token of this name already. Take another name, or end that one first."


class _TokenPages:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._store, self._log = workspace.store, workspace.log

    def overview(self) -> Any:
        """The tokens there are, and a form for another one."""
        form = TokenForm()
        if not form.is_submitted():
            return self._page(form)
        # The password last: a form that is wrong anyhow counts as no try to guess it.
        if not (form.validate() and self._is_new(form) and proves_password(self._workspace, form)):
            return self._page(form), 422
        return self._page(TokenForm(formdata=None), self._made(form))

    def end(self) -> Response:
        """Let a program in no more."""
        wanted = EndTokenForm().token.data or ""
        for one in self._tokens():
            if one.token_hash.hex() == wanted:
                self._store.end_api_token(one.researcher, one.token_hash)
                self._log.write("ended a token", detail=one.name)
                flash(f"The token of {one.name} is good no more.")
        return redirect(url_for("tokens.overview"))

    def _tokens(self) -> list[ApiToken]:
        return self._store.api_tokens(self._workspace.sessions.known().key)

    def _is_new(self, form: TokenForm) -> bool:
        """Whether another token may have this name: sent twice, a form makes one."""
        there = {one.name for one in self._tokens()}
        if form.name.data in there:
            form.name.errors = [TAKEN]
        elif len(there) >= MOST_TOKENS:
            form.name.errors = [TOO_MANY]
        return not form.name.errors

    def _made(self, form: TokenForm) -> str:
        """A new token; only its hash is kept."""
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        researcher, now = self._workspace.sessions.known().key, int(time.time())
        name = form.name.data
        scopes = " ".join(scope for scope in SCOPES if scope in form.scopes.data)
        self._store.add_api_token(ApiToken(hash_of(token), researcher, name, scopes, now))
        self._log.write("made a token", detail=f"{name}: {scopes}")
        return token

    def _page(self, form: TokenForm, token: str = "") -> str:
        return render_template(
            "research/tokens.html",
            form=form,
            end_form=EndTokenForm(formdata=None),
            tokens=self._tokens(),
            token=token,
            scopes=SCOPES,
            server=self._workspace.settings.public_url.rstrip("/"),
        )
