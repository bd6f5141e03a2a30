"""An answer in the kind that its reader takes, under a tag that changes when the answer would.

A reader who sends the tag back (`If-None-Match`) is told that nothing changed before anything is
computed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from flask import Response, request
from werkzeug.datastructures import MIMEAccept

from survey import __version__
from survey.errors import NotAcceptableError
from survey.store import PublishedSurvey


def chosen(offered: Sequence[str]) -> str:
    """The media type that the reader likes best; the first for whoever takes any.

    Raises NotAcceptableError where none will do.
    """
    asked = request.accept_mimetypes
    if not asked:
        return offered[0]
    # What stands behind a type, such as a charset, is left to us.
    plain = MIMEAccept([(kind.partition(";")[0], quality) for kind, quality in asked])
    if (best := plain.best_match(offered)) is None:
        raise NotAcceptableError(f"this address answers with {' or '.join(offered)}")
    return best


def tag_of(survey: PublishedSurvey, release: int, *reading: object) -> str:
    """The tag of what was read of a release; other code may read it otherwise."""
    parts = (survey.sha256, survey.state, release, __version__, *reading)
    return hashlib.sha256("\n".join(map(str, parts)).encode("utf-8")).hexdigest()[:32]


def whole(body: bytes, media_type: str, tag: str = "") -> Response:
    """An answer that is at hand, tagged by its bytes unless it has a tag already."""
    return _answer(tag or hashlib.sha256(body).hexdigest(), media_type, lambda: body)


def computed(tag: str, media_type: str, body: Callable[[], bytes | str]) -> Response:
    """An answer that is computed only for whoever has not got it.

    The tag is a weak one: each process says in every row when it made them, so that two answers
    say the same of the same release, but not in the same bytes.
    """
    return _answer(tag, media_type, body, weak=True)


def _answer(
    tag: str, media_type: str, body: Callable[[], bytes | str], *, weak: bool = False
) -> Response:
    if request.if_none_match.contains_weak(tag):
        response = Response(status=304)
    else:
        response = Response(body(), content_type=_with_charset(media_type))
    response.set_etag(tag, weak=weak)
    return response


def _with_charset(media_type: str) -> str:
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type
