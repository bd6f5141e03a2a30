"""What is wrong with a draft, field by field, and what its right questions give away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from survey.errors import DefinitionError
from survey.mechanism.accounting import log_rounded_up
from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.drafts.conversion import definition_of, options_written
from survey.questionnaire.drafts.draft import EMPTY_QUESTION, DraftContent
from survey.questionnaire.drafts.messages import in_form_words
from survey.questionnaire.kinds import BaseQuestion, Question
from survey.questionnaire.kinds.base import NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID
from survey.questionnaire.loading import check, with_default_texts
from survey.questionnaire.mistakes import Place
from survey.questionnaire.model import Survey, groups_of, total_ratio_of
from survey.questionnaire.texts import in_language
from survey.settings import Caps

_QUESTION: TypeAdapter[BaseQuestion] = TypeAdapter(Question)


@dataclass(frozen=True)
class Mistake:
    """What is wrong, and in which field of which sheet.

    `question` and `page` are their numbers in the draft, None for what is of the whole survey;
    `language` is the translation that is wrong, "" for the survey's own.
    """

    text: str
    field: str = ""
    question: int | None = None
    page: int | None = None
    language: str = ""


@dataclass(frozen=True)
class Examined:
    """A draft that was checked; `survey` is what it would publish, None while it is wrong.

    `questions` are those that are right by themselves, by their numbers.
    """

    survey: Survey | None
    mistakes: tuple[Mistake, ...]
    questions: Mapping[int, BaseQuestion]

    @property
    def ratio(self) -> Fraction:
        """e^epsilon of what one person sends, of the questions that are right so far."""
        if self.survey is not None:
            return self.survey.total_ratio
        ratios = {question.id: question.channel.ratio for question in self.questions.values()}
        groups = groups_of(self.questions.values())
        return total_ratio_of(groups, ratios, len(groups))

    @property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up."""
        return log_rounded_up(self.ratio)

    def of_question(self, key: int) -> list[Mistake]:
        """What is wrong with one question."""
        return [mistake for mistake in self.mistakes if mistake.question == key]


REMEMBERED = 16
"""Contents whose examination is remembered: who writes asks of the same one again and again."""


def examined(content: DraftContent, caps: Caps) -> Examined:
    """Check a draft as publishing would."""
    return _examined(content.to_json(), caps)


@lru_cache(maxsize=REMEMBERED)
def _examined(text: str, caps: Caps) -> Examined:
    content = DraftContent.from_json(text)
    definition = definition_of(content)
    keys = [[question["key"] for question in page.questions] for page in content.pages]
    flat = [key for page in keys for key in page]
    try:
        survey = check(definition, caps)
    except DefinitionError as error:
        found = _mistakes(error, content)
        return Examined(None, tuple(found), dict(_right(definition, content.own, flat, caps)))
    return Examined(survey, (), dict(zip(flat, survey.questions, strict=True)))


def _right(
    definition: Mapping[str, Any], own: str, keys: list[int], caps: Caps
) -> Iterator[tuple[int, BaseQuestion]]:
    """The questions that are right by themselves."""
    try:
        raw = with_default_texts(in_language(definition, own, own), own)
    except (TypeError, ValueError):  # a language that is none
        return
    questions = (question for page in raw["pages"] for question in page["questions"])
    for key, question in zip(keys, questions, strict=True):
        try:
            yield key, _QUESTION.validate_python(question, context=caps)
        except ValidationError:
            continue


def _mistakes(error: DefinitionError, content: DraftContent) -> Iterator[Mistake]:
    places = [*error.places, *[()] * (len(error.mistakes) - len(error.places))]
    for place, (_, text) in zip(places, error.mistakes, strict=True):
        # Which field is meant is told by the loader's words, so that these come first.
        found = _located(place, text, content)
        yield replace(found, text=in_form_words(found.text, found.field))


def _located(place: Place, text: str, content: DraftContent) -> Mistake:
    match place:
        case ("pages", int(i), "questions", int(j), *rest):
            return _in_question(rest, text, content, content.pages[i].questions[j])
        case ("pages", int(i), "questions"):
            return Mistake(NO_QUESTION, "title", page=content.pages[i].key)
        case ("pages", int(i), *rest):
            return Mistake(text, "title", page=content.pages[i].key, language=_tag(rest, content))
        case (str(name), *rest):
            return Mistake(text, name, language=_tag(rest, content))
        case _:
            return Mistake(text)


def _in_question(
    rest: list[Any], text: str, content: DraftContent, question: Mapping[str, Any]
) -> Mistake:
    field, key = _field(rest, text), question["key"]
    if field == "options" and len(rest) > 1 and isinstance(rest[1], int):
        option = options_written(question)[rest[1]]
        field = f"option-{option['key']}"
    return Mistake(text, field, question=key, language=_tag(rest, content))


NO_QUESTION = "this page has no questions; add one or remove the page"

FIELDS: Mapping[str, str] = {
    **dict.fromkeys(PRIVACY, "value"),
    **{name: f"{name}_label" for name in (OPT_OUT_ID, NOT_APPLICABLE_ID, NONE_ID)},
    "state": "value",
    "options": "options",
    "parameters": "parameters",
}
"""The field in which something is written, by its key or by the first word of a mistake."""


def _field(rest: list[Any], text: str) -> str:
    match rest:
        case ("ask_if", "options", *_):
            return "ask_options"
        case ("ask_if", *_):
            return "ask_question"
        case (str(name), *_) if name in FIELDS or name in EMPTY_QUESTION:
            return FIELDS.get(name, name)
    # A mistake of the whole question begins with what it is about.
    first = text.split(" ", 1)[0].split(".", 1)[0]
    return FIELDS.get(first, first if first in EMPTY_QUESTION else "")


def _tag(rest: list[Any] | tuple[Any, ...], content: DraftContent) -> str:
    """The language a mistake is in, which is the last step of its place."""
    return rest[-1] if rest and rest[-1] in content.languages else ""
