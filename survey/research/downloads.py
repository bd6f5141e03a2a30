"""Answers that a browser keeps as a file."""

from __future__ import annotations

from flask import Response

CSV = "text/csv; charset=utf-8"


def download(content: bytes | str, content_type: str, name: str) -> Response:
    """A file of this name, which consists of slugs, numbers and ids alone."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, content_type=content_type, headers=headers)
