"""Pictures of answer options: their page in the builder, and the check of uploaded files.

Uploads are decoded, made smaller and encoded again, so that only their pixels survive. This removes
all other content of the file, such as the place where a photograph was taken or a second file.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

from flask import flash, redirect, render_template, request, url_for
from flask_wtf import FlaskForm
from flask_wtf.file import FileField
from wtforms import StringField
from wtforms.validators import Length

from survey.errors import DesignError, NotFoundError
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.draft import DraftContent, Question
from survey.questionnaire.kinds import kind_of
from survey.research.access import Route, Workspace
from survey.research.builder.draft_editor import DraftPages
from survey.research.builder.forms import plain
from survey.research.forms import whole_number

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_UPLOAD = 1_000_000
"""Maximum size of an uploaded picture in bytes."""

MAX_PIXELS = 25_000_000
"""Maximum number of pixels of an uploaded picture: decoding a small file with many pixels could use
all memory."""

MIN_SIDE = 48
"""Minimum width and height: a smaller picture would be blurred on its card."""

SIDE = 480
"""Maximum width and height of a stored picture: three times the width of a card on a phone."""

MAX_BYTES = 60_000
"""Maximum size of a stored picture: 24 of them load within 30 seconds at 400 kbit/s."""

QUALITIES = (80, 65, 50, 35, 20, 5)

FORMATS = ("PNG", "JPEG", "WEBP")
SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF")
"""The first bytes of the files in these formats."""

DAMAGED = "The picture is damaged or incomplete. Export it again"


def encode_picture(content: bytes) -> tuple[str, bytes]:
    """Return the SHA-256 in hex and the bytes of a picture as it is stored.

    Raises DesignError unless the file is a complete, still PNG, JPEG or WebP within the limits.
    """
    from PIL import ImageFile, ImageOps

    if not content:
        raise DesignError("The file is empty. Choose another file")
    if len(content) > MAX_UPLOAD:
        raise DesignError(
            f"The picture must be at most {MAX_UPLOAD // 1000:,} KB (found {len(content):,} bytes)"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the limits here are stricter than the library's
        picture = _open(content)
        # Importing the library that creates PDF files sets this to True for the whole process.
        ImageFile.LOAD_TRUNCATED_IMAGES = False
        try:
            # Decode a JPEG at reduced size, which saves memory.
            picture.draft("RGB", (2 * SIDE, 2 * SIDE))
            picture.load()
        except (OSError, SyntaxError, ValueError, MemoryError) as error:
            raise DesignError(DAMAGED) from error
        upright = picture
        # A picture with damaged camera data is still usable.
        with suppress(OSError, SyntaxError, ValueError):
            upright = ImageOps.exif_transpose(picture)
    upright.thumbnail((SIDE, SIDE))
    is_opaque = "A" not in upright.getbands() and "transparency" not in upright.info
    pixels = upright.convert("RGB" if is_opaque else "RGBA")
    encoded = _encode(pixels)
    return hashlib.sha256(encoded).hexdigest(), encoded


def _open(content: bytes) -> Image:
    """Return a picture without decoding it, after checking its format and size in the header."""
    import PIL.Image

    try:
        picture = PIL.Image.open(BytesIO(content), formats=FORMATS)
    except PIL.Image.DecompressionBombError as error:
        raise DesignError(_too_many_pixels("")) from error
    except (OSError, SyntaxError, ValueError) as error:
        if content.startswith(SIGNATURES):
            raise DesignError(DAMAGED) from error
        raise DesignError(
            "The picture must be a PNG, JPEG or WebP file. Export other files, such as SVG, "
            "as one of these"
        ) from error
    width, height = picture.size
    dimensions = f" (found {width:,} × {height:,})"
    if width * height > MAX_PIXELS:
        raise DesignError(_too_many_pixels(dimensions))
    if min(width, height) < MIN_SIDE:
        raise DesignError(
            f"The picture must be at least {MIN_SIDE} pixels wide and high{dimensions}"
        )
    if getattr(picture, "n_frames", 1) > 1:
        raise DesignError("The picture is animated. Choose a still picture")
    return picture


def _too_many_pixels(dimensions: str) -> str:
    return f"The picture must have at most {MAX_PIXELS // 1_000_000} million pixels{dimensions}"


def _encode(pixels: Image) -> bytes:
    """Return the pixels as a WebP of the best quality within the size limit, without metadata."""
    content = b""
    for quality in QUALITIES:
        file = BytesIO()
        # Without these empty arguments, the library would copy the upload's metadata.
        pixels.save(file, "WEBP", quality=quality, method=4, exif=b"", icc_profile=b"", xmp=b"")
        content = file.getvalue()
        if len(content) <= MAX_BYTES:
            return content
    raise DesignError("The picture has too much detail for a card. Choose a simpler one")


class PictureForm(FlaskForm):  # type: ignore[misc]
    """The picture of one option: a file, unless only its description changes."""

    file = FileField("Picture")
    alt = StringField("Description for people who cannot see the picture", [Length(max=300)])


def routes(workspace: Workspace) -> list[Route]:
    """Declare the page for the pictures of a question's answers."""
    pages = _PicturePages(workspace)
    return [Route("GET POST", "/<slug>/questions/<int:key>/pictures", "editor", pages.pictures)]


class _PicturePages(DraftPages):
    def pictures(self, slug: str, key: int) -> Any:
        """Add, describe and remove the pictures of a question's answers."""
        opened = self._drafts.open(slug)
        question = opened.content.question(key)
        if not kind_of(question).has_pictures:
            raise NotFoundError("answers to this type of question cannot have pictures")
        if request.method != "POST":
            return self._page(slug, opened.content, question, PictureForm(formdata=None), 0)
        form = PictureForm()
        action, _, number = request.form.get("do", "").partition(" ")
        option = whole_number(number)
        if form.validate_on_submit():
            try:
                self._change_picture(slug, key, option, form, removes=action == "remove")
            except DesignError as error:
                form.file.errors = [str(error)]
            else:
                flash("Saved.")
                address = url_for("drafts.pictures", slug=slug, key=key, _anchor=f"answer-{option}")
                return redirect(address)
        return self._page(slug, opened.content, question, form, option), 422

    def _change_picture(
        self, slug: str, key: int, option: int, form: PictureForm, *, removes: bool
    ) -> None:
        uploaded = form.file.data.read(MAX_UPLOAD + 1) if form.file.data else b""
        pictures: list[tuple[str, bytes]] = []
        if removes:
            sha256: str | None = ""
        elif uploaded:
            pictures = [encode_picture(uploaded)]
            sha256 = pictures[0][0]
        else:
            sha256 = None
        alt = "" if removes else plain(form.alt.data or "")

        def change(content: DraftContent) -> DraftContent:
            return edits.with_picture(content, key, option, sha256, alt)

        self._drafts.change(slug, self._gate.researcher().email, change, pictures)

    def _page(
        self, slug: str, content: DraftContent, question: Question, form: PictureForm, option: int
    ) -> str:
        return render_template(
            "research/builder/pictures.html",
            survey=self._drafts.open(slug).draft,
            content=content,
            question=question,
            form=form,
            wrong=option,
            limits=_LIMITS,
        )


_LIMITS: Mapping[str, int] = {"bytes": MAX_UPLOAD, "side": MIN_SIDE}
