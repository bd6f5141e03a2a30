"""The handbook's pages: open to everybody, and linked from the pages that they explain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, render_template, request

from survey import handbook
from survey.research.access import Pages, Route, Section, Workspace

HELP: Mapping[str, tuple[str, ...]] = {
    "research": ("tutorial/first-survey",),
    "research.publish": ("reference/definition",),
    "drafts": ("how-to/sensitive-questions", "how-to/epsilon-and-sample-size"),
    "drafts.design": ("how-to/epsilon-and-sample-size",),
    "drafts.plan": ("how-to/epsilon-and-sample-size",),
    "drafts.languages": ("how-to/languages",),
    "drafts.translation": ("how-to/languages",),
    "drafts.publish": ("how-to/ethics", "how-to/data-protection"),
    "collection": ("how-to/invitations", "how-to/shared-devices"),
    "share": ("how-to/publish-results", "how-to/invitations"),
    "readers": ("explanation/randomized-answers",),
    "results": ("how-to/read-results", "explanation/randomized-answers"),
    "microdata": ("reference/files",),
    "reports": ("how-to/read-results",),
    "tokens": ("reference/api",),
    "team": ("reference/workspace",),
    "account": ("reference/workspace",),
    "people": ("reference/workspace",),
}
"""Names of the pages that explain an endpoint; without an entry, those of its blueprint."""


def sections(workspace: Workspace) -> list[Section]:
    """Declare the handbook, with the function by which other pages link to it."""
    views = _HandbookPages(workspace)
    routes = [
        Route("GET", "", "anybody", views.contents),
        Route("GET", "/<path:name>", "anybody", views.page),
        Route("GET", "/pictures/<name>", "anybody", views.picture),
    ]
    section = Section("handbook", handbook.ADDRESS, routes)
    section.app_context_processor(lambda: {"help_pages": help_pages})
    return [section]


def help_pages(endpoint: str) -> list[handbook.Page]:
    """Return the handbook's pages that explain an endpoint."""
    names = HELP.get(endpoint) or HELP.get(endpoint.partition(".")[0], ())
    return [handbook.page(name) for name in names]


class _HandbookPages(Pages):
    def contents(self) -> str:
        """Show the table of contents, or what a search finds."""
        query = request.args.get("q", "").strip()[: handbook.MAX_QUERY]
        return render_template(
            "research/handbook.html",
            parts=handbook.parts(),
            query=query,
            matches=handbook.search(query),
        )

    def page(self, name: str) -> str:
        """Show a page beside the table of contents."""
        return render_template(
            "research/handbook_page.html", page=handbook.page(name), parts=handbook.parts()
        )

    def picture(self, name: str) -> Any:
        """Return a picture of a page."""
        content, media_type = handbook.picture(name)
        return Response(content, content_type=media_type)
