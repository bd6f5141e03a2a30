"""Sheets (forms of one part of a draft), and the merging of two edits of the same sheet.

A field that only one researcher changed keeps that change; a field that both changed is a clash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from survey.questionnaire.drafts.conversion import option_ids
from survey.questionnaire.drafts.draft import (
    EMPTY_SURVEY,
    QUESTION_TEXTS,
    DraftContent,
    Question,
    Texts,
)
from survey.questionnaire.drafts.edits import rename_language
from survey.questionnaire.kinds import kind_of
from survey.questionnaire.texts import SURVEY_TEXTS

Values = Mapping[str, Any]
"""The values of a sheet's fields, by name."""


class Sheet(Protocol):
    """The part of a draft that one form edits, in the survey's own language."""

    def values(self, content: DraftContent) -> Values:
        """Return the values of its fields; raises NotFoundError if the part was removed."""

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        """Return the draft with these values; translations stay."""


@dataclass(frozen=True)
class Merge:
    """Two edits of one sheet, merged.

    `clashes` are the fields that both changed, with the other editor's value; `theirs` names the
    fields that only the other editor changed.
    """

    values: Values
    clashes: Values
    theirs: tuple[str, ...]


def merge(base: Values, mine: Values, theirs: Values) -> Merge:
    """Merge two edits of a sheet that both began from `base`; clashing fields keep `mine`.

    >>> base = {"a": 1, "b": 1, "c": 1}
    >>> result = merge(base, {"a": 2, "b": 1, "c": 2}, {"a": 1, "b": 3, "c": 3})
    >>> result.values, result.clashes, result.theirs
    ({'a': 2, 'b': 3, 'c': 2}, {'c': 3}, ('b',))
    """
    by_me = {name for name, value in mine.items() if value != base.get(name)}
    by_them = {name for name in mine if theirs.get(name) != base.get(name)}
    values = {name: value if name in by_me else theirs[name] for name, value in mine.items()}
    clashing = {name for name in by_me & by_them if mine[name] != theirs[name]}
    return Merge(
        values,
        {name: theirs[name] for name in mine if name in clashing},
        tuple(name for name in mine if name in by_them - by_me),
    )


@dataclass(frozen=True)
class QuestionSheet:
    """One question.

    `fixes_ids` stores the ids of the options. Until then they follow the labels, because half a
    word would become an id while a researcher is typing.
    """

    key: int
    fixes_ids: bool = False

    def values(self, content: DraftContent) -> Values:
        """Return texts as strings, and options as (key, id, label)."""
        question, language = content.question(self.key), content.own_language
        options = tuple(
            {**option, "label": option["label"].get(language, "")} for option in question["options"]
        )
        texts = {name: question[name].get(language, "") for name in QUESTION_TEXTS}
        values = {**question, **texts, "options": options}
        return {name: value for name, value in values.items() if name != "key"}

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        old = next((q for q in content.questions if q["key"] == self.key), {})
        texts = {
            name: _with_text(old.get(name, {}), content.own_language, values[name])
            for name in QUESTION_TEXTS
        }
        if values["type"] != old.get("type", values["type"]):
            # Another type has other mechanisms, so the standard privacy level applies again.
            values = {**values, **dict.fromkeys(("way", "value", "mechanism", "parameters"), "")}
        options, last_key = _merge_options(old, values["options"], content)
        question = {**old, **values, **texts, "options": options, "key": self.key}
        changed = replace(content, last_key=last_key).with_question(self.key, question)
        changed = with_ids(changed, self.key) if self.fixes_ids else changed
        return _update_conditions(changed, old, changed.question(self.key)) if old else changed


@dataclass(frozen=True)
class SurveySheet:
    """The texts and settings of the survey: every field of `EMPTY_SURVEY`."""

    def values(self, content: DraftContent) -> Values:
        texts = {name: content.survey[name].get(content.own_language, "") for name in SURVEY_TEXTS}
        return {**content.survey, **texts}

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        texts = {
            name: _with_text(content.survey[name], content.own_language, values[name])
            for name in SURVEY_TEXTS
        }
        survey = {name: values[name] for name in EMPTY_SURVEY}
        # The fields were typed in the old language, so that it is replaced after the texts.
        changed = replace(content, survey={**survey, **texts, "language": content.own_language})
        return _change_own_language(changed, str(values["language"]))


@dataclass(frozen=True)
class PlanSheet:
    """The plan: expected responses, dates and groups to invite, as typed."""

    def values(self, content: DraftContent) -> Values:
        return content.plan

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        return replace(content, plan=dict(values))


@dataclass(frozen=True)
class PageSheet:
    """The title of one page."""

    key: int

    def values(self, content: DraftContent) -> Values:
        return {"title": content.page(self.key).title.get(content.own_language, "")}

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        page = content.page(self.key)
        title = _with_text(page.title, content.own_language, values["title"])
        return content.with_page(replace(page, title=title))


@dataclass(frozen=True)
class LanguageSheet:
    """Every text of the survey in one of its other languages."""

    language: str

    def values(self, content: DraftContent) -> Values:
        """Return the translations under the names of `named_texts`."""
        return {name: texts.get(self.language, "") for name, texts in named_texts(content)}

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        names = (name for name, _ in named_texts(content))

        def translate(texts: Texts) -> Texts:
            return _with_text(texts, self.language, values.get(next(names), ""))

        return content.map_texts(translate)


def named_texts(content: DraftContent) -> Iterator[tuple[str, Texts]]:
    """Yield every text of a draft with a unique name, in the order of `DraftContent.map_texts`."""
    for name in SURVEY_TEXTS:
        yield f"survey-{name}", content.survey[name]
    for page in content.pages:
        yield f"page-{page.key}", page.title
        for question in page.questions:
            key = question["key"]
            for name in QUESTION_TEXTS:
                yield f"question-{key}-{name}", question[name]
            for option in question["options"]:
                yield f"question-{key}-option-{option['key']}", option["label"]


def with_ids(content: DraftContent, key: int) -> DraftContent:
    """Store the ids of a question's options, so that they no longer follow the labels."""
    question = content.question(key)
    has_options = "options" in kind_of(question).fields
    ids = option_ids(question, content.own_language) if has_options else {}
    options = tuple(
        {**option, "id": ids.get(option["key"], option["id"])} for option in question["options"]
    )
    changed: Question = {**question, "options": options}
    return content.with_question(key, changed)


def _merge_options(
    old: Question, rows: Sequence[Mapping[str, Any]], content: DraftContent
) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """Return the options with their translations, and the last key.

    A row has its option's key. Rows that a page added since it was opened have none; they belong to
    the option with the same label.
    """
    language, last_key = content.own_language, content.last_key
    unmatched = {option["key"]: option for option in old.get("options", ())}
    options = []
    row_keys = {row["key"] for row in rows}
    for row in rows:
        same_label = (
            key
            for key, option in unmatched.items()
            if key not in row_keys
            and row["label"]
            and option["label"].get(language) == row["label"]
        )
        key = row["key"] if row["key"] in unmatched else next(same_label, 0)
        before = unmatched.pop(key, None)
        if before is None:
            key = last_key = last_key + 1
        label = _with_text(before["label"] if before else {}, language, row["label"])
        options.append({"key": key, "id": row["id"], "label": label})
    return tuple(options), last_key


def _update_conditions(content: DraftContent, old: Question, new: Question) -> DraftContent:
    """Return the draft with conditions on a question updated to its new ids."""
    old_ids = {option["key"]: option["id"] for option in old["options"]}
    renamed = {
        old_ids[option["key"]]: option["id"]
        for option in new["options"]
        if old_ids.get(option["key"]) and option["id"]
    }

    def update(question: Question) -> Question:
        if not old["id"] or question["ask_question"] != old["id"]:
            return question
        options = tuple(renamed.get(name, name) for name in question["ask_options"])
        return {**question, "ask_question": new["id"], "ask_options": options}

    return content.map_pages(
        lambda page: replace(page, questions=tuple(map(update, page.questions)))
    )


def _change_own_language(content: DraftContent, language: str) -> DraftContent:
    """Return the draft with another own language.

    A language that the draft already has swaps its role; any other tag corrects the old one.
    """
    old = content.own_language
    if language == old:
        return content
    if language in content.languages:
        languages = tuple(old if other == language else other for other in content.languages)
        return replace(
            content, survey={**content.survey, "language": language}, languages=languages
        )
    renamed = rename_language(content, old, language)
    return replace(renamed, survey={**renamed.survey, "language": language})


def _with_text(texts: Texts, language: str, text: str) -> Texts:
    """Return the texts with that of one language replaced, or removed when it is empty."""
    remaining = {name: value for name, value in texts.items() if name != language}
    return {**remaining, language: text} if text else remaining
