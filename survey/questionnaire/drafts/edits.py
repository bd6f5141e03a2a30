"""What can be done to a draft's outline: each edit makes a new draft of an old one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from survey.errors import DesignError
from survey.questionnaire.drafts.conversion import option_ids
from survey.questionnaire.drafts.draft import (
    EMPTY_QUESTION,
    EMPTY_SURVEY,
    TEXTS_OF_A_QUESTION,
    DraftContent,
    DraftPage,
    Question,
    Texts,
    free,
)
from survey.questionnaire.kinds import kind_of
from survey.questionnaire.model import MAX_QUESTIONS
from survey.questionnaire.texts import SURVEY_TEXTS


def add_page(content: DraftContent) -> DraftContent:
    """One page more, at the end."""
    _check_room(len(content.pages), "pages")
    page = DraftPage(content.used + 1, {}, ())
    return replace(content, pages=(*content.pages, page), used=content.used + 1)


def remove_page(content: DraftContent, key: int) -> DraftContent:
    """Without a page; its questions go to the one before it, or after it."""
    place = content.pages.index(content.page(key))
    if len(content.pages) == 1:
        raise DesignError("a survey needs at least one page")
    left = [page for page in content.pages if page.key != key]
    heir = left[max(place - 1, 0)]
    gone = content.pages[place].questions
    questions = (*heir.questions, *gone) if place else (*gone, *heir.questions)
    return replace(content, pages=tuple(left)).with_page(replace(heir, questions=questions))


def move_page(content: DraftContent, key: int, by: int) -> DraftContent:
    """A page one place up (-1) or down (1); at an end it stays."""
    pages = list(content.pages)
    _swap(pages, pages.index(content.page(key)), by)
    return replace(content, pages=tuple(pages))


def add_question(content: DraftContent, page_key: int, kind: str) -> tuple[DraftContent, int]:
    """One question more at the end of a page, and its number."""
    _check_room(sum(1 for _ in content.questions), "questions")
    key = content.used + 1
    taken = {str(question["id"]) for question in content.questions}
    question = {**EMPTY_QUESTION, "key": key, "type": kind, "id": free("q1", taken)}
    page = content.page(page_key)
    added = content.with_page(replace(page, questions=(*page.questions, question)))
    return replace(added, used=key), key


def duplicate_question(content: DraftContent, key: int) -> tuple[DraftContent, int]:
    """The same question again behind itself, under an id of its own, and its number."""
    _check_room(sum(1 for _ in content.questions), "questions")
    original, new = content.question(key), content.used + 1
    taken = {str(question["id"]) for question in content.questions}
    copy: dict[str, Any] = {**original, "key": new, "id": free(str(original["id"]) or "q1", taken)}

    def with_copy(page: DraftPage) -> DraftPage:
        doubled = [(one, copy) if one["key"] == key else (one,) for one in page.questions]
        return replace(page, questions=tuple(one for pair in doubled for one in pair))

    return replace(content.each_page(with_copy), used=new), new


def remove_question(content: DraftContent, key: int) -> DraftContent:
    """Without a question."""
    content.question(key)
    return content.each_page(
        lambda page: replace(
            page, questions=tuple(one for one in page.questions if one["key"] != key)
        )
    )


def move_question(content: DraftContent, key: int, by: int) -> DraftContent:
    """A question one place up (-1) or down (1); from an end of its page onto the next page."""
    question = content.question(key)
    at = next(i for i, page in enumerate(content.pages) if question in page.questions)
    questions = list(content.pages[at].questions)
    place = questions.index(question)
    if 0 <= place + by < len(questions):
        _swap(questions, place, by)
        return content.with_page(replace(content.pages[at], questions=tuple(questions)))
    if not 0 <= at + by < len(content.pages):
        return content
    target = content.pages[at + by]
    moved = (question, *target.questions) if by > 0 else (*target.questions, question)
    return remove_question(content, key).with_page(replace(target, questions=moved))


def with_language(content: DraftContent, language: str) -> DraftContent:
    """One language more to translate into."""
    if language == content.own or language in content.languages:
        raise DesignError(f"{language} is already a language of the survey")
    return replace(content, languages=(*content.languages, language))


def without_language(content: DraftContent, language: str) -> DraftContent:
    """Without a language and all texts in it."""
    if language == content.own:
        raise DesignError(f"the survey is written in {language}; change that first")
    left = tuple(one for one in content.languages if one != language)
    return renamed_language(replace(content, languages=left), language, None)


def renamed_language(content: DraftContent, old: str, new: str | None) -> DraftContent:
    """All texts of a language under another tag, or nowhere."""

    def renamed(texts: Texts) -> Texts:
        return {
            name if name != old or new is None else new: text
            for name, text in texts.items()
            if name != old or new is not None
        }

    return content.each_text(renamed)


def _check_room(there: int, what: str) -> None:
    if there >= MAX_QUESTIONS:
        raise DesignError(f"a survey has at most {MAX_QUESTIONS} {what}")


def _swap(entries: list[Any], place: int, by: int) -> None:
    if 0 <= place + by < len(entries):
        entries[place], entries[place + by] = entries[place + by], entries[place]


Values = Mapping[str, Any]
"""What stands in the fields of a sheet, by their names."""


class Sheet(Protocol):
    """One form's part of a draft."""

    def read(self, content: DraftContent) -> Values:
        """The values of its fields; NotFoundError when its part was removed."""
        ...

    def write(self, content: DraftContent, values: Values) -> DraftContent:
        """The draft with these values in it."""
        ...


@dataclass(frozen=True)
class Merged:
    """Two edits of one sheet as one: `clashes` are fields that both changed, with their value."""

    values: Values
    clashes: Values
    theirs: tuple[str, ...]


def merged(base: Values, mine: Values, theirs: Values) -> Merged:
    """What becomes of a sheet that was `base` when both began.

    A field that only one changed has that value; one that both changed keeps mine, as a clash.

    >>> found = merged({"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 1, "c": 2}, {"a": 1, "b": 3, "c": 3})
    >>> found.values, found.clashes, found.theirs
    ({'a': 2, 'b': 3, 'c': 2}, {'c': 3}, ('b',))
    """
    changed = {name for name, value in mine.items() if value != base.get(name)}
    by_them = {name for name in mine if theirs.get(name) != base.get(name)}
    values = {name: value if name in changed else theirs[name] for name, value in mine.items()}
    both = {name for name in changed & by_them if mine[name] != theirs[name]}
    return Merged(
        values,
        {name: theirs[name] for name in mine if name in both},
        tuple(name for name in mine if name in by_them - changed),
    )


@dataclass(frozen=True)
class QuestionSheet:
    """One question in the survey's own language.

    `fixes_ids` writes out the ids of its options, which follow their labels until then: while
    somebody still types, half a word would become an id.
    """

    key: int
    fixes_ids: bool = False

    def read(self, content: DraftContent) -> Values:
        """Texts as text, options as (number, id, label)."""
        question, own = content.question(self.key), content.own
        options = tuple(
            {"key": one["key"], "id": one["id"], "label": one["label"].get(own, "")}
            for one in question["options"]
        )
        texts = {name: question[name].get(own, "") for name in TEXTS_OF_A_QUESTION}
        values = {**question, **texts, "options": options}
        return {name: value for name, value in values.items() if name != "key"}

    def write(self, content: DraftContent, values: Values) -> DraftContent:
        """Texts of other languages stay, those of an option with its number."""
        was = next((q for q in content.questions if q["key"] == self.key), {})
        texts = {
            name: _told(was.get(name, {}), content.own, values[name])
            for name in TEXTS_OF_A_QUESTION
        }
        if values["type"] != was.get("type", values["type"]):
            # Another type has other mechanisms: it begins with the usual privacy again.
            values = {**values, **dict.fromkeys(("way", "value", "mechanism", "parameters"), "")}
        options, used = _options(was, values["options"], content)
        question = {**was, **values, **texts, "options": options, "key": self.key}
        written = replace(content, used=used).with_question(self.key, question)
        written = with_ids(written, self.key) if self.fixes_ids else written
        return _following(written, was, written.question(self.key)) if was else written


@dataclass(frozen=True)
class SurveySheet:
    """The texts and settings of the whole survey, in its own language."""

    def read(self, content: DraftContent) -> Values:
        """Every field of `EMPTY_SURVEY`."""
        texts = {name: content.survey[name].get(content.own, "") for name in SURVEY_TEXTS}
        return {**content.survey, **texts}

    def write(self, content: DraftContent, values: Values) -> DraftContent:
        """Texts of other languages stay; a new own language takes over what is written."""
        texts = {
            name: _told(content.survey[name], content.own, values[name]) for name in SURVEY_TEXTS
        }
        survey = {name: values[name] for name in EMPTY_SURVEY}
        # What stood in the fields is of the language before; only then it may be another.
        written = replace(content, survey={**survey, **texts, "language": content.own})
        return _in_language(written, str(values["language"]))


@dataclass(frozen=True)
class PlanSheet:
    """How many reports are planned for, from when to when, and groups to invite."""

    def read(self, content: DraftContent) -> Values:
        """As typed."""
        return content.plan

    def write(self, content: DraftContent, values: Values) -> DraftContent:
        """As typed."""
        return replace(content, plan=dict(values))


@dataclass(frozen=True)
class PageSheet:
    """The title of one page."""

    key: int

    def read(self, content: DraftContent) -> Values:
        """One text."""
        return {"title": content.page(self.key).title.get(content.own, "")}

    def write(self, content: DraftContent, values: Values) -> DraftContent:
        """Titles in other languages stay."""
        page = content.page(self.key)
        title = _told(page.title, content.own, values["title"])
        return content.with_page(replace(page, title=title))


@dataclass(frozen=True)
class LanguageSheet:
    """Every text of the survey in one of its other languages."""

    language: str

    def read(self, content: DraftContent) -> Values:
        """By the names that `texts_of` gives."""
        return {name: texts.get(self.language, "") for name, texts in texts_of(content)}

    def write(self, content: DraftContent, values: Values) -> DraftContent:
        """What has no value is not translated."""
        names = (name for name, _ in texts_of(content))

        def changed(texts: Texts) -> Texts:
            return _told(texts, self.language, values.get(next(names), ""))

        return content.each_text(changed)


def texts_of(content: DraftContent) -> Iterator[tuple[str, Texts]]:
    """Every text of a draft with a name of its own, in the order of `DraftContent.each_text`."""
    for name in SURVEY_TEXTS:
        yield f"survey-{name}", content.survey[name]
    for page in content.pages:
        yield f"page-{page.key}", page.title
        for question in page.questions:
            key = question["key"]
            for name in TEXTS_OF_A_QUESTION:
                yield f"question-{key}-{name}", question[name]
            for option in question["options"]:
                yield f"question-{key}-option-{option['key']}", option["label"]


def with_ids(content: DraftContent, key: int) -> DraftContent:
    """The draft with the ids of a question's options written out: they no longer follow labels."""
    question = content.question(key)
    ids = option_ids(question, content.own) if "options" in kind_of(question).fields else {}
    options = tuple({**one, "id": ids.get(one["key"], one["id"])} for one in question["options"])
    changed: Question = {**question, "options": options}
    return content.with_question(key, changed)


def _options(
    was: Question, rows: Sequence[Mapping[str, Any]], content: DraftContent
) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """Options with their labels of other languages, and the last number given.

    A row has the option's number; a page that is still open has none for what it added since, and
    the option of the same label is meant.
    """
    own, used = content.own, content.used
    left = {one["key"]: one for one in was.get("options", ())}
    options = []
    named = {row["key"] for row in rows}
    for row in rows:
        alike = (
            key
            for key, one in left.items()
            if key not in named and row["label"] and one["label"].get(own) == row["label"]
        )
        key = row["key"] if row["key"] in left else next(alike, 0)
        before = left.pop(key, None)
        if before is None:
            key = used = used + 1
        label = _told(before["label"] if before else {}, own, row["label"])
        options.append({"key": key, "id": row["id"], "label": label})
    return tuple(options), used


def _following(content: DraftContent, was: Question, now: Question) -> DraftContent:
    """The draft with what depends on a question following its new ids."""
    before = {one["key"]: one["id"] for one in was["options"]}
    renamed = {
        before[one["key"]]: one["id"]
        for one in now["options"]
        if before.get(one["key"]) and one["id"]
    }

    def followed(question: Question) -> Question:
        if not was["id"] or question["ask_question"] != was["id"]:
            return question
        options = tuple(renamed.get(name, name) for name in question["ask_options"])
        return {**question, "ask_question": now["id"], "ask_options": options}

    return content.each_page(
        lambda page: replace(page, questions=tuple(map(followed, page.questions)))
    )


def _in_language(content: DraftContent, language: str) -> DraftContent:
    """The draft in another language of its own.

    One that it has already becomes the own one; another is what was meant from the beginning.
    """
    own = content.own
    if language == own:
        return content
    if language in content.languages:
        others = tuple(own if one == language else one for one in content.languages)
        return replace(content, survey={**content.survey, "language": language}, languages=others)
    renamed = renamed_language(content, own, language)
    return replace(renamed, survey={**renamed.survey, "language": language})


def _told(texts: Texts, language: str, text: str) -> Texts:
    """A table of texts with one of its languages said anew; nothing is no entry."""
    others = {name: each for name, each in texts.items() if name != language}
    return {**others, language: text} if text else others
