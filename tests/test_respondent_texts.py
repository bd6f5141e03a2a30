"""Texts for respondents are complete in every language, consistent, and promise nothing untrue."""

from __future__ import annotations

import json
import re
from itertools import chain

from babel import Locale
from babel.messages.pofile import read_po

from survey.respondent_texts import (
    FOLDER,
    LANGUAGES,
    SOURCE,
    Text,
    device_keys,
    device_texts,
    read_texts,
    say,
)
from tests.conftest import ROOT

CLIENT = ROOT / "client_js/src"
TRANSLATIONS = [language for language in LANGUAGES if language != SOURCE]
FORBIDDEN = {
    "en": r"\b(lies?|lying|noise|noisy|anonym\w*|fake\w*|encrypt\w*|honest\w*|more truthful\w*)\b",
    "es": r"\b(mentir\w*|mentiras?|ruido|an[oó]nim\w*|fals[oa]s?|cifrad\w*|m[aá]s sincer\w*)\b",
    "pt": r"\b(mentir\w*|mentiras?|ru[ií]do|an[oô]nim\w*|fals[oa]s?|criptogr\w*|mais sincer\w*)\b",
    "ar": r"(كذب|ضوضاء|مجهول|مزيف|مشفّ?ر|أكثر صدقًا)",
}
KEYS_FROM_THE_SERVER = ("refusal.",)
"""Sections whose keys contain a name that the server sends."""
KEYS_BUILT_ON_THE_DEVICE = (
    *(f"start.{name}" for name in ("consent", "ethics", "helpline", "contact")),
    *(f"waiting.{reason}" for reason in ("network", "busy", "many")),
    *(f"label.{strength}" for strength in ("good", "moderate", "weak")),
)


def forms(text: Text) -> tuple[str, ...]:
    """Return a text's plural forms, or the text alone."""
    return (text,) if isinstance(text, str) else text


def placeholders(text: Text) -> set[str]:
    return set(chain.from_iterable(re.findall(r"\{(\w+)\}", form) for form in forms(text)))


def test_every_language_has_the_same_keys_and_no_empty_text():
    for language in TRANSLATIONS:
        assert read_texts(language).keys() == read_texts(SOURCE).keys(), language
        for key, text in read_texts(language).items():
            assert all(forms(text)), (language, key)


def test_every_translation_has_the_placeholders_of_its_source():
    for language in TRANSLATIONS:
        for key, source in read_texts(SOURCE).items():
            text = read_texts(language)[key]
            assert placeholders(text) == placeholders(source), (language, key)
            assert isinstance(text, str) == isinstance(source, str), (language, key)


def test_every_language_has_all_of_its_plural_forms():
    for language in LANGUAGES:
        numbers = {len(text) for text in read_texts(language).values() if not isinstance(text, str)}
        with (FOLDER / language / "LC_MESSAGES/respondent.po").open("rb") as file:
            assert numbers == {read_po(file).num_plurals}, language
        # The client selects a form by the browser's plural category: two categories, or all six.
        categories = Locale.parse(language).plural_form.tags | {"other"}
        assert numbers == ({6} if len(categories) == 6 else {2}), language


def test_no_language_uses_a_word_that_promises_too_much():
    for language in LANGUAGES:
        for key, text in read_texts(language).items():
            assert not re.search(FORBIDDEN[language], str(text), re.I), (language, key)


def test_no_text_can_end_the_script_element_that_contains_it():
    for language in LANGUAGES:
        assert b"<" not in device_texts(language), language
        for text in chain.from_iterable(map(forms, json.loads(device_texts(language)))):
            assert not re.search(r"[<>&\x00-\x1f\u202a-\u202e\u2066-\u2069]", text), text


def test_the_client_lists_the_keys_in_the_order_in_which_it_gets_the_texts():
    source = (CLIENT / "texts.js").read_text("utf-8")
    (listing,) = re.findall(r"const KEYS = [^\[]*\[(.*?)\]\)", source, re.S)
    assert re.findall(r'"([\w.-]+)"', listing) == device_keys()


def test_the_client_uses_every_text_and_no_unknown_one():
    sources = "".join(path.read_text("utf-8") for path in CLIENT.glob("*.js"))
    sources = re.sub(r"const KEYS = [^\[]*\[.*?\]\)", "", sources, flags=re.S)
    keys = set(device_keys())
    used_keys = set(re.findall(r'"([a-z]+\.[A-Za-z0-9_-]+)"', sources)) & keys
    used_keys |= {key for key in keys if key.startswith(KEYS_FROM_THE_SERVER)}
    used_keys |= {f"cannot.{reason}" for reason in re.findall(r'"([a-z_]+)"', sources)} & keys
    used_keys |= {"earlier", "language.direction", *KEYS_BUILT_ON_THE_DEVICE}
    assert keys == used_keys


def test_the_review_names_the_send_button_as_it_is_labelled():
    for language in LANGUAGES:
        assert say(language, "review.send") in say(language, "review.intro"), language


def test_notices_name_the_first_word_of_the_page_after_sending():
    for language in LANGUAGES:
        word = re.split(r"[.,!]", say(language, "sent.heading"))[0]
        for key in ("start.keepsNothing", "waiting.keepOpen", "waiting.keepOpenKiosk"):
            assert word in say(language, key), (language, key)


def sentences(text: Text) -> list[str]:
    """Return the sentences of a text, with a word in place of each placeholder."""
    whole = " ".join(re.sub(r"\{\w+\}", "ten", form) for form in forms(text))
    return re.split(r"(?<=[.!?:])\s+", whole)


def words(sentence: str) -> list[str]:
    return re.findall(r"[A-Za-z0-9’'%-]+", sentence)


def syllables(word: str) -> int:
    """Estimate the syllables of an English word: its groups of vowels, without a silent "e"."""
    groups = len(re.findall(r"[aeiouy]+", word.lower()))
    return max(1, groups - (word.endswith("e") and not word.endswith("le")))


def test_no_english_sentence_has_more_than_20_words():
    for key, text in read_texts(SOURCE).items():
        for sentence in sentences(text):
            assert len(words(sentence)) <= 20, (key, sentence)


def test_the_english_texts_can_be_read_at_the_age_of_12():
    """The Flesch-Kincaid grade is .39 words per sentence + 11.8 syllables per word - 15.59."""
    texts = [
        words(sentence)
        for text in read_texts(SOURCE).values()
        for sentence in sentences(text)
        if len(words(sentence)) > 3
    ]
    n = sum(map(len, texts))
    n_syllables = sum(syllables(word) for sentence in texts for word in sentence)
    assert 0.39 * n / len(texts) + 11.8 * n_syllables / n - 15.59 <= 6
