"""Pictures of answers: what an upload may be, what is stored and served, and when it is deleted."""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zlib
from dataclasses import replace

import pytest
from PIL import Image, ImageFile, PngImagePlugin

from survey import create_app
from survey.archive import check
from survey.errors import ConflictError, DefinitionError, DesignError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.drafts.conversion import definition_from, draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import load, source_of
from survey.questionnaire.validation import check as check_definition
from survey.research.builder.pictures import MAX_BYTES, SIDE, encode_picture
from survey.settings import Caps
from tests.conftest import EMAIL, TODAY
from tests.pictures import PETS, add_draft_with_picture, add_picture
from tests.web.researchers import send, sign_in, token

DRAFTS = "/research/drafts"


def image(kind: str = "PNG", size: tuple[int, int] = (400, 300), **options: object) -> bytes:
    file = io.BytesIO()
    Image.effect_noise(size, 30).convert("RGB").save(file, kind, **options)
    return file.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    content = kind + data
    return struct.pack(">I", len(data)) + content + struct.pack(">I", zlib.crc32(content))


def bomb(side: int) -> bytes:
    """Return a small PNG file that claims to have many pixels."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")


def decoded(content: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(content))
    picture.load()
    return picture


def test_only_the_pixels_of_an_upload_are_stored():
    place = b"Exif\0\0secret place"
    note = PngImagePlugin.PngInfo()
    note.add_text("Comment", "secret note", zip=False)
    for content in (
        image("JPEG", exif=place, comment=b"secret note"),
        image("PNG", pnginfo=note),
        image("WEBP", exif=place, xmp=b"secret note"),
        image("JPEG") + b"<script>secret script</script>",
        image("PNG") + b"PK\x03\x04secret archive",
    ):
        sha256, stored = encode_picture(content)
        assert sha256 == hashlib.sha256(stored).hexdigest()
        assert b"secret" not in stored
        picture = decoded(stored)
        assert (picture.format, picture.size) == ("WEBP", (400, 300))
        assert not {"exif", "xmp", "icc_profile"} & set(picture.info)
        assert len(stored) <= MAX_BYTES
        assert encode_picture(content) == (sha256, stored)
    assert decoded(encode_picture(image("JPEG", (1600, 800)))[1]).size == (SIDE, SIDE // 2)


def test_a_photograph_is_turned_upright_and_a_transparent_picture_stays_transparent():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    assert decoded(encode_picture(image("JPEG", (200, 100), exif=exif))[1]).size == (100, 200)
    file = io.BytesIO()
    Image.new("RGBA", (64, 64), (0, 0, 0, 0)).save(file, "PNG")
    assert decoded(encode_picture(file.getvalue())[1]).convert("RGBA").getpixel((9, 9))[3] == 0


def test_files_that_are_not_one_whole_picture_are_refused_with_the_reason(monkeypatch):
    # As after a report was written as a PDF file.
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    frames = [Image.new("RGB", (64, 64), color) for color in ("red", "blue")]
    moving = io.BytesIO()
    frames[0].save(moving, "WEBP", save_all=True, append_images=frames[1:], duration=100)
    gif = io.BytesIO()
    frames[0].save(gif, "GIF")
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    for content, reason in (
        (b"", "is empty"),
        (svg, "must be a PNG, JPEG or WebP file"),
        (b"<!DOCTYPE html>" + image(), "must be a PNG, JPEG or WebP file"),
        (gif.getvalue(), "must be a PNG, JPEG or WebP file"),
        (b"%PDF-1.7", "must be a PNG, JPEG or WebP file"),
        (moving.getvalue(), "is animated"),
        (image("PNG")[:-1000], "damaged or incomplete"),
        (image("JPEG")[:-1000], "damaged or incomplete"),
        (image("WEBP")[:-1000], "damaged or incomplete"),
        (b"\x89PNG\r\n\x1a\n", "damaged or incomplete"),
        (bomb(6_000), "at most 25 million pixels (found 6,000 × 6,000)"),
        (bomb(100_000), "at most 25 million pixels"),
        (image("PNG", (47, 400)), "at least 48 pixels wide and high (found 47 × 400)"),
        (b"\xff\xd8\xff" + b"\0" * 1_000_000, "at most 1,000 KB (found 1,000,003 bytes)"),
    ):
        with pytest.raises(DesignError) as refused:
            encode_picture(content)
        assert reason in str(refused.value), (content[:20], str(refused.value))


def test_a_definition_names_the_hash_the_type_and_a_description_in_each_language():
    text = PETS.replace("CAT", "ab" * 32)
    definition = freeze(load(text.encode(), "s.toml", Caps()), 1)
    form = json.loads(definition.canonical)
    cat, nothing, _ = form["pages"][0]["questions"][0]["options"]
    assert cat["picture"] == {"sha256": "ab" * 32, "type": "image/webp", "alt": "A grey cat"}
    assert "picture" not in nothing
    spanish = form["translations"]["es"]["pages"][0]["questions"][0]
    assert spanish["pictures"] == ["Un gato gris", "", ""]
    assert definition.pictures == ["ab" * 32]
    again = check_definition(source_of(definition), Caps())
    assert freeze(again, 1) == definition
    draft = DraftContent.from_json(draft_from(source_of(definition)).to_json())
    assert freeze(check_definition(definition_from(draft), Caps()), 1) == definition
    for old, new, reason in (
        ('{en = "A grey cat", es = "Un gato gris"}', '""', "picture_alt must describe"),
        ("ab" * 32, "ab" * 31, "picture"),
        ("ab" * 32, "", "picture_alt describes no picture"),
        ('"single_choice"', '"scale"', "a scale question cannot have pictures"),
    ):
        with pytest.raises(DefinitionError, match=reason):
            load(text.replace(old, new).encode(), "s.toml", Caps())


@pytest.fixture
def ada(client, researcher):
    assert sign_in(client).status_code == 302
    return client


def content_of(store, slug: str) -> DraftContent:
    return DraftContent.from_json(store.draft(int(slug.removeprefix("trial-"))).content)


def draft_of_pets(store, researcher) -> tuple[str, str]:
    """Create a draft without pictures; return its slug and the address of its pictures."""
    text = re.sub("(?m)^picture.*\n", "", PETS)
    content = draft_from(load_source(text))
    (question,) = content.questions
    team = {researcher: "owner"}
    slug = store.add_draft(content.to_json(), "ada@example.org", 1, team).slug
    return slug, f"{DRAFTS}/{slug}/questions/{question['key']}/pictures"


def load_source(text: str) -> dict[str, object]:
    return source_of(freeze(load(text.encode(), "s.toml", Caps()), 1))


def upload(client, path: str, option: int, file: bytes | None, alt: str, do: str = "save"):
    data = {"do": f"{do} {option}", "alt": alt, "csrf_token": token(client.get(path))}
    if file is not None:
        data["file"] = (io.BytesIO(file), "x.svg")
    return client.post(path, data=data, content_type="multipart/form-data")


def test_a_picture_is_uploaded_kept_by_other_edits_translated_published_and_removed(
    ada, app, store, settings
):
    slug, path = draft_of_pets(store, store.researcher(EMAIL).key)
    (question,) = content_of(store, slug).questions
    cat, nothing = (option["key"] for option in question["options"])
    for file, alt, reason in (
        (image(), "", "Describe the picture"),
        (None, "A cat", "Choose a picture"),
        (b"<svg/>", "A cat", "must be a PNG, JPEG or WebP file"),
    ):
        refused = upload(ada, path, cat, file, alt)
        assert refused.status_code == 422
        assert reason in refused.text
    assert "this answer has been removed" in upload(ada, path, 999, image(), "A cat").text
    assert upload(ada, path, cat, image("JPEG"), "A grey cat").status_code == 302
    sha256 = _picture(store, slug, cat)["picture"]
    shown = ada.get(path).text
    assert f"/pictures/{sha256}" in shown
    assert 'alt="A grey cat"' in shown
    # Other sheets of the draft leave the picture as it is, and its description can be translated.
    sheet = path.removesuffix("/pictures")
    page = ada.get(sheet)
    fields = {"options-0-key": cat, "options-0-label": "Tomcat", "options-0-id": "cat"}
    fields |= {"options-1-key": nothing, "options-1-label": "None", "options-1-id": "none"}
    revision = re.search(r'name="revision" value="(\d+)"', page.text)[1]
    data = {"csrf_token": token(page), "revision": revision, "do": "save", "type": "single_choice"}
    texts = {"text": "Which pet?", "id": "pet", "way": "epsilon", "value": "1"}
    assert ada.post(sheet, data={**data, **texts, **fields}).status_code == 302
    assert _picture(store, slug, cat)["picture"] == sha256
    assert _picture(store, slug, cat)["label"]["en"] == "Tomcat"
    assert "A grey cat" in ada.get(f"{DRAFTS}/{slug}/languages/es").text
    preview = ada.get(f"{DRAFTS}/{slug}/preview/page")
    assert sha256 in preview.text
    assert "/pictures/" in preview.headers["Content-Security-Policy"]
    # A second description without a file keeps the picture; removing it clears both.
    assert upload(ada, path, cat, None, "A black cat").status_code == 302
    assert _picture(store, slug, cat)["picture_alt"]["en"] == "A black cat"
    assert upload(ada, path, cat, None, "", "remove").status_code == 302
    assert (_picture(store, slug, cat)["picture"], _picture(store, slug, cat)["picture_alt"]) == (
        "",
        {},
    )


def _picture(store, slug: str, key: int):
    (question,) = content_of(store, slug).questions
    return next(option for option in question["options"] if option["key"] == key)


def test_a_picture_is_deleted_with_the_last_survey_or_draft_that_uses_it(store):
    sha256, draft = add_draft_with_picture(store, b"cat")
    definition = freeze(load(PETS.replace("CAT", sha256).encode(), "s.toml", Caps()), 1)
    store.publish(definition, TODAY)
    other = add_picture(store, b"dog")
    store.delete_draft(draft.key, TODAY)
    assert store.picture(sha256) == b"cat"
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    store.close_survey("pets", TODAY)
    store.delete_survey("pets", TODAY)
    assert store.picture(sha256) is None
    assert store.picture(other) == b"dog"
    unknown = load(PETS.replace("CAT", sha256).encode(), "s.toml", Caps())
    with pytest.raises(ConflictError, match="is not stored here; upload it again"):
        store.publish(freeze(unknown, 1), TODAY)


def test_a_damaged_or_missing_picture_is_inconsistent(store):
    sha256 = add_picture(store, b"cat")
    definition = freeze(load(PETS.replace("CAT", sha256).encode(), "s.toml", Caps()), 1)
    store.publish(definition, TODAY)
    store.insert_rows("picture", [("0" * 64, b"other")])
    store._execute("DELETE FROM picture WHERE sha256 = ?", [sha256])
    with store.snapshot() as snapshot:
        mistakes = " ".join(check(snapshot).mistakes)
    assert f"version 1: the picture {sha256} is missing" in mistakes
    assert (
        f"the picture stored as {'0' * 64} has the SHA-256 {hashlib.sha256(b'other').hexdigest()}"
        in mistakes
    )


def test_everybody_gets_the_same_bytes_without_cookies_and_listed_hosts_may_read_them(
    store, settings
):
    sha256 = add_picture(store, b"cat")
    listed = "https://union.example"
    app = create_app(replace(settings, client_origins=listed), store)
    client = app.test_client()
    first = client.get(f"/pictures/{sha256}")
    client.set_cookie("survey", "x")
    second = client.get(f"/pictures/{sha256}", headers={"Accept-Language": "ar", "Origin": listed})
    assert (first.data, first.mimetype) == (second.data, second.mimetype) == (b"cat", "image/webp")
    for response in (first, second):
        assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "immutable" in response.headers["Cache-Control"]
        assert "Set-Cookie" not in response.headers
    assert second.headers["Access-Control-Allow-Origin"] == listed
    assert "Access-Control-Allow-Credentials" not in second.headers
    for name in ("0" * 64, sha256.upper(), sha256[:63], "%00", "x"):
        assert client.get(f"/pictures/{name}").status_code == 404, name


def test_an_image_of_another_request_is_not_stored(ada, store):
    slug, path = draft_of_pets(store, store.researcher(EMAIL).key)
    (question,) = content_of(store, slug).questions
    before = content_of(store, slug)
    response = send(ada, path, page=path, do=f"save {question['options'][0]['key']}", alt="A cat")
    assert response.status_code == 422
    assert content_of(store, slug) == before
