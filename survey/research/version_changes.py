"""The page that lists the changes between two versions of a survey."""

from __future__ import annotations

from flask import render_template, request

from survey.errors import NotFoundError
from survey.questionnaire.definition import Definition
from survey.research.access import Pages, Route, Section, Workspace
from survey.research.forms import whole_number
from survey.results.version_changes import compare_versions
from survey.store import Draft, PublishedSurvey, find_survey


def sections(workspace: Workspace) -> list[Section]:
    """Declare the page of changes."""
    pages = _VersionPages(workspace)
    routes = [Route("GET", "/changes", "viewer", pages.changes)]
    return [Section("versions", "/research/surveys/<slug>", routes)]


class _VersionPages(Pages):
    def changes(self, slug: str) -> str:
        """Show the differences between two versions, by default the two newest ones."""
        versions = self._store.versions(slug)
        newest = find_survey(self._store, slug)
        if len(versions) < 2:
            return changes_page(newest, None, None)
        after = whole_number(request.args.get("after", "")) or newest.version
        before = whole_number(request.args.get("before", "")) or max(after - 1, 1)
        by_number = {survey.version: survey for survey in versions}
        for number in (before, after):
            if number not in by_number:
                numbers = ", ".join(map(str, sorted(by_number)))
                raise NotFoundError(f"{slug} has no version {number}: choose one of {numbers}")
        old, new = (by_number[number] for number in sorted((before, after)))
        return changes_page(new, old.definition, new.definition, versions)


def changes_page(
    survey: PublishedSurvey | Draft,
    old: Definition | None,
    new: Definition | None,
    versions: list[PublishedSurvey] | None = None,
) -> str:
    """Return the page; without two definitions, it explains why there is nothing to compare."""
    return render_template(
        "research/version_changes.html",
        survey=survey,
        old=old,
        new=new,
        changes=compare_versions(old, new) if old and new else None,
        versions=versions or [],
    )
