"""The builder: drafts of surveys, their sheets, their try-outs, and how they are published."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, url_for

from survey.errors import NotFoundError
from survey.research.drafts import kept, outline, publishing, sheets, trying
from survey.research.workspace import Workspace

__all__ = ["blueprints", "kept"]

SCRIPT = Path(__file__).resolve().parents[2] / "static" / "builder.js"

DRAFT_PAGES = (
    ("drafts.outline", "Questions", "viewer"),
    ("drafts.texts", "Texts and settings", "editor"),
    ("drafts.plan", "Plan", "editor"),
    ("drafts.languages", "Languages", "editor"),
    ("drafts.trial", "Try it", "editor"),
    ("team.members", "Team", "owner"),
    ("drafts.publish", "Publish", "editor"),
)
"""The pages of one draft, and the least role that opens each (as in `access.POLICY`)."""


def blueprints(workspace: Workspace) -> list[Blueprint]:
    """The builder's routes."""
    routes = Blueprint("drafts", __name__, url_prefix="/research/drafts")
    script = SCRIPT.read_bytes()
    digest = hashlib.sha256(script).hexdigest()

    @routes.app_context_processor
    def words() -> dict[str, Any]:
        return {
            "builder_js": url_for("drafts.script", version=digest),
            "draft_pages": DRAFT_PAGES,
        }

    @routes.get("/assets/<version>/builder.js", endpoint="script")
    def script_file(version: str) -> Response:
        if version != digest:
            raise NotFoundError("this file belongs to another version of the page")
        return Response(script, content_type="text/javascript; charset=utf-8")

    for part in (outline, sheets, trying, publishing):
        part.add_rules(routes, workspace)
    return [routes]
