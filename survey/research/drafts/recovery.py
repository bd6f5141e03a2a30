"""What somebody wrote is kept when their session ended meanwhile: it comes back to them.

Nothing of it stays on the server. Another site's page gets nothing back: what it sent could be
sent on by somebody who takes it for their own.
"""

from __future__ import annotations

from typing import Any

from flask import Flask, Response, jsonify, render_template, request
from flask_wtf import FlaskForm
from flask_wtf.csrf import CSRFError

from survey.errors import CrossSiteError
from survey.research.workspace import Workspace
from survey.security import check_same_origin

OURS = ("csrf_token", "revision", "do", "agreed", "submit", "made")
TYPED_INTO = ("collection.invite", "collection.schedule")
"""Forms outside the builder whose fields take a while to fill in."""

SIGNED_OUT = "you are signed out. Press Save; what you wrote is kept."


def init_app(app: Flask, workspace: Workspace) -> None:
    """Keep what was typed by somebody who is not signed in any more."""

    def kept(reason: str, status: int) -> Any:
        if request.method != "POST" or not _is_written(request.endpoint or ""):
            return None
        if not _is_same_origin(workspace.settings.public_url) or (reason and not _written()):
            return None
        signed_in = workspace.sessions.researcher() is not None
        if request.form.get("do") in ("autosave", "look"):
            return jsonify({"not_saved": reason or SIGNED_OUT}), status
        page = render_template(
            "research/drafts/recovery.html",
            signed_in=signed_in,
            reason=reason,
            form=FlaskForm(formdata=None),
            fields=[
                (name, value)
                for name, value in request.form.items(multi=True)
                if name != "csrf_token"
            ],
            written=_written(),
            makes_links=request.endpoint == "collection.invite",
        )
        return Response(page, status)

    def refused(error: CSRFError) -> Any:
        return kept("", 409 if workspace.sessions.researcher() else 401) or error.get_response()

    app.register_error_handler(CSRFError, refused)
    workspace.gate.return_form = kept


def _is_written(endpoint: str) -> bool:
    return endpoint.startswith("drafts.") or endpoint in TYPED_INTO


def _written() -> list[tuple[str, str]]:
    """What somebody wrote, beside what their page sends by itself."""
    sent = request.form.items(multi=True)
    return [(name, value) for name, value in sent if name not in OURS and value.strip()]


def _is_same_origin(public_url: str) -> bool:
    # Our own Referrer-Policy makes browsers send the Origin "null" with forms; they say this too.
    if site := request.headers.get("Sec-Fetch-Site"):
        return site == "same-origin"
    try:
        check_same_origin(
            None,
            request.headers.get("Origin"),
            request.host,
            public_url,
        )
    except CrossSiteError:
        return False
    return True
