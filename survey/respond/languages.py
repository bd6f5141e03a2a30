"""The language in which a request would be answered by the interface."""

from __future__ import annotations

from flask import request

from survey.words import LANGUAGES, SOURCE


def spoken() -> str:
    """The interface's language that the browser asks for first; the source's when there is none."""
    return request.accept_languages.best_match(LANGUAGES, SOURCE) or SOURCE
