"""Answers that a browser keeps as a file."""

from __future__ import annotations

from flask import Response

from survey.store import PublishedSurvey

CSV = "text/csv; charset=utf-8"


def file_name(survey: PublishedSurvey, about: str) -> str:
    """What a file of a version is called; on its own it must say when it is of a try-out."""
    test = "TEST-" if survey.is_test_run else ""
    return f"{test}{survey.slug}-{survey.version}-{about}"


def download(content: bytes | str, content_type: str, name: str) -> Response:
    """A file of this name, which consists of slugs, numbers and ids alone."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, content_type=content_type, headers=headers)
