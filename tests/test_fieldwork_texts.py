"""Field mode's texts are complete in every language and as simple as the respondents' page."""

from __future__ import annotations

import re
from itertools import chain

from survey.respondent_texts import (
    FIELDWORK,
    LANGUAGES,
    SOURCE,
    device_keys,
    fieldwork_keys,
    read_texts,
)
from tests.test_respondent_texts import (
    CLIENT,
    FORBIDDEN,
    forms,
    placeholders,
    sentences,
    syllables,
    words,
)

TEXTS = {language: read_texts(language, FIELDWORK) for language in LANGUAGES}


def test_every_language_has_the_same_texts_with_the_same_placeholders_and_all_plural_forms():
    for language, texts in TEXTS.items():
        assert texts.keys() == TEXTS[SOURCE].keys(), language
        n_forms = len(read_texts(language)["count.days"])
        for key, source in TEXTS[SOURCE].items():
            text = texts[key]
            assert all(forms(text)), (language, key)
            assert placeholders(text) == placeholders(source), (language, key)
            assert len(forms(text)) == (1 if isinstance(source, str) else n_forms), (language, key)


def test_no_text_promises_too_much_or_contains_markup():
    for language, texts in TEXTS.items():
        for key, text in texts.items():
            assert not re.search(FORBIDDEN[language], str(text), re.I), (language, key)
            for form in forms(text):
                assert not re.search(r"[<>&\x00-\x1f\u202a-\u202e\u2066-\u2069]", form), key


def test_the_client_lists_the_keys_in_the_order_of_its_texts_and_uses_each():
    source = (CLIENT / "fieldwork-texts.js").read_text("utf-8")
    (listing,) = re.findall(r"const FIELD_KEYS = [^\[]*\[(.*?)\]\)", source, re.S)
    assert re.findall(r'"([\w.]+)"', listing) == fieldwork_keys()
    rest = source.replace(listing, "") + "".join(
        (CLIENT / name).read_text("utf-8") for name in ("fieldwork.js", "fieldwork-view.js")
    )
    outcomes = ("uploaded", "offline", "busy", "noRoom", "late", "newer", "refused")
    used = {*re.findall(r'"(fieldwork\.\w+)"', rest), *(f"fieldwork.{name}" for name in outcomes)}
    assert used == set(fieldwork_keys())
    (replaced,) = re.findall(r"const REPLACED = [^{]*\{[^{]*\{(.*?)\}\)", source, re.S)
    assert {*re.findall(r'"(\w+\.\w+)":', replaced)} <= {*device_keys()}


def test_the_english_texts_are_short_and_can_be_read_at_the_age_of_12():
    found = [
        (key, words(sentence))
        for key, text in TEXTS[SOURCE].items()
        for sentence in sentences(text)
    ]
    assert [key for key, sentence in found if len(sentence) > 20] == []
    long = [sentence for _, sentence in found if len(sentence) > 3]
    n, n_syllables = len(list(chain(*long))), sum(map(syllables, chain(*long)))
    assert 0.39 * n / len(long) + 11.8 * n_syllables / n - 15.59 <= 6
