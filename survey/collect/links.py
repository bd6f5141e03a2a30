"""The links that respondents open: all they carry stands behind "#", which no browser sends."""

from __future__ import annotations

import io
from urllib.parse import quote

import segno

from survey.store import PublishedSurvey

HASH_IN_LINK = 16
"""Digits of the definition id in a link's fragment; the client refuses another definition."""


def respondent_link(
    survey: PublishedSurvey, public_url: str, *, token: str = "", stratum: str = ""
) -> str:
    """The link to send: the start of the definition's hash, by which the page checks the survey.

    With a token it is good for one report, of the stratum for which the token was issued.
    """
    parts = {"s": quote(stratum, safe=""), "i": token, "d": survey.sha256[:HASH_IN_LINK]}
    # The hash comes last: wherever the end of a personal link is cut off, its page sees that.
    carried = "&".join(f"{name}={value}" for name, value in parts.items() if value)
    return f"{public_url.rstrip('/')}/s/{survey.slug}#{carried}"


def qr_code(link: str) -> bytes:
    """The link as a picture (SVG), for paper and screens; a quarter of it may be damaged."""
    drawn = io.BytesIO()
    segno.make(link, error="q", micro=False).save(drawn, kind="svg", scale=4, border=4)
    return drawn.getvalue()
