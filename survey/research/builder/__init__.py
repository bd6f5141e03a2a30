"""The builder: drafts of surveys, their sheets, test runs and publication."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from survey.research.access import JAVASCRIPT, Route, Section, Workspace, static_file
from survey.research.builder import (
    bank,
    comments,
    downloads,
    draft_editor,
    outline,
    pictures,
    preview,
    publication,
)

STATIC = Path(__file__).resolve().parents[2] / "static"

DRAFT_PAGES = (
    ("drafts.outline", "Questions"),
    ("drafts.preview", "Preview"),
    ("drafts.texts", "Texts and settings"),
    ("drafts.plan", "Plan"),
    ("drafts.languages", "Languages"),
    ("drafts.comments", "Comments"),
    ("drafts.test_run", "Test run"),
    ("team.members", "Team"),
    ("drafts.publish", "Publish"),
)
"""The endpoints and link texts of the pages of a draft, in the order of its navigation."""

SHORTCUTS = {
    "J": "Next question",
    "K": "Previous question",
    "A": "Add a question",
    "C": "Copy the question",
    "U": "Move the question up",
    "D": "Move the question down",
    "S": "Save",
    "O": "Open the list of questions",
    "P": "Preview",
    "Z": "Undo the last change",
    "?": "Show this list",
}
"""The keys of the builder and their effects; a button or link has its key in `data-key`."""


def sections(workspace: Workspace) -> list[Section]:
    """The builder's pages and the template variables they use."""
    digest, script = static_file(STATIC / "builder.js", JAVASCRIPT)
    preview_digest, preview_script = static_file(STATIC / "preview.js", JAVASCRIPT)
    outline_digest, outline_script = static_file(STATIC / "outline.js", JAVASCRIPT)
    shortcuts_digest, shortcuts_script = static_file(STATIC / "shortcuts.js", JAVASCRIPT)
    routes = [
        Route("GET", "/assets/<version>/builder.js", "anybody", script, "script"),
        Route("GET", "/assets/<version>/preview.js", "anybody", preview_script, "preview_script"),
        Route("GET", "/assets/<version>/outline.js", "anybody", outline_script, "outline_script"),
        Route(
            "GET", "/assets/<version>/shortcuts.js", "anybody", shortcuts_script, "shortcuts_script"
        ),
    ]
    routes += preview.routes(workspace, preview_digest)
    for part in (outline, draft_editor, pictures, bank, comments, downloads, publication):
        routes += part.routes(workspace)
    section = Section("drafts", "/research/drafts", routes)

    @section.app_context_processor
    def variables() -> dict[str, Any]:
        return {
            "builder_hash": digest,
            "outline_hash": outline_digest,
            "shortcuts_hash": shortcuts_digest,
            "builder_shortcuts": SHORTCUTS,
            "draft_pages": DRAFT_PAGES,
            "draft_keys": {"drafts.outline": "o", "drafts.preview": "p"},
        }

    return [section, downloads.version_section(workspace)]
