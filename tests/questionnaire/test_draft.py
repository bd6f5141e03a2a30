"""Drafts publish as their definitions and keep dependent questions together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from survey.demo import definition as demo
from survey.errors import DefinitionError, DesignError, NotFoundError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.conversion import (
    definition_from,
    draft_from,
    option_ids,
    question_source,
)
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.kinds import KINDS
from survey.questionnaire.kinds.base import USUAL_KEYS
from survey.questionnaire.loading import load, parse, source_of
from survey.questionnaire.validation import check
from survey.respondent_texts import LANGUAGES, say
from survey.settings import Caps
from tests.cases import each_case
from tests.questionnaire.test_loading import SOURCES


def published(content: DraftContent) -> bytes:
    return freeze(check(definition_from(content), Caps()), 1).canonical


def outline(content: DraftContent) -> list[list[str]]:
    return [[str(question["id"]) for question in page.questions] for page in content.pages]


@pytest.fixture
def small() -> DraftContent:
    return draft_from(parse(SOURCES["small"].encode(), "s.toml"))


@each_case("name", SOURCES)
def test_a_draft_of_a_definition_publishes_as_the_same_definition(name):
    source = SOURCES[name].encode()
    frozen = freeze(load(source, "x.toml", Caps()), 1)
    assert published(draft_from(parse(source, "x.toml"))) == frozen.canonical
    assert published(draft_from(source_of(frozen))) == frozen.canonical


@each_case("name", SOURCES)
def test_a_stored_draft_loads_unchanged(name):
    content = draft_from(parse(SOURCES[name].encode(), "x.toml"))
    assert DraftContent.from_json(content.to_json()) == content


def test_the_demo_survey_converts_to_a_draft_and_back():
    assert published(draft_from(source_of(demo()))) == demo().canonical


def test_questions_that_belong_together_keep_their_declaration_when_one_is_renamed_or_removed():
    content = draft_from(parse(SOURCES["joint"].encode(), "x.toml"))
    before = content.survey["together"]
    first, second = before[0]["questions"][:2]
    key = next(question["key"] for question in content.questions if question["id"] == first)
    sheet = edits.QuestionSheet(key)
    renamed = sheet.apply(content, {**sheet.values(content), "id": "renamed"})
    assert renamed.survey["together"][0]["questions"][:2] == ["renamed", second]
    numbers = [check_draft(draft, Caps()).asked.n_groups for draft in (renamed, content)]
    assert numbers[0] == numbers[1]
    removed = edits.remove_question(renamed, key)
    ids = [id_ for declared in removed.survey["together"] for id_ in declared["questions"]]
    assert "renamed" not in ids
    assert all(len(declared["questions"]) > 1 for declared in removed.survey["together"])


@each_case("kind", KINDS)
def test_a_new_question_has_the_standard_odds_factor_of_3(kind):
    content, key = edits.add_question(DraftContent.new("T", "t"), 1, kind)
    question = {
        **content.question(key),
        "text": {"en": "How?"},
        "options": tuple({"key": n, "id": "", "label": {"en": f"Label {n}"}} for n in range(4)),
        **({"low": "0", "high": "10"} if kind == "number" else {}),
        **({"low": "2020-01-01", "high": "2020-01-31"} if kind == "date" else {}),
    }
    survey = check(definition_from(content.with_question(key, question)), Caps())
    (only,) = survey.questions
    assert 2.98 < only.channel.ratio <= 3


def test_a_yes_no_question_starts_with_a_truth_probability_of_three_fifths():
    content, key = edits.add_question(DraftContent.new("T", "t"), 1, "yes_no")
    assert question_source(content.question(key), content)["truth_probability"] == "3/5"


@pytest.fixture
def with_usual_labels() -> DraftContent:
    """A draft with each of the usual labels, the last one only because of a condition."""
    content, first = edits.add_question(DraftContent.new("T", "t"), 1, "yes_no")
    content = edits.add_page(content)
    content, second = edits.add_question(content, content.pages[1].key, "multiple_choice")
    labels = ({"key": n, "id": "", "label": {"en": f"Label {n}"}} for n in range(2))
    changes = {
        first: {"id": "first"},
        second: {"ask_question": "first", "ask_options": ("yes",), "options": tuple(labels)},
    }
    for key, change in changes.items():
        question = {**content.question(key), "text": {"en": "How?"}, **change}
        content = content.with_question(key, question)
    survey = {**content.survey, "allow_skip_logic": True}
    survey["title"] = {language: f"Title {language}" for language in ("nl", *LANGUAGES)}
    return replace(content, survey=survey)


def labels_in(content: DraftContent, language: str) -> list[str]:
    """Return all labels of the published options, as respondents see them in a language."""
    survey = check(definition_from(content), Caps())
    shown = survey if language == survey.language else survey.translations[language]
    return [option.label for question in shown.questions for option in question.all_options]


def usual(language: str, *names: str) -> list[str]:
    return [say(language, USUAL_KEYS[name]) for name in names]


YES_OR_NO = ("yes", "no", "prefer_not_to_say")
AUTOMATIC = ("none_of_these", "does_not_apply", "prefer_not_to_say")


@each_case("language", LANGUAGES[1:])
def test_adding_a_language_of_the_interface_adds_its_usual_labels(language, with_usual_labels):
    content = edits.with_language(with_usual_labels, language)
    expected = [*usual(language, *YES_OR_NO), "Label 0", "Label 1", *usual(language, *AUTOMATIC)]
    assert labels_in(content, language) == expected


@each_case("language", LANGUAGES[1:])
def test_a_draft_written_in_a_language_has_its_usual_labels(language, with_usual_labels):
    content = edits.rename_language(with_usual_labels, "en", language)
    content = replace(content, survey={**content.survey, "language": language})
    assert labels_in(content, language)[:3] == usual(language, *YES_OR_NO)


def test_a_reworded_usual_label_serves_all_questions_and_later_versions(with_usual_labels):
    content = edits.with_language(edits.with_language(with_usual_labels, "de"), "nl")
    for language, label in (("de", "Keine Angabe"), ("nl", "Zeg ik niet")):
        sheet = edits.LanguageSheet(language)
        reworded = {**sheet.values(content), "usual-prefer_not_to_say": label}
        content = sheet.apply(content, reworded)
        labels = labels_in(content, language)
        assert labels[2] == labels[-1] == label
    again = draft_from(source_of(freeze(check(definition_from(content), Caps()), 1)))
    assert again.survey["labels"]["prefer_not_to_say"] == {
        "de": "Keine Angabe",
        "nl": "Zeg ik niet",
    }
    assert all(not question["prefer_not_to_say_label"] for question in again.questions)
    assert published(again) == published(content)


def test_a_language_without_usual_labels_falls_back_to_those_of_the_survey(with_usual_labels):
    content = edits.with_language(edits.with_language(with_usual_labels, "de"), "nl")
    assert labels_in(content, "nl")[:3] == usual("en", *YES_OR_NO)


def test_usual_labels_alone_do_not_make_a_language_one_of_the_survey(with_usual_labels):
    survey = {**with_usual_labels.survey, "title": {"en": "T"}}
    content = edits.with_language(replace(with_usual_labels, survey=survey), "de")
    sheet = edits.LanguageSheet("de")
    content = sheet.apply(content, sheet.values(content))
    assert not check(definition_from(content), Caps()).translations
    assert definition_from(content) == definition_from(replace(content, languages=()))


def test_equal_translations_of_usual_labels_are_a_mistake(with_usual_labels):
    content = edits.with_language(with_usual_labels, "de")
    sheet = edits.LanguageSheet("de")
    content = sheet.apply(content, {**sheet.values(content), "usual-no": "Ja"})
    (mistake,) = check_draft(content, Caps()).mistakes
    assert mistake.language == "de"
    assert mistake.text == '"Ja" is already the label of another option'


def test_an_options_id_comes_from_its_label_by_default():
    labels = ("Sí, a veces", "Sí, a veces!", "никогда", "", "5 times")
    options = [
        {"key": n, "id": "often" if n == 3 else "", "label": {"en": label}}
        for n, label in enumerate(labels)
    ]
    assert option_ids({"options": options}, "en") == {
        0: "si_a_veces",
        1: "si_a_veces_2",
        2: "option_3",
        3: "often",
        4: "o5_times",
    }


def test_a_question_moves_within_its_page_and_to_the_next_page(small):
    content, new = edits.add_question(small, small.pages[0].key, "yes_no")
    assert outline(content) == [["fell_asleep", "q1"], ["pressure"]]
    content = edits.move_question(content, new, -1)
    assert outline(content) == [["q1", "fell_asleep"], ["pressure"]]
    content = edits.move_question(content, new, -1)
    assert outline(content) == [["q1", "fell_asleep"], ["pressure"]]
    content = edits.move_question(edits.move_question(content, new, 1), new, 1)
    assert outline(content) == [["fell_asleep"], ["q1", "pressure"]]
    content = edits.move_question(content, new, -1)
    assert outline(content) == [["fell_asleep", "q1"], ["pressure"]]


def test_a_copy_follows_its_original_with_a_new_id(small):
    key = small.pages[0].questions[0]["key"]
    content, new = edits.duplicate_question(small, key)
    assert outline(content) == [["fell_asleep", "fell_asleep_2"], ["pressure"]]
    assert content.question(new)["text"] == small.question(key)["text"]
    content, _ = edits.duplicate_question(content, key)
    assert outline(content)[0] == ["fell_asleep", "fell_asleep_3", "fell_asleep_2"]


def test_numbers_of_removed_elements_are_not_reused(small):
    key = small.pages[0].questions[0]["key"]
    content = edits.remove_question(small, key)
    with pytest.raises(NotFoundError):
        content.question(key)
    content, new = edits.add_question(content, content.pages[0].key, "yes_no")
    assert new > small.last_key


def test_the_questions_of_a_removed_page_stay(small):
    first, second = (page.key for page in small.pages)
    assert outline(edits.remove_page(small, second)) == [["fell_asleep", "pressure"]]
    assert outline(edits.remove_page(small, first)) == [["fell_asleep", "pressure"]]
    with pytest.raises(DesignError, match="at least one page"):
        edits.remove_page(edits.remove_page(small, first), second)


def test_pages_change_places_with_their_questions(small):
    swapped = edits.move_page(small, small.pages[0].key, 1)
    assert outline(swapped) == [["pressure"], ["fell_asleep"]]
    assert edits.move_page(swapped, swapped.pages[0].key, -1) == swapped


def test_saving_a_question_that_another_editor_removed_restores_it_at_the_end(small):
    question = small.pages[0].questions[0]
    content = edits.remove_question(small, question["key"])
    back = content.with_question(question["key"], question)
    assert outline(back) == [[], ["pressure", "fell_asleep"]]


def test_removing_a_language_removes_its_texts_and_no_other_keys(small):
    # "id" is the language tag of Indonesian and also a key of every question.
    content = edits.with_language(small, "id")
    question = content.pages[0].questions[0]
    changed = {**question, "text": {**question["text"], "id": "Apakah?"}}
    content = content.with_question(question["key"], changed)
    assert definition_from(content)["pages"][0]["questions"][0]["text"]["id"] == "Apakah?"
    assert edits.without_language(content, "id") == small
    with pytest.raises(DesignError, match="already"):
        edits.with_language(content, "id")


def test_the_mistakes_of_a_draft_have_their_places(small):
    content, _ = edits.add_question(small, small.pages[1].key, "single_choice")
    with pytest.raises(DefinitionError) as caught:
        check(definition_from(content), Caps())
    assert ("pages", 1, "questions", 1, "text") in caught.value.places
    assert len(caught.value.places) == len(caught.value.mistakes)
