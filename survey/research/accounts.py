"""The pages on which researchers sign in, join a team, and manage their account and API tokens."""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import Any

from flask import flash, make_response, redirect, render_template, request, session, url_for
from flask_wtf import FlaskForm
from werkzeug.wrappers import Response
from wtforms import Field

from survey.errors import ForbiddenError, NotFoundError
from survey.research import forms, two_factor
from survey.research.access import Pages, Route, Section, Workspace
from survey.research.credentials import NO_PASSWORD
from survey.research.sign_in_limits import Visitor
from survey.research.surveys import moment
from survey.security import hash_of
from survey.store import SCOPES, ApiToken, Researcher

logger = logging.getLogger(__name__)

FAILED_BEFORE = (
    "Failed attempts since your last sign-in: {attempts}. If this was not you, change your "
    "password and switch on two-factor authentication."
)
NO_ACCOUNT = (
    "The address {email} has no account on this server. Ask an administrator for an invitation."
)
WRONG = "The email address or the password is wrong."
WRONG_CODE = "This code is wrong or was already used. Enter the code that your app shows now."
UNREADABLE_APP = (
    "The server cannot read the secret of your authenticator app and accepts none of its codes. "
    "Enter one of your recovery codes. If you have none, ask the operator of the server to run "
    "survey researcher reset {email}"
)
WRONG_FIRST_CODE = "This code does not match the secret. Check the clock of your device."
REQUIRED_BY_SERVER = (
    "This server requires two-factor authentication. To use another app, set it up again."
)
SIGN_IN_AGAIN = (
    "You have no password, so this needs a recent sign-in. Sign out, sign in again, and then send "
    "this form within 10 minutes."
)
RECENT_SECONDS = 10 * 60
WRONG_PASSWORD = "This password is wrong."  # noqa: S105  a message
EXISTING_ACCOUNT = "This address already has an account: sign in, then open the link again."

TOKEN_PREFIX = "survey_"  # noqa: S105  not secret
"""Start of our tokens, by which scanners recognize them in published code."""

MAX_TOKENS = 50
TOO_MANY = f"You have {MAX_TOKENS} tokens, which is the maximum. Revoke one that you do not use."
NAME_TAKEN = "You already have a token with this name. Choose another name, or revoke that one."


def sections(workspace: Workspace) -> list[Section]:
    """Return the pages of accounts; changes to their protection require the current password."""
    entry, account = _SignInPages(workspace), _AccountPages(workspace)
    tokens = _TokenPages(workspace)
    accounts = Section(
        "accounts",
        "/research",
        [
            Route("GET POST", "/sign-in", "anybody", entry.sign_in),
            Route("GET POST", "/sign-in/code", "anybody", entry.authentication_code),
            Route("GET", "/sign-in/provider", "anybody", entry.provider),
            Route("GET", "/sign-in/provider/return", "anybody", entry.provider_return),
            Route("POST", "/sign-out", "researcher", entry.sign_out),
            Route("GET POST", "/join/<token>", "anybody", entry.join),
        ],
    )
    accounts.app_context_processor(entry.page_head)
    two_factor = "/second-step"
    return [
        accounts,
        Section(
            "account",
            "/research/account",
            [
                Route("GET", "", "researcher", account.overview),
                Route("GET POST", "/password", "researcher", account.password),
                Route("GET POST", two_factor, "researcher", account.add_two_factor),
                Route("GET POST", f"{two_factor}/remove", "researcher", account.remove_two_factor),
                Route("POST", "/sessions/end", "researcher", account.end_session),
            ],
        ),
        Section(
            "tokens",
            "/research/account/programs",
            [
                Route("GET POST", "", "researcher", tokens.overview),
                Route("POST", "/end", "researcher", tokens.revoke),
            ],
        ),
    ]


class _SignInPages(Pages):
    def page_head(self) -> dict[str, Any]:
        """Return the template variables of the page head: the researcher, if signed in."""
        for_researchers = request.path.startswith(("/research", "/handbook"))
        researcher = self._sessions.researcher() if for_researchers else None
        form = forms.SignOutForm(formdata=None) if researcher else None
        return {"researcher": researcher, "sign_out_form": form}

    def sign_in(self) -> Any:
        """Ask for the email address and the password."""
        form = forms.SignInForm()
        if not form.validate_on_submit():
            return self._sign_in_page(form)
        email = form.email.data.strip()
        visitor = self._workspace.browsers.visitor(email)
        if refusal := self._workspace.throttle.refusal(visitor, email, time.time()):
            form.password.errors = [refusal]
            return self._sign_in_page(form, 429)
        researcher = self._sessions.verify(email, form.password.data)
        if researcher is None:
            _record_failure(self._workspace, email)
            form.password.errors = [WRONG]
            return self._sign_in_page(form, 403)
        self._workspace.throttle.succeeded(visitor, email)
        target = _own_page(request.args.get("next", ""))
        return redirect(self._next_step(researcher, target))

    def _sign_in_page(self, form: FlaskForm, status: int = 422) -> tuple[str, int]:
        return _form_page("sign_in", form, status, provider=self._workspace.provider.name)

    def _next_step(self, researcher: Researcher, target: str, way: str = "") -> str:
        """Open a session, or await an authentication code; return the address of the next page."""
        if self._store.second_factor(researcher.key) is not None:
            self._sessions.await_code(researcher)
            return url_for("accounts.authentication_code", next=target)
        self._open(researcher, way)
        return target

    def provider(self) -> Response:
        """Redirect a browser to the OpenID Connect provider."""
        provider = self._workspace.provider
        if not provider.name:
            return redirect(url_for("accounts.sign_in"))
        address, pending = provider.begin(_own_page(request.args.get("next", "")))
        response = redirect(address)
        provider.remember(response, pending)
        return response

    def provider_return(self) -> Any:
        """Sign in the researcher whose address the OpenID Connect provider has verified."""
        provider, visitor = self._workspace.provider, Visitor(request.remote_addr or "")
        if not provider.name:
            return redirect(url_for("accounts.sign_in"))
        pending = provider.pending()
        if refusal := self._workspace.throttle.provider_refusal(visitor, time.time()):
            raise ForbiddenError(refusal)
        email = provider.verified_email(pending)
        researcher = self._researcher_of_provider(email)
        self._workspace.throttle.provider_succeeded(visitor)
        target = self._next_step(researcher, pending.target, f"with {provider.name}")
        # Not a redirect: after one that began at the provider, the browser omits strict cookies.
        page = render_template("research/provider_return.html", target=target)
        response = make_response(page, {"Refresh": f"0; url={target}"})
        provider.remember(response, None)
        return response

    def _researcher_of_provider(self, email: str) -> Researcher:
        """Return the account of a verified address; create it if the settings allow that."""
        researcher = self._store.researcher(email)
        if researcher is not None:
            return researcher
        # The first account becomes the administrator, so the operator creates it.
        if not (self._settings.oidc_create_accounts and self._store.researchers()):
            raise ForbiddenError(NO_ACCOUNT.format(email=email))
        return self._store.add_researcher(email, NO_PASSWORD)

    def authentication_code(self) -> Any:
        """Ask for the authentication code after the right password."""
        researcher = self._sessions.awaiting_code()
        target = _own_page(request.args.get("next", ""))
        if researcher is None:
            return redirect(url_for("accounts.sign_in", next=target))
        form = forms.CodeForm()
        if not form.validate_on_submit():
            return _form_page("authentication_code", form)
        # Without a separate limit, an attacker could guess a six-digit code in a day.
        visitor = self._workspace.browsers.visitor(researcher.email)
        throttle = self._workspace.throttle
        if refusal := throttle.code_refusal(visitor, researcher.email, time.time()):
            form.code.errors = [refusal]
            return _form_page("authentication_code", form, 429)
        if not self._workspace.second_factors.use_code(researcher, form.code.data, time.time()):
            _record_failure(self._workspace, researcher.email)
            form.code.errors = [_code_mistake(self._workspace, researcher)]
            return _form_page("authentication_code", form, 403)
        throttle.code_succeeded(visitor, researcher.email)
        self._open(researcher, "with an authentication code")
        return redirect(target)

    def _open(self, researcher: Researcher, way: str) -> None:
        """Open a session, log the sign-in, and show the failed attempts since the last one."""
        self._sessions.open(researcher)
        failures = self._store.take_failed_sign_ins(researcher.key)
        details = [way] if way else []
        if failures:
            attempts = f"{failures.n:,}, the last at {moment(failures.last)}"
            flash(FAILED_BEFORE.format(attempts=attempts), "caution")
            details.append(f"failed attempts before: {attempts}")
        self._log.write_for(researcher.email, "signed in", detail="; ".join(details))

    def sign_out(self) -> Response:
        """End the session."""
        self._sessions.close()
        return redirect(url_for("accounts.sign_in"))

    def join(self, token: str) -> Any:
        """Accept a colleague's invitation with an existing or a new account."""
        link = self._store.colleague_link(hash_of(token), int(time.time()))
        if link is None:
            raise NotFoundError("this link was used or has expired; ask for a new one")
        researcher = self._sessions.researcher()
        form = forms.JoinForm(has_account=researcher is not None)
        if not form.validate_on_submit():
            return _form_page("join", form, link=link)
        now = int(time.time())
        if researcher is None:
            if (account := self._new_account(form)) is None:
                return _form_page("join", form, link=link)
            researcher = self._store.join_as_new_researcher(hash_of(token), *account, now)
        elif self._store.join(hash_of(token), researcher.key, now) is None:
            researcher = None
        if researcher is None:
            raise NotFoundError("this link was used by somebody else just now; ask for a new one")
        self._sessions.open(researcher)
        self._log.write_for(researcher.email, "joined", link.slug, link.role if link.slug else "")
        return redirect(url_for("research.surveys"))

    def _new_account(self, form: forms.JoinForm) -> tuple[str, str] | None:
        """Return the address and the password's hash; None if the form has a mistake."""
        email = form.email.data.strip()
        if self._store.researcher(email) is not None:
            form.email.errors = [EXISTING_ACCOUNT]
            return None
        if mistake := self._workspace.passwords.mistake(email, form.password.data):
            form.password.errors = [mistake]
            return None
        return email, self._workspace.passwords.hash(form.password.data)


def _form_page(name: str, form: FlaskForm, status: int = 422, **variables: Any) -> tuple[str, int]:
    """Render a page with one form; `status` is that of a form which was sent and rejected."""
    page = render_template(f"research/{name}.html", form=form, **variables)
    return page, status if form.is_submitted() else 200


def _own_page(path: str) -> str:
    """Return the researchers' page to open after signing in, never another site."""
    # Browsers send a query as visible ASCII characters and %XX.
    is_own = re.fullmatch(r"/research/[A-Za-z0-9/._-]*(\?[!-~]*)?", path)
    return path if is_own else url_for("research.surveys")


def _record_failure(workspace: Workspace, email: str) -> None:
    """Count a wrong password or code for the account's owner, and log it without the address."""
    workspace.store.add_failed_sign_in(email, int(time.time()))
    logger.warning("failed sign-in")


def _code_mistake(workspace: Workspace, researcher: Researcher) -> str:
    """Return why a code was not accepted."""
    if workspace.second_factors.is_readable(researcher):
        return WRONG_CODE
    return UNREADABLE_APP.format(email=researcher.email)


def _confirms_code(workspace: Workspace, field: Field) -> bool:
    """Return whether a field has a valid code of the researcher; if not, add the error to it."""
    researcher, now = workspace.sessions.current(), time.time()
    visitor = Visitor(request.remote_addr or "", workspace.sessions.token_hash().hex())
    if refusal := workspace.throttle.code_refusal(visitor, researcher.email, now):
        field.errors = [refusal]
        return False
    if not workspace.second_factors.use_code(researcher, field.data, now):
        _record_failure(workspace, researcher.email)
        field.errors = [_code_mistake(workspace, researcher)]
        return False
    workspace.throttle.code_succeeded(visitor, researcher.email)
    return True


def _confirms_password(workspace: Workspace, form: forms.CurrentPasswordForm) -> bool:
    """Return whether the password in a form is right; if not, add the error to the form.

    An account without a password, which a provider has created, needs a recent sign-in instead.
    """
    researcher, now = workspace.sessions.current(), time.time()
    if researcher.password_hash == NO_PASSWORD:
        started = workspace.sessions.started()
        if now - started <= RECENT_SECONDS:
            return True
        form.submit.errors = [SIGN_IN_AGAIN]
        return False
    email = researcher.email
    # A signed-in browser is known, so that strangers cannot use up its attempts.
    visitor = Visitor(request.remote_addr or "", workspace.sessions.token_hash().hex())
    if refusal := workspace.throttle.refusal(visitor, email, now):
        form.current.errors = [refusal]
        return False
    if workspace.sessions.verify(email, form.current.data) is None:
        _record_failure(workspace, email)
        form.current.errors = [WRONG_PASSWORD]
        return False
    workspace.throttle.succeeded(visitor, email)
    return True


class _ProtectedPages(Pages):
    @property
    def _has_password(self) -> bool:
        return self._sessions.current().password_hash != NO_PASSWORD


class _AccountPages(_ProtectedPages):
    def overview(self) -> str:
        """Show the account: password, two-factor authentication, tokens, sessions."""
        researcher = self._sessions.current()
        return render_template(
            "research/account.html",
            sessions=self._store.sessions(researcher.key),
            current_session=self._sessions.token_hash(),
            form=forms.SessionForm(formdata=None),
            factor=self._store.second_factor(researcher.key),
            n_codes=self._store.n_recovery_codes(researcher.key),
            is_required=self._store.two_factor_required(),
        )

    def password(self) -> Any:
        """Change the password, which ends all other sessions and revokes all API tokens."""
        form = forms.PasswordForm(has_password=self._has_password)
        if not form.validate_on_submit() or not _confirms_password(self._workspace, form):
            return _form_page("password", form)
        researcher = self._sessions.current()
        if mistake := self._workspace.passwords.mistake(researcher.email, form.new.data):
            form.new.errors = [mistake]
            return _form_page("password", form)
        self._store.set_password(researcher.email, self._workspace.passwords.hash(form.new.data))
        self._sessions.open(researcher)
        self._log.write("changed the password")
        flash("Password changed. Your other sessions have ended and your API tokens are revoked.")
        return redirect(url_for("account.overview"))

    def add_two_factor(self) -> Any:
        """Show a secret until its first code is entered, then show the recovery codes once.

        Replacing an app requires a code of the current app, as removing it does.
        """
        researcher = self._sessions.current()
        has_factor = self._store.second_factor(researcher.key) is not None
        form = forms.AddTwoFactorForm(has_password=self._has_password, has_factor=has_factor)
        secret = two_factor.new_secret(researcher.email, session.get("new_secret", ""))
        session["new_secret"] = secret.secret
        shown: dict[str, Any] = {
            "secret": secret,
            "lacks": self._store.lacks_two_factor(researcher.key),
        }
        if not form.validate_on_submit() or not _confirms_password(self._workspace, form):
            return _form_page("add_two_factor", form, **shown)
        step = two_factor.step_of(secret.secret, form.code.data, time.time())
        if step is None:
            form.code.errors = [WRONG_FIRST_CODE]
            return _form_page("add_two_factor", form, **shown)
        if has_factor and not _confirms_code(self._workspace, form.existing_app_code):
            return _form_page("add_two_factor", form, **shown)
        codes = self._workspace.second_factors.set_up(researcher.key, secret.secret, step)
        session.pop("new_secret")
        self._log.write("switched on two-factor authentication")
        return render_template("research/recovery_codes.html", codes=codes)

    def remove_two_factor(self) -> Any:
        """Switch off two-factor authentication, with the password and a code."""
        form = forms.RemoveTwoFactorForm(has_password=self._has_password)
        if self._store.two_factor_required():
            flash(REQUIRED_BY_SERVER, "caution")
            return redirect(url_for("account.overview"))
        if (
            not form.validate_on_submit()
            or not _confirms_password(self._workspace, form)
            or not _confirms_code(self._workspace, form.existing_app_code)
        ):
            return _form_page("remove_two_factor", form)
        self._store.set_second_factor(self._sessions.current().key, "", [])
        self._log.write("switched off two-factor authentication")
        flash("Two-factor authentication is off. You sign in with your password alone.")
        return redirect(url_for("account.overview"))

    def end_session(self) -> Response:
        """End another session of this researcher."""
        session_id, current = forms.SessionForm().session.data or "", self._sessions.token_hash()
        for open_session in self._store.sessions(self._sessions.current().key):
            token_hash = open_session.token_hash
            if token_hash.hex() == session_id and token_hash != current:
                self._store.end_session(token_hash)
                self._log.write("ended a session")
                flash("The session has been ended.")
        return redirect(url_for("account.overview"))


class _TokenPages(_ProtectedPages):
    def overview(self) -> Any:
        """List the API tokens, and create one."""
        form = forms.TokenForm(has_password=self._has_password)
        if not form.is_submitted():
            return self._page(form)
        # The password comes last, so that other mistakes do not count as an attempt to guess it.
        valid = form.validate() and self._check_name(form)
        if not (valid and _confirms_password(self._workspace, form)):
            return self._page(form), 422
        return self._page(
            forms.TokenForm(has_password=self._has_password, formdata=None), self._create(form)
        )

    def revoke(self) -> Response:
        """Revoke an API token."""
        token_id = forms.RevokeTokenForm().token.data or ""
        for token in self._tokens():
            if token.token_hash.hex() == token_id:
                self._store.revoke_api_token(token.researcher, token.token_hash)
                self._log.write("revoked an API token", detail=token.name)
                flash(f"The token {token.name} has been revoked.")
        return redirect(url_for("tokens.overview"))

    def _tokens(self) -> list[ApiToken]:
        return self._store.api_tokens(self._sessions.current().key)

    def _check_name(self, form: forms.TokenForm) -> bool:
        """Return whether a new token may have this name; a form sent twice creates one token."""
        names = {token.name for token in self._tokens()}
        if form.name.data in names:
            form.name.errors = [NAME_TAKEN]
        elif len(names) >= MAX_TOKENS:
            form.name.errors = [TOO_MANY]
        return not form.name.errors

    def _create(self, form: forms.TokenForm) -> str:
        """Create a token, of which only the hash is stored."""
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        researcher, now = self._sessions.current().key, int(time.time())
        name = form.name.data
        scopes = " ".join(scope for scope in SCOPES if scope in form.scopes.data)
        self._store.add_api_token(ApiToken(hash_of(token), researcher, name, scopes, now))
        self._log.write("created an API token", detail=f"{name}: {scopes}")
        return token

    def _page(self, form: forms.TokenForm, token: str = "") -> str:
        return render_template(
            "research/tokens.html",
            form=form,
            revoke_form=forms.RevokeTokenForm(formdata=None),
            tokens=self._tokens(),
            token=token,
            scopes=SCOPES,
            server=self._settings.researchers_url,
        )
