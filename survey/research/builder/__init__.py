"""The builder: drafts of surveys, their sheets, test runs and publication."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from flask import Response, url_for

from survey.errors import NotFoundError
from survey.research.access import Route, Section, Workspace
from survey.research.builder import draft_editor, outline, publication, test_run

SCRIPT = Path(__file__).resolve().parents[2] / "static" / "builder.js"

DRAFT_PAGES = (
    ("drafts.outline", "Questions"),
    ("drafts.texts", "Texts and settings"),
    ("drafts.plan", "Plan"),
    ("drafts.languages", "Languages"),
    ("drafts.test_run", "Test run"),
    ("team.members", "Team"),
    ("drafts.publish", "Publish"),
)
"""The endpoints and link texts of the pages of a draft, in the order of its navigation."""


def sections(workspace: Workspace) -> list[Section]:
    """The builder's pages and the template variables they use."""
    script = SCRIPT.read_bytes()
    digest = hashlib.sha256(script).hexdigest()

    def script_file(version: str) -> Response:
        if version != digest:
            raise NotFoundError("this file belongs to another version of the page")
        return Response(script, content_type="text/javascript; charset=utf-8")

    address = "/assets/<version>/builder.js"
    routes = [Route("GET", address, "anybody", script_file, "script")]
    for part in (outline, draft_editor, test_run, publication):
        routes += part.routes(workspace)
    section = Section("drafts", "/research/drafts", routes)

    @section.app_context_processor
    def variables() -> dict[str, Any]:
        return {"builder_js": url_for("drafts.script", version=digest), "draft_pages": DRAFT_PAGES}

    return [section]
