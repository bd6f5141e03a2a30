"""The builder: drafts of surveys, their sheets, test runs and publication."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from survey.research.access import Route, Section, Workspace, static_file
from survey.research.builder import draft_editor, outline, publication

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
    digest, script = static_file(SCRIPT, "text/javascript; charset=utf-8")
    address = "/assets/<version>/builder.js"
    routes = [Route("GET", address, "anybody", script, "script")]
    for part in (outline, draft_editor, publication):
        routes += part.routes(workspace)
    section = Section("drafts", "/research/drafts", routes)

    @section.app_context_processor
    def variables() -> dict[str, Any]:
        return {"builder_hash": digest, "draft_pages": DRAFT_PAGES}

    return [section]
