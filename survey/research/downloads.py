"""Responses that a browser saves as a file."""

from __future__ import annotations

from flask import Response

from survey.store import PublishedSurvey

CSV = "text/csv; charset=utf-8"


def file_name(survey: PublishedSurvey, subject: str) -> str:
    """Return the name of a file about a version; files of test runs begin with TEST."""
    test = "TEST-" if survey.is_test_run else ""
    return f"{test}{survey.slug}-{survey.version}-{subject}"


def download(content: bytes | str, content_type: str, name: str) -> Response:
    """Return a file; its name must consist of slugs, numbers and identifiers."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, content_type=content_type, headers=headers)
