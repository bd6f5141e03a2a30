"""The look of a team: who may change it, which files it accepts, and where it is shown."""

from __future__ import annotations

import io
import re
import struct
import zlib

import pytest

from survey.results.accents import PROPOSED_ACCENTS, accent_variants, leading_color
from survey.store import TeamLook
from tests.web.researchers import People, send
from tests.web.routes import add_links

TEAM = "/research/surveys/small/team"
VIOLET = PROPOSED_ACCENTS["Violet"]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int = 4, height: int = 2, extra: int = 0) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = b"".join(b"\0" + b"\x6b\x2b\xda" * width for _ in range(height))
    pixels = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"teXt", b"x" * extra)
    return b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")


def jpeg(width: int = 4, height: int = 2) -> bytes:
    """Return the segments of a JPEG with a frame header and an image without content."""
    app = b"\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    frame = b"\xff\xc2\x00\x0b\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\x00"
    return b"\xff\xd8" + app + frame + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\xff\xd9"


@pytest.fixture
def people(app, store, researcher, small):
    return People(app, store)


def change(client, logo: bytes | None = None, **fields):
    data = {"name": "Institute", "accent": "", **fields}
    if logo is not None:
        data["logo"] = (io.BytesIO(logo), "logo.svg")
    return send(client, f"{TEAM}/look", page=TEAM, **data)


def logo_address(page: str) -> str:
    return re.search(r'<img class="logo" src="([^"]+)"', page)[1]


def test_an_owner_gives_results_report_and_figures_the_look_of_the_team(store, people, small):
    add_links(store, small)
    owner, viewer = people["owner"], people["viewer"]
    assert change(owner, png(), name="Work & Health", accent=VIOLET).status_code == 302
    assert store.team_look("small") == TeamLook("Work & Health", VIOLET, png())
    for page in ("1", "1/questions/pressure", "1/links", "explore", "1/report"):
        text = viewer.get(f"/research/surveys/small/{page}").text
        assert 'alt="Work &amp; Health"' in text, page
        sheet = re.search(r'href="(/research/assets/[^"]+/look\.css)"', text)[1]
        assert viewer.get(logo_address(text)).data == png()
    css = viewer.get(sheet)
    assert css.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert f"--accent: {accent_variants(VIOLET).light};" in css.text
    figures = "/research/surveys/small/1/figures/pressure-shares.svg"
    assert VIOLET in viewer.get(figures).text
    assert "#0a5069" not in viewer.get(figures).text
    assert VIOLET in viewer.get("/research/surveys/small/1/links-figure.svg").text
    assert f'fill="{leading_color(VIOLET)}"' in viewer.get("/research/surveys/small/1/report").text
    assert "look.css" not in viewer.get("/research/").text
    assert store.actions("small", 1)[0].event == "changed the look"


def test_readers_of_public_results_see_the_look(store, people, app, small):
    add_links(store, small)
    change(people["owner"], png(), accent=VIOLET)
    store.set_public_results("small", public=True)
    reader = app.test_client()
    page = reader.get("/research/public/small").text
    assert reader.get(logo_address(page)).data == png()
    assert "/look.css" in page
    figure = reader.get("/research/public/small/1/figures/pressure-shares.svg").text
    assert VIOLET in figure


def test_respondents_see_nothing_of_the_look(store, people, app, small):
    before = app.test_client().get("/s/small").data
    change(people["owner"], png(), accent=VIOLET)
    assert app.test_client().get("/s/small").data == before


def test_only_owners_of_a_published_survey_change_its_look(store, people):
    for name, status in (("editor", 403), ("viewer", 403), ("stranger", 404)):
        answer = send(people[name], f"{TEAM}/look", page="/research/account", accent="")
        assert answer.status_code == status, name
    assert store.team_look("small") is None


def test_a_logo_is_served_as_an_image_that_can_do_nothing_else(store, people, app):
    for logo, content_type in ((png(), "image/png"), (jpeg(), "image/jpeg")):
        change(people["owner"], logo)
        address = logo_address(people["owner"].get(TEAM).text)
        served = app.test_client().get(address)
        assert (served.status_code, served.content_type, served.data) == (200, content_type, logo)
        assert served.headers["X-Content-Type-Options"] == "nosniff"
        assert served.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert served.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    former = re.sub("assets/[0-9a-f]{64}", f"assets/{'0' * 64}", address)
    assert app.test_client().get(former).status_code == 404


def test_other_files_than_small_png_and_jpeg_images_are_rejected(store, people):
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    wrong_checksum = png().replace(struct.pack(">II", 4, 2), struct.pack(">II", 5, 2))
    for logo, expected in (
        (svg, "must be a PNG or JPEG file"),
        (b"GIF89a" + png(), "must be a PNG or JPEG file"),
        (png(extra=200_000), "at most 200 KB (found 200,"),
        (png(2_001, 1), "at most 2,000 pixels wide and high (found 2,001 × 1)"),
        (jpeg(1, 2_001), "at most 2,000 pixels wide and high (found 1 × 2,001)"),
        (png(0, 2), "The logo is damaged"),
        (png()[:30], "The logo is damaged"),
        (wrong_checksum, "The logo is damaged"),
        (png()[:33], "The logo is damaged"),
        (png()[:-1], "The logo is damaged"),
        (png() + b"<html>", "The logo is damaged"),
        (jpeg()[:-2], "The logo is damaged"),
        (jpeg()[:33], "The logo is damaged"),
        (jpeg()[:33] + jpeg(1, 9_999)[20:], "The logo is damaged"),
        (jpeg()[:-2] + jpeg(1, 9_999)[20:], "The logo is damaged"),
        (b"\xff\xd8\xff\xe0\x00\x00", "The logo is damaged"),
        (b"\xff\xd8\xff\xe0\x00\x00" + bytes(40), "The logo is damaged"),
        (b"\xff\xd8\xff\xe0\xff\xff" + jpeg(), "The logo is damaged"),
    ):
        answer = change(people["owner"], logo)
        assert answer.status_code == 422, expected
        assert expected in answer.text
    assert store.team_look("small") is None
    assert change(people["owner"], png(2_000, 1, extra=190_000)).status_code == 302


def test_a_logo_needs_a_name_stays_until_it_is_removed_and_can_be_replaced(store, people):
    owner = people["owner"]
    assert "Enter the team name" in change(owner, png(), name=" ").text
    change(owner, png())
    change(owner, accent=VIOLET)
    assert store.team_look("small") == TeamLook("Institute", VIOLET, png())
    change(owner, jpeg(), without_logo="y")
    assert store.team_look("small").logo == jpeg()
    change(owner, without_logo="y", name="")
    assert store.team_look("small") is None
    assert "<img" not in owner.get(TEAM).text


def test_an_own_accent_must_be_readable_and_the_error_names_the_ratio(store, people):
    owner = people["owner"]
    rejected = change(owner, accent="own", own_accent="#ffcc00")
    assert rejected.status_code == 422
    assert "White text on #ffcc00 has a contrast of 1.51:1" in rejected.text
    assert 'value="#ffcc00"' in rejected.text
    assert change(owner, accent="own", own_accent="nothing").status_code == 422
    assert change(owner, accent="#ffcc00").status_code == 422
    assert store.team_look("small") is None
    change(owner, accent="own", own_accent="1D58A6")
    assert store.team_look("small").accent == "#1d58a6"
    assert re.search(r'checked[^>]* value="own"', owner.get(TEAM).text)
    missing = f"/research/assets/{'0' * 64}/1d58a6/look.css"
    assert owner.get(missing).status_code == 404
    assert owner.get(missing.replace("1d58a6", "ffcc00")).status_code == 404


def test_the_report_as_pdf_contains_the_logo_and_the_accent(store, people, monkeypatch):
    pages = []

    def record(page: str, style: str) -> bytes:
        pages.append((page, style))
        return b"%PDF"

    monkeypatch.setattr("survey.research.downloads.to_pdf", record)
    change(people["owner"], png(), accent=VIOLET)
    assert people["viewer"].get("/research/surveys/small/1/report.pdf").data == b"%PDF"
    ((page, style),) = pages
    assert 'src="data:image/png;base64,' in page
    assert f"--accent: {VIOLET}" in style
