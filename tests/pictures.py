"""A survey with a picture, for tests that publish one."""

from __future__ import annotations

import hashlib
import io

from PIL import Image

from survey.questionnaire.canonical import freeze
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import load, parse
from survey.settings import Caps
from survey.store import Draft, PublishedSurvey, Store
from tests.conftest import EMAIL, TODAY

PETS = """
slug = "pets"
title = "Pets"
[[questions]]
id = "pet"
type = "single_choice"
text = {en = "Which pet?", es = "¿Qué mascota?"}
epsilon = 1
[[questions.options]]
id = "cat"
label = "Cat"
picture = "CAT"
picture_alt = {en = "A grey cat", es = "Un gato gris"}
[[questions.options]]
id = "none"
label = "None"
"""


def webp(color: str = "grey") -> bytes:
    """Return a small picture in its stored form."""
    file = io.BytesIO()
    Image.new("RGB", (64, 48), color).save(file, "WEBP")
    return file.getvalue()


def add_picture(store: Store, content: bytes) -> str:
    """Store a picture with a draft that uses it; return its hash."""
    return add_draft_with_picture(store, content)[0]


def add_draft_with_picture(store: Store, content: bytes) -> tuple[str, Draft]:
    """Store a picture with a draft whose only question uses it; return its hash and the draft."""
    sha256 = hashlib.sha256(content).hexdigest()
    draft = store.add_draft(DraftContent.new("Pets", "pets").to_json(), EMAIL, 1, {})
    text = draft_from(parse(PETS.replace("CAT", sha256).encode(), "pets.toml")).to_json()
    return sha256, store.save_draft(draft, text, EMAIL, 2, [(sha256, content)])


def publish_with_picture(store: Store) -> tuple[PublishedSurvey, str]:
    """Publish a survey with one picture; return it and the picture's hash."""
    sha256 = add_picture(store, webp())
    survey = load(PETS.replace("CAT", sha256).encode(), "pets.toml", Caps())
    return store.publish(freeze(survey, 1), TODAY), sha256
