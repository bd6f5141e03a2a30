"""The interface's catalogues: nothing missing, nothing promised that cannot be kept."""

from __future__ import annotations

import json
import re
from itertools import chain

import pytest
from babel import Locale
from babel.messages.pofile import read_po

from survey import words
from tests.conftest import ROOT

SOURCE = ROOT / "client_js/src"
OTHERS = [language for language in words.LANGUAGES if language != words.SOURCE]
FORBIDDEN = {
    "en": r"\b(lies?|lying|noise|noisy|anonym\w*|fake\w*|encrypt\w*|honest\w*|more truthful\w*)\b",
    "es": r"\b(mentir\w*|mentiras?|ruido|an[oó]nim\w*|fals[oa]s?|cifrad\w*|m[aá]s sincer\w*)\b",
    "pt": r"\b(mentir\w*|mentiras?|ru[ií]do|an[oô]nim\w*|fals[oa]s?|criptogr\w*|mais sincer\w*)\b",
    "ar": r"(كذب|ضوضاء|مجهول|مزيف|مشفّ?ر|أكثر صدقًا)",
}
NAMED_BY_THE_SERVER = ("refusal.",)
"""Texts that are found by a name that comes from elsewhere."""
BUILT = (
    *(f"start.{name}" for name in ("consent", "ethics", "helpline", "contact")),
    *(f"waiting.{reason}" for reason in ("network", "busy", "many")),
)
"""Texts whose place is put together on the device."""


def placeholders(text: words.Text) -> set[str]:
    forms = [text] if isinstance(text, str) else text
    return set(chain.from_iterable(re.findall(r"\{(\w+)\}", form) for form in forms))


def told_apart() -> list[tuple[str, str]]:
    return [(language, key) for language in OTHERS for key in words.catalogue(words.SOURCE)]


@pytest.mark.parametrize("language", OTHERS)
def test_no_text_is_missing_in_any_language_and_none_is_left_over(language):
    assert words.catalogue(language).keys() == words.catalogue(words.SOURCE).keys()
    assert all(words.catalogue(language).values())
    for text in words.catalogue(language).values():
        assert isinstance(text, str) or all(text)


@pytest.mark.parametrize(("language", "key"), told_apart())
def test_the_placeholders_are_those_of_the_source(language, key):
    source, text = words.catalogue(words.SOURCE)[key], words.catalogue(language)[key]
    assert placeholders(text) == placeholders(source)
    assert isinstance(text, str) == isinstance(source, str)


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_every_plural_form_of_the_language_is_there(language):
    forms = {len(t) for t in words.catalogue(language).values() if not isinstance(t, str)}
    with (words.FOLDER / language / "LC_MESSAGES/respondent.po").open("rb") as file:
        assert forms == {read_po(file).num_plurals}
    # The client finds forms by the names that browsers have for them: two, or all six.
    categories = Locale.parse(language).plural_form.tags | {"other"}
    assert forms == {6} if len(categories) == 6 else forms == {2}


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_the_interface_never_says_what_it_cannot_promise(language):
    for key, text in words.catalogue(language).items():
        assert not re.search(FORBIDDEN[language], str(text), re.I), key


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_no_text_can_steer_the_page_it_stands_in(language):
    texts = json.loads(words.device_texts(language))
    assert b"<" not in words.device_texts(language)
    for text in chain.from_iterable([t] if isinstance(t, str) else t for t in texts):
        assert not re.search(r"[<>&\x00-\x1f\u202a-\u202e\u2066-\u2069]", text)


def test_the_client_lists_the_places_of_its_texts_in_the_order_in_which_it_gets_them():
    (listed,) = re.findall(
        r"const KEYS = [^\[]*\[(.*?)\]\)", (SOURCE / "keys.js").read_text("utf-8"), re.S
    )
    assert re.findall(r'"([\w.-]+)"', listed) == words.device_keys()


def test_the_client_uses_every_text_and_no_other():
    said = "".join(
        path.read_text("utf-8") for path in SOURCE.glob("*.js") if path.name != "keys.js"
    )
    known = set(words.device_keys())
    used = set(re.findall(r'"([a-z]+\.[A-Za-z0-9_-]+)"', said)) & known
    used |= {key for key in known if key.startswith(NAMED_BY_THE_SERVER)}
    used |= {f"cannot.{reason}" for reason in re.findall(r'"([a-z_]+)"', said)} & known
    used |= {"earlier", "language.direction", *BUILT}
    assert known == used


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_the_button_is_called_as_the_start_page_says(language):
    assert words.say(language, "review.send") in words.say(language, "start.forgotten")
