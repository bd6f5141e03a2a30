"""Texts for respondents are complete in every language, consistent, and promise nothing untrue."""

from __future__ import annotations

import json
import re
import shutil
from itertools import chain
from typing import get_args

import pytest
from babel import Locale
from babel.messages.pofile import read_po

from survey.questionnaire.privacy_loss import Strength
from survey.respondent_texts import (
    FIELDWORK,
    FOLDER,
    LANGUAGES,
    MACHINE_MADE,
    RESPONDENT,
    REVIEWER,
    SOURCE,
    Text,
    catalogue_file,
    clear_caches,
    device_keys,
    device_texts,
    forms,
    is_reviewed,
    main,
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
    "de": r"\b(lüg\w*|gelogen|rauschen|anonym\w*|gefälscht\w*|verschlüssel\w*|ehrlicher\w*)\b",
    "fr": r"\b(ment(ir|ez)|mensonge|bruit|anonym|faux\b|fausse|chiffr(ement|é)|plus honn)",
    "tr": r"\b(yalan\w*|gürültü\w*|anonim\w*|sahte\w*|şifreli|daha dürüst\w*)\b",
    "uk": r"\b(бреш\w*|брех\w*|шум\w*|анонім\w*|фальшив\w*|зашифр\w*|чесніш\w*)\b",
    "hi": r"(झूठ|शोर|गुमनाम|नक़ली|फ़र्ज़ी|एन्क्रिप्ट|ज़्यादा ईमानदार)",
    "zh-Hans": r"(谎|噪声|噪音|匿名|虚假|假的|加密|更诚实)",
    "ar": r"(كذب|ضوضاء|مجهول|مزيف|مشفّ?ر|أكثر صدقًا)",
}
FORMS = {1: (), 2: ("one",), 3: ("one", "few"), 6: ("zero", "one", "two", "few", "many")}
"""The categories of all plural forms but the last, by the number of forms, as in `texts.js`."""
KEYS_FROM_THE_SERVER = ("refusal.",)
"""Sections whose keys contain a name that the server sends."""
KEYS_BUILT_ON_THE_DEVICE = (
    *(f"start.{name}" for name in ("consent", "ethics", "helpline", "contact")),
    *(f"waiting.{reason}" for reason in ("network", "busy", "many")),
    *(f"label.{strength}" for strength in get_args(Strength)),
)


@pytest.fixture
def catalogues(tmp_path, monkeypatch):
    """Let the test change copies of the catalogues."""
    folder = tmp_path / "translations"
    shutil.copytree(FOLDER, folder)
    monkeypatch.setattr("survey.respondent_texts.FOLDER", folder)
    yield
    clear_caches()


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


@pytest.mark.usefixtures("catalogues")
def test_outdated_texts_are_reported_until_a_translator_has_accepted_them(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("0 outdated texts; languages: en reviewed")
    english, spanish = (catalogue_file(language, RESPONDENT) for language in ("en", "es"))
    english.write_text(english.read_text("utf-8").replace('"Start"', '"Begin"'), "utf-8")
    entry = re.compile(r'#\. .*\nmsgid "exit.button"\n.*\n')
    spanish.write_text(entry.sub("", spanish.read_text("utf-8")), "utf-8")
    assert main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    changed = "start.button: translated from a different English text than “Begin”"
    missing = "es/respondent: exit.button: missing"
    outdated = [f"{language}/respondent: {changed}" for language in TRANSLATIONS]
    assert sorted(lines[:-1]) == sorted([missing, *outdated])
    # An accepted text is not reported again; a missing one is.
    assert main(["--accept", "es"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("es/")] == [missing]


@pytest.mark.usefixtures("catalogues")
@pytest.mark.parametrize(
    ("entry", "untranslated"),
    [
        (r'msgid "start.more"\nmsgstr ".*"', 'msgid "start.more"\nmsgstr ""'),
        (r'(?s)(msgid "count.minutes".*?msgstr\[1\]) ".*?"', r'\1 ""'),
        (r'(#\. .*\n)msgid "start.button"', r'\1#, fuzzy\nmsgid "start.button"'),
    ],
)
def test_empty_and_fuzzy_texts_are_reported_as_missing(capsys, entry, untranslated):
    german = catalogue_file("de", RESPONDENT)
    text, n = re.subn(entry, untranslated, german.read_text("utf-8"), count=1)
    german.write_text(text, "utf-8")
    clear_caches()
    assert (n, main([])) == (1, 1)
    (line,) = capsys.readouterr().out.splitlines()[:-1]
    assert re.fullmatch(r"de/respondent: [a-z]+\.[a-z]+: missing", line)


@pytest.mark.usefixtures("catalogues")
def test_the_page_says_that_a_translation_is_machine_made_until_a_reviewer_is_named():
    place = device_keys().index(MACHINE_MADE)
    clear_caches()
    assert json.loads(device_texts("es"))[place] == say("es", MACHINE_MADE) != ""
    assert json.loads(device_texts(SOURCE))[place] == ""
    for catalogue, is_last in ((RESPONDENT, False), (FIELDWORK, True)):
        file = catalogue_file("es", catalogue)
        text = file.read_text("utf-8")
        file.write_text(text.replace(f"{REVIEWER}: \\n", f"{REVIEWER}: A. Person\\n"), "utf-8")
        clear_caches()
        assert is_reviewed("es") == is_last
    assert json.loads(device_texts("es"))[place] == ""


def test_every_language_has_all_of_its_plural_forms():
    for language in LANGUAGES:
        numbers = {len(text) for text in read_texts(language).values() if not isinstance(text, str)}
        with (FOLDER / language / "LC_MESSAGES/respondent.po").open("rb") as file:
            assert numbers == {read_po(file).num_plurals}, language
        # The client selects a form by the browser's plural category; the last form has all others.
        tags = Locale.parse(language, sep="-").plural_form.tags - {"other"}
        categories = FORMS[min(numbers)]
        assert tags - {"many"} == {*categories} - {"many"}, (language, tags)


def test_no_language_uses_a_word_that_promises_too_much():
    for language in LANGUAGES:
        for key, text in read_texts(language).items():
            assert not re.search(FORBIDDEN[language], str(text), re.I), (language, key)


def test_no_line_can_break_before_a_sign_that_belongs_to_the_word_before_it():
    """French puts a space before some signs, and several languages put one before "%"."""
    for language in TRANSLATIONS:
        french = "|« | [:;?!»]" if language == "fr" else ""
        for catalogue in (RESPONDENT, FIELDWORK):
            for key, text in read_texts(language, catalogue).items():
                assert not re.search(rf"[\d}}] %{french}", "".join(text)), (language, key)


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
        word = re.split(r"[.,!。，।]", say(language, "sent.heading"))[0]
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


def reading_grades(prefix: str) -> dict[str, float]:
    """Return the reading grades of the English texts whose keys start with a prefix.

    Flesch-Kincaid: .39 words per sentence + 11.8 syllables per word - 15.59.
    Gunning fog: .4 (words per sentence + 100 words of three syllables and more per word).
    """
    texts = [
        words(sentence)
        for key, text in read_texts(SOURCE).items()
        if key.startswith(prefix)
        for sentence in sentences(text)
        if len(words(sentence)) > 3
    ]
    counts = [syllables(word) for sentence in texts for word in sentence]
    per_sentence, per_word = len(counts) / len(texts), sum(counts) / len(counts)
    long_words = sum(count >= 3 for count in counts) / len(counts)
    return {
        "Flesch-Kincaid": 0.39 * per_sentence + 11.8 * per_word - 15.59,
        "Gunning fog": 0.4 * (per_sentence + 100 * long_words),
    }


def test_the_english_texts_can_be_read_at_the_age_of_12_by_two_formulas():
    """Pupils of grade 6 are 11 to 12 years old."""
    for prefix in ("", "start.", "dice.", "question.", "review.", "sent.", "label.", "cannot."):
        for formula, grade in reading_grades(prefix).items():
            assert grade <= 6, (prefix, formula, grade)


def test_a_text_for_adults_would_exceed_the_reading_age(monkeypatch):
    adult = "Participation necessitates comprehensive information about confidentiality."
    monkeypatch.setattr("tests.test_respondent_texts.read_texts", lambda _: {"start.a": adult})
    assert min(reading_grades("start.").values()) > 12
