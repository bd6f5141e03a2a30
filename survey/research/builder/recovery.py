"""Return a form's fields to a researcher whose session ended before the form was sent.

The server stores nothing of it. A request from another site gets nothing back: a researcher could
mistake the fields for their own and send them on.
"""

from __future__ import annotations

from typing import Any

from flask import Flask, Response, jsonify, render_template, request
from flask_wtf import FlaskForm
from flask_wtf.csrf import CSRFError

from survey.errors import CrossSiteError
from survey.research.workspace import Workspace
from survey.security import check_same_origin

OWN_FIELDS = ("csrf_token", "revision", "do", "agreed", "submit", "made")
LONG_FORMS = ("collection.invite", "collection.schedule")
"""Forms outside the builder that take a while to fill in."""

SIGNED_OUT = "you are signed out. Press Save to keep your text."


def init_app(app: Flask, workspace: Workspace) -> None:
    """Return forms whose sender is no longer signed in."""

    def return_form(reason: str, status: int) -> Any:
        endpoint = request.endpoint or ""
        has_text = endpoint.startswith("drafts.") or endpoint in LONG_FORMS
        if request.method != "POST" or not has_text:
            return None
        if not _is_same_origin(workspace.settings.public_url) or (reason and not _typed_fields()):
            return None
        signed_in = workspace.sessions.researcher() is not None
        if request.form.get("do") in ("autosave", "look"):
            return jsonify({"not_saved": reason or SIGNED_OUT}), status
        page = render_template(
            "research/builder/recovery.html",
            signed_in=signed_in,
            reason=reason,
            form=FlaskForm(formdata=None),
            fields=[
                (name, value)
                for name, value in request.form.items(multi=True)
                if name != "csrf_token"
            ],
            written=_typed_fields(),
            makes_links=request.endpoint == "collection.invite",
        )
        return Response(page, status)

    def handle_csrf_error(error: CSRFError) -> Any:
        return (
            return_form("", 409 if workspace.sessions.researcher() else 401) or error.get_response()
        )

    app.register_error_handler(CSRFError, handle_csrf_error)
    workspace.gate.return_form = return_form


def _typed_fields() -> list[tuple[str, str]]:
    """Return the fields that a researcher filled in."""
    fields = request.form.items(multi=True)
    return [(name, value) for name, value in fields if name not in OWN_FIELDS and value.strip()]


def _is_same_origin(public_url: str) -> bool:
    # The Referrer-Policy makes browsers send the Origin "null" with forms, but also this header.
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
