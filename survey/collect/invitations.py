"""Links to a survey, and single-use invitations: only the SHA-256 of an invitation is stored."""

from __future__ import annotations

import hashlib
import io
import re
import secrets
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote

from pydantic import StringConstraints, TypeAdapter, ValidationError

from survey.disclosure import MINIMUM_REPORTS, OTHER_GROUPS
from survey.errors import DesignError, ReportError
from survey.questionnaire import is_test_run
from survey.questionnaire.definition import MAX_STRATUM_LENGTH
from survey.questionnaire.texts import Text
from survey.settings import Settings
from survey.store import PublishedSurvey, Store

TOKEN = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
"""256 random bits in base64url without padding; the last character carries two zero bits."""

TOKEN_BYTES = 32

QR_FORMATS = {"svg": 4, "png": 10}
"""Image formats of QR codes, with the size of a module in pixels."""

_STRATUM: TypeAdapter[str] = TypeAdapter(
    Annotated[Text, StringConstraints(max_length=MAX_STRATUM_LENGTH, pattern=r"^[^\n]*$")]
)


def token_hash(token: str) -> bytes:
    """Return the SHA-256 of a link's token, without salt because a token has 256 random bits.

    Raises ReportError if the text does not have the form of a token.

    >>> token_hash("A" * 43).hex()[:16]
    '0f007385b6f9d4b7'
    """
    if not TOKEN.fullmatch(token):
        raise ReportError("invitation must be 32 bytes in base64url without padding, or empty")
    return hashlib.sha256(token.encode("ascii")).digest()


def new_tokens(count: int) -> list[str]:
    """Return new tokens from the operating system's CSPRNG.

    >>> [len(token) for token in new_tokens(2)]
    [43, 43]
    """
    return [secrets.token_urlsafe(TOKEN_BYTES) for _ in range(count)]


def validate_stratum(store: Store, survey: PublishedSurvey, stratum: str, count: int) -> str:
    """Return the name of a stratum for which `count` more invitations are to be issued.

    Raises DesignError if the name cannot be displayed, if the stratum would be too small, or if the
    survey is for shared devices.
    """
    if survey.definition.kiosk:
        raise DesignError(
            f"{survey.slug} is for shared devices, on which the next person could use an "
            "invitation; publish a version for personal devices (kiosk = false) to invite people"
        )
    try:
        name = _STRATUM.validate_python(stratum)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise DesignError(f"stratum {stratum[:MAX_STRATUM_LENGTH]!a}: {reason}") from None
    if name == OTHER_GROUPS:
        raise DesignError(f'"{name}" is reserved for combined strata; choose another name')
    n = store.n_invited(survey.key, name) + count
    if n < MINIMUM_REPORTS:
        place = f'stratum "{name}"' if name else "this survey"
        remedy = "Combine it with another stratum" if name else "Invite more people"
        raise DesignError(
            f"{place} would have {n} invitations; the minimum is {MINIMUM_REPORTS}, because "
            f"reports in smaller groups could be linked to people. {remedy}"
        )
    return name


def issue_invitations(
    store: Store,
    survey: PublishedSurvey,
    stratum: str,
    tokens: Sequence[str],
    before: int | None = None,
) -> None:
    """Issue single-use invitations for a stratum; only the hashes of the tokens are stored.

    Raises ConflictError if the stratum does not have `before` invitations (if given).
    """
    store.add_invitations(survey.key, stratum, list(map(token_hash, tokens)), before)


HASH_IN_LINK = 32
"""Digits of the definition's hash in a link; the page refuses any other definition."""


def survey_origin(slug: str, settings: Settings) -> str:
    """Return the origin of a survey's page: researchers open test runs, respondents all others."""
    return settings.researchers_url if is_test_run(slug) else settings.public_url.rstrip("/")


def respondent_link(
    survey: PublishedSurvey,
    settings: Settings,
    *,
    token: str = "",
    stratum: str = "",
    page: str = "",
) -> str:
    """Return the link for respondents, with a part of the hash by which the page checks the survey.

    With a token, the link is valid for one report in the stratum of the invitation. If the link
    opens a copy of the page on another host, `page` is its URL. Everything private is in the
    fragment, after "#", which browsers do not send to servers.
    """
    parts = {"s": quote(stratum, safe=""), "i": token, "d": survey.sha256[:HASH_IN_LINK]}
    if page:
        # Static hosts serve all surveys at one address.
        parts = {"slug": survey.slug, **parts}
    # The hash comes last, so that the page notices a link that was cut off anywhere.
    fragment = "&".join(f"{name}={value}" for name, value in parts.items() if value)
    address = page or f"{survey_origin(survey.slug, settings)}/s/{survey.slug}"
    return f"{address}#{fragment}"


def field_link(survey: PublishedSurvey, settings: Settings, page: str = "") -> str:
    """Return the link that interviewers open to prepare a tablet for a survey with field mode.

    If the link opens a copy of the client on another host, `page` is the URL of the copy's folder.
    """
    folder = page.removesuffix("index.html") or f"{survey_origin(survey.slug, settings)}/"
    return f"{folder}field/#slug={survey.slug}&d={survey.sha256[:HASH_IN_LINK]}"


def qr_code(link: str, image_format: str = "svg", *, inline: bool = False) -> bytes:
    """Draw a link as a QR code in one of `QR_FORMATS`, readable with a quarter of it damaged.

    Its background is white, because scanners would not find its edge on a dark page. An
    `inline` SVG, for HTML, has no XML declaration and scales with its element.
    """
    import segno

    image = io.BytesIO()
    code = segno.make(link, error="q", micro=False)
    options = {"xmldecl": False, "svgns": False, "omitsize": True} if inline else {}
    scale = QR_FORMATS[image_format]
    code.save(image, kind=image_format, scale=scale, border=4, light="#fff", **options)
    return image.getvalue()
