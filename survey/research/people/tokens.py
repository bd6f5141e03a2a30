"""Tokens by which somebody's programs read for them: made with the password, shown once, ended."""

from __future__ import annotations

import secrets
import time
from typing import Any

from flask import flash, redirect, render_template, url_for
from werkzeug.wrappers import Response

from survey.research.access import Route, Section
from survey.research.forms import EndTokenForm, TokenForm
from survey.research.people.proof import proves_password
from survey.research.workspace import Workspace
from survey.security import hash_of
from survey.store import SCOPES, ApiToken

PREFIX = "survey_"
"""How our tokens begin, for whoever searches code that was made public for them."""

MOST_TOKENS = 50
TOO_MANY = f"You have {MOST_TOKENS} tokens. End one that is used no more."
TAKEN = "You have a token of this name already. Take another name, or end that one first."


def sections(workspace: Workspace) -> list[Section]:
    """The pages of a researcher's API tokens."""
    pages = _Pages(workspace)
    routes = [
        Route("GET POST", "", "researcher", pages.overview),
        Route("POST", "/end", "researcher", pages.end),
    ]
    return [Section("tokens", "/research/account/programs", routes)]


class _Pages:
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
        return self._store.api_tokens(self._workspace.signed_in.known().key)

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
        token = PREFIX + secrets.token_urlsafe(32)
        researcher, now = self._workspace.signed_in.known().key, int(time.time())
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
