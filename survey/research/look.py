"""The look of a team: its name, logo and accent on the pages, reports and figures of its survey.

Respondents' pages never show it: they load nothing that differs between teams.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from flask import Response, url_for
from flask_wtf import FlaskForm
from flask_wtf.file import FileField
from wtforms import BooleanField, RadioField, SelectChoice, StringField, SubmitField
from wtforms.validators import Length, Optional, ValidationError

from survey.errors import DesignError, NotFoundError
from survey.research.access import Pages, Route, Section, Workspace
from survey.research.forms import in_one_line
from survey.results.accents import PROPOSED_ACCENTS, accent_stylesheet, parse_accent
from survey.store import Store, TeamLook, team_slug

MAX_LOGO_BYTES = 200_000
MAX_LOGO_PIXELS = 2_000
"""Maximum width and height: a small file can have so many pixels that it slows down a browser."""

MAX_TEAM_NAME = 80

PNG, JPEG = "image/png", "image/jpeg"
PNG_SIGNATURE, JPEG_SIGNATURE = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"

FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""Markers of the JPEG segments that contain the size (ITU T.81, table B.1)."""

START_OF_SCAN, END_OF_IMAGE = 0xDA, b"\xff\xd9"

CSS = "text/css; charset=utf-8"

OWN = "own"
"""The form value of a custom accent."""


def logo_type(logo: bytes) -> str:
    """Return the media type of a logo by its first bytes; raises DesignError for other files."""
    if logo.startswith(PNG_SIGNATURE):
        return PNG
    if logo.startswith(JPEG_SIGNATURE):
        return JPEG
    raise DesignError("The logo must be a PNG or JPEG file")


def check_logo(logo: bytes) -> None:
    """Raise DesignError for a file that is not a PNG or JPEG, is damaged, or is too large."""
    n = len(logo)
    if n > MAX_LOGO_BYTES:
        raise DesignError(f"The logo must be at most {MAX_LOGO_BYTES // 1000} KB (found {n:,} B)")
    size = _png_size(logo) if logo_type(logo) == PNG else _jpeg_size(logo)
    if size is None or 0 in size:
        raise DesignError("The logo is damaged or incomplete. Export it again")
    if max(size) > MAX_LOGO_PIXELS:
        width, height = size
        raise DesignError(
            f"The logo must be at most {MAX_LOGO_PIXELS:,} pixels wide and high "
            f"(found {width:,} × {height:,})"
        )


def _png_size(logo: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, None unless its chunks are whole, from IHDR to IEND.

    A chunk consists of length, type, data and the CRC of type and data (PNG 3.0, section 5.3).
    """
    chunks: list[tuple[bytes, bytes]] = []
    place = len(PNG_SIGNATURE)
    while place + 12 <= len(logo):
        end = place + 12 + int.from_bytes(logo[place : place + 4], "big")
        content, checksum = logo[place + 4 : end - 4], logo[end - 4 : end]
        if zlib.crc32(content).to_bytes(4, "big") != checksum:
            return None
        chunks.append((content[:4], content[4:]))
        place = end
    kinds = [kind for kind, _ in chunks]
    if place != len(logo) or kinds[:1] != [b"IHDR"] or kinds[-1] != b"IEND" or b"IDAT" not in kinds:
        return None
    header = chunks[0][1]
    return int.from_bytes(header[:4], "big"), int.from_bytes(header[4:8], "big")


def _jpeg_size(logo: bytes) -> tuple[int, int] | None:
    """Return width and height of a JPEG, None unless it has one frame header, an image and an end.

    A segment consists of 0xFF, a marker, and a length that includes itself (ITU T.81, B.1.1.4). A
    second frame header could have another size.
    """
    sizes, place = [], 2
    while place + 9 <= len(logo) and logo[place] == 0xFF and logo[place + 1] != START_OF_SCAN:
        if logo[place + 1] in FRAMES:
            height, width = logo[place + 5 : place + 7], logo[place + 7 : place + 9]
            sizes.append((int.from_bytes(width, "big"), int.from_bytes(height, "big")))
        place += 2 + int.from_bytes(logo[place + 2 : place + 4], "big")
    image = logo[place:]
    is_whole = image.startswith(bytes([0xFF, START_OF_SCAN])) and image.endswith(END_OF_IMAGE)
    has_frame = any(bytes([0xFF, marker]) in image for marker in FRAMES)
    return sizes[0] if is_whole and len(sizes) == 1 and not has_frame else None


class LookForm(FlaskForm):  # type: ignore[misc]
    """The look of a team."""

    name = StringField(
        "Name of the team",
        [
            Optional(),
            Length(max=MAX_TEAM_NAME, message=f"Use at most {MAX_TEAM_NAME} characters"),
        ],
        [in_one_line],
    )
    logo = FileField("Logo")
    without_logo = BooleanField("Remove the logo")
    accent = RadioField(
        "Accent color",
        choices=[
            SelectChoice("", "Standard"),
            *(SelectChoice(color, name) for name, color in PROPOSED_ACCENTS.items()),
            SelectChoice(OWN, "Custom color"),
        ],
    )
    own_accent = StringField("Custom color, such as #1d58a5")
    submit = SubmitField("Save branding")

    def validate_name(self, field: StringField) -> None:
        """Reject characters that cannot be printed."""
        if not field.data.isprintable():
            raise ValidationError("The name must not contain control characters")

    def validate_own_accent(self, field: StringField) -> None:
        """Reject a color that is hard to read."""
        if self.accent.data != OWN:
            return
        try:
            field.data = parse_accent(field.data or "")
        except DesignError as error:
            raise ValidationError(str(error)) from error

    @classmethod
    def of(cls, look: TeamLook) -> LookForm:
        """Return the form with a stored look."""
        is_proposed = look.accent in ("", *PROPOSED_ACCENTS.values())
        return cls(
            formdata=None,
            name=look.name,
            accent=look.accent if is_proposed else OWN,
            own_accent="" if is_proposed else look.accent,
        )

    def changed(self, look: TeamLook) -> TeamLook | None:
        """Return the look in a valid form; for an unusable logo, add errors and return None."""
        logo = self.logo.data.read() if self.logo.data else b""
        try:
            if logo:
                check_logo(logo)
        except DesignError as error:
            self.logo.errors = [str(error)]
            return None
        logo = logo or (b"" if self.without_logo.data else look.logo)
        if logo and not self.name.data:
            self.name.errors = ["Enter the team name: screen readers read it instead of the logo"]
            return None
        accent = self.own_accent.data if self.accent.data == OWN else self.accent.data
        return TeamLook(self.name.data, accent, logo)


@dataclass(frozen=True)
class ShownLook:
    """The look on a page; `stylesheet` and `logo` are addresses, or empty if there is none."""

    name: str
    accent: str
    stylesheet: str
    logo: str


NO_LOOK = ShownLook("", "", "", "")


def shown_look(store: Store, slug: str) -> ShownLook:
    """Return the look of a survey's team with the addresses of its files."""
    look = store.team_look(team_slug(slug))
    if look is None:
        return NO_LOOK
    stylesheet = logo = ""
    if look.accent:
        version = _digest(accent_stylesheet(look.accent).encode())
        stylesheet = url_for("looks.stylesheet", version=version, accent=look.accent[1:])
    if look.logo:
        logo = url_for("looks.logo", version=_digest(look.logo), slug=team_slug(slug))
    return ShownLook(look.name, look.accent, stylesheet, logo)


def embedded_logo(store: Store, slug: str) -> str:
    """Return the logo of a survey's team as a data URL; "" without a logo."""
    look = store.team_look(team_slug(slug))
    if look is None or not look.logo:
        return ""
    return f"data:{logo_type(look.logo)};base64,{b64encode(look.logo).decode()}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sections(workspace: Workspace) -> list[Section]:
    """Declare the files of looks, and the function that gives templates their addresses.

    Each address contains the hash of its file: nobody can guess the address of a logo, and a
    stylesheet reveals nothing about a survey.
    """
    views = _LookFiles(workspace)
    routes = [
        Route("GET", "/<version>/<accent>/look.css", "anybody", views.stylesheet),
        Route("GET", "/<version>/<slug>/logo", "anybody", views.logo),
    ]
    section = Section("looks", "/research/assets", routes)
    section.app_context_processor(
        lambda: {"shown_look": lambda slug: shown_look(workspace.store, slug)}
    )
    return [section]


class _LookFiles(Pages):
    def stylesheet(self, version: str, accent: str) -> Any:
        """Return the rules of an accent."""
        try:
            content = accent_stylesheet(parse_accent(accent)).encode()
        except DesignError as error:
            raise NotFoundError("there is no stylesheet of this color") from error
        return _file(content, version, CSS)

    def logo(self, version: str, slug: str) -> Any:
        """Return the logo of a survey's team."""
        look = self._store.team_look(slug)
        if look is None or not look.logo:
            raise NotFoundError("there is no file at this address")
        return _file(look.logo, version, logo_type(look.logo))


def _file(content: bytes, version: str, content_type: str) -> Response:
    # The same message whether a survey has a logo or not: strangers can ask for any address.
    if _digest(content) != version:
        raise NotFoundError("there is no file at this address")
    return Response(content, content_type=content_type)
