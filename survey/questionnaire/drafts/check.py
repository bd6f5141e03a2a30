"""Check a draft: what is wrong with it, field by field, and the privacy loss of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from survey.errors import DefinitionError
from survey.mechanism.composition import log_rounded_up, total_ratio
from survey.questionnaire.definition import Survey, drawn_together, groups_of, written_questions
from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.drafts.conversion import definition_from, nonempty_options
from survey.questionnaire.drafts.draft import (
    AUTOMATIC,
    EMPTY_PLAN,
    EMPTY_QUESTION,
    EMPTY_SURVEY,
    DraftContent,
)
from survey.questionnaire.drafts.form_messages import form_message
from survey.questionnaire.drafts.preview import only_question
from survey.questionnaire.error_messages import Place
from survey.questionnaire.kinds import BaseQuestion, Question
from survey.questionnaire.kinds.base import NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID
from survey.questionnaire.privacy_loss import (
    WEAK_QUESTION_ABOVE,
    Questions,
    Strength,
    is_weak_report,
    strength,
)
from survey.questionnaire.similar_texts import question_texts
from survey.questionnaire.texts import in_language
from survey.questionnaire.validation import check, with_default_texts
from survey.settings import Caps

_QUESTION: TypeAdapter[BaseQuestion] = TypeAdapter(Question)


@dataclass(frozen=True)
class Mistake:
    """A mistake, and the form field that has to change.

    `question` and `page` are keys in the draft, None for a mistake of the whole survey; `language`
    names a translation, "" means the survey's own language. `nearest` holds the nearest valid
    values by form field, if there are any.
    """

    text: str
    field: str = ""
    question: int | None = None
    page: int | None = None
    language: str = ""
    nearest: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class DraftCheck:
    """The result of checking a draft.

    `survey` is what it would publish, None while it has mistakes. `questions` are those without
    mistakes of their own, by key; for a matrix, it has the first row. `draws` is the number of
    questions that each respondent is asked, as typed or chosen automatically; None for all. `caps`
    are those of the check. `together` lists the ids of questions that are drawn together. `rows`
    has the other rows of each matrix, by the key of the matrix.
    """

    survey: Survey | None
    mistakes: tuple[Mistake, ...]
    questions: Mapping[int, BaseQuestion]
    caps: Caps
    draws: int | None = None
    together: tuple[tuple[str, ...], ...] = ()
    rows: Mapping[int, tuple[BaseQuestion, ...]] = field(default_factory=dict)

    @cached_property
    def published(self) -> dict[str, tuple[int, BaseQuestion]]:
        """The published questions without mistakes, including all rows, by id, with their keys."""
        return {
            published.id: (key, published)
            for key, question in self.questions.items()
            for published in (question, *self.rows.get(key, ()))
        }

    @property
    def _published(self) -> list[BaseQuestion]:
        return [question for _, question in self.published.values()]

    @cached_property
    def asked(self) -> Questions:
        """The questions without mistakes, and how many of them each respondent is asked."""
        everything = _all_asked(self._published, self.together)
        if self.survey is not None:
            everything = replace(everything, texts=question_texts(self.survey))
        is_partial = self.draws is not None and 1 <= self.draws < everything.n_groups
        return replace(everything, drawn=self.draws) if is_partial and self.draws else everything

    @cached_property
    def automatic_draw(self) -> int | None:
        """The number of questions that "Automatic" asks each respondent; None if it asks all.

        This is the largest number that causes no warning, or 1 if there is none.
        """
        everything = _all_asked(self._published, self.together)
        draw = everything.proposed_draw(self.caps)
        return None if draw is None or everything.n_groups < 2 else max(draw, 1)

    @property
    def largest_safe_draw(self) -> int:
        """The largest number of questions per respondent that causes no warning; 0 if all do."""
        everything = _all_asked(self._published, self.together)
        draw = everything.proposed_draw(self.caps)
        return everything.n_groups if draw is None else draw

    @property
    def proposed_draw(self) -> int | None:
        """A better number of questions than the present one; None or 0 if there is none."""
        return self.asked.proposed_draw(self.caps)

    @property
    def ratio(self) -> Fraction:
        """e^epsilon of what one respondent sends about the questions without mistakes."""
        return self.asked.ratio

    @property
    def is_weak(self) -> bool:
        """Whether researchers are warned about a whole report."""
        return is_weak_report(self.ratio, self.caps)

    def ratio_of(self, key: int) -> Fraction:
        """e^epsilon of all reports that depend on a question, or on the rows of a matrix."""
        questions = (self.questions[key], *self.rows.get(key, ()))
        return self.asked.ratio_about(*(question.id for question in questions))

    def own_epsilon(self, key: int) -> float:
        """The epsilon of a question's own report, or of all rows of a matrix together."""
        questions = (self.questions[key], *self.rows.get(key, ()))
        return log_rounded_up(total_ratio(question.channel.ratio for question in questions))

    @property
    def weak_keys(self) -> tuple[int, ...]:
        """The keys of questions that are weak alone; the standard level would strengthen them."""
        return tuple(
            key
            for key, question in self.questions.items()
            if question.channel.ratio ** (1 + len(self.rows.get(key, ()))) > WEAK_QUESTION_ABOVE
        )

    def strength_of(self, key: int) -> Strength:
        """Return a word for the protection of a question with those linked to it, by its key."""
        return strength(self.ratio_of(key))

    def is_linked(self, name: str) -> bool:
        """Whether skip logic links other questions to a question, by its id."""
        return any(name in group and len(group) > 1 for group in groups_of(self.asked.questions))

    @property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up."""
        return log_rounded_up(self.ratio)

    @property
    def epsilon_shares(self) -> dict[int, float]:
        """The share of each question without mistakes in the sum of their epsilons, by key."""
        epsilons = dict.fromkeys(self.questions, 0.0)
        for key, question in self.published.values():
            epsilons[key] += question.channel.epsilon
        total = sum(epsilons.values())
        return {key: epsilon / total for key, epsilon in epsilons.items() if total}

    def of_question(self, key: int) -> list[Mistake]:
        """Return the mistakes of one question."""
        return [mistake for mistake in self.mistakes if mistake.question == key]


CACHE_SIZE = 16
"""Checks that are cached: while a researcher writes, the same draft is checked repeatedly."""


def check_draft(content: DraftContent, caps: Caps) -> DraftCheck:
    """Check a draft as publishing does."""
    return _check_text(content.to_json(), caps)


@lru_cache(maxsize=CACHE_SIZE)
def _check_text(text: str, caps: Caps) -> DraftCheck:
    content = DraftContent.from_json(text)
    definition = definition_from(content)
    keys = [[question["key"] for question in page.questions] for page in content.pages]
    flat = [key for page in keys for key in page]
    together = tuple(tuple(declared["questions"]) for declared in content.survey["together"])
    if content.survey["questions_per_person"] == AUTOMATIC:
        valid = dict(_valid_questions(definition, content.own_language, flat, caps))
        questions, rows = _split_rows(valid)
        partial = DraftCheck(None, (), questions, caps, None, together, rows)
        if draw := partial.automatic_draw:
            definition["questions_per_person"] = draw
    try:
        survey = check(definition, caps)
    except DefinitionError as error:
        valid = dict(_valid_questions(definition, content.own_language, flat, caps))
        draws = definition.get("questions_per_person")
        draws = draws if isinstance(draws, int) else None
        mistakes = tuple(_mistakes(error, content))
        questions, rows = _split_rows(valid)
        return DraftCheck(None, mistakes, questions, caps, draws, together, rows)
    written = (place for page in survey.pages for place in written_questions(page.questions))
    draws = survey.questions_per_person
    questions, rows = _split_rows(dict(zip(flat, written, strict=True)))
    return DraftCheck(survey, (), questions, caps, draws, together, rows)


def _split_rows(
    written: Mapping[int, Sequence[BaseQuestion]],
) -> tuple[dict[int, BaseQuestion], dict[int, tuple[BaseQuestion, ...]]]:
    """Return the first published question of each written one, and the other rows of matrices."""
    first = {key: questions[0] for key, questions in written.items()}
    others = {key: tuple(questions[1:]) for key, questions in written.items() if questions[1:]}
    return first, others


def _all_asked(questions: Sequence[BaseQuestion], together: Sequence[Sequence[str]]) -> Questions:
    """Return the questions of a survey that asks each respondent all of them."""
    lists = drawn_together(questions, together)
    return Questions(tuple(questions), len(groups_of(questions, lists)), together=lists)


def _valid_questions(
    definition: Mapping[str, Any], language: str, keys: list[int], caps: Caps
) -> Iterator[tuple[int, tuple[BaseQuestion, ...]]]:
    """Yield the published questions of each written question without mistakes, by key."""
    try:
        raw = with_default_texts(in_language(definition, language, language), language)
    except (TypeError, ValueError):  # an invalid language
        return
    questions = (question for page in raw["pages"] for question in page["questions"])
    for key, question in zip(keys, questions, strict=True):
        try:
            yield key, _QUESTION.validate_python(question, context=caps).published
        except ValidationError:
            continue


def _mistakes(error: DefinitionError, content: DraftContent) -> Iterator[Mistake]:
    places = [*error.places, *[()] * (len(error.mistakes) - len(error.places))]
    for place, (_, text) in zip(places, error.mistakes, strict=True):
        # The loader's words decide which field is meant, so they are translated afterwards.
        mistake = _locate(place, text, content)
        yield replace(
            mistake,
            text=form_message(mistake.text, mistake.field),
            nearest=nearest_values(mistake.text),
        )


GRID_FIELDS = ("low", "high", "step")


def nearest_values(text: str) -> tuple[tuple[str, str], ...]:
    """Return the form fields and values that a loader's message suggests; empty if it has none.

    >>> nearest_values("high = 9 is wrong; the nearest allowed value is step = 2 with high = 8")
    (('step', '2'), ('high', '8'))
    >>> nearest_values("epsilon = 99 is too weak; the nearest allowed value is epsilon = 4.6")
    (('value', '4.6'),)
    """
    _, _, suggestion = text.partition("; the nearest allowed value is ")
    pairs = re.findall(r"(\w+) = (\S+)(?: with | and |$)", suggestion)
    fields = {**dict.fromkeys(PRIVACY, "value"), **dict(zip(GRID_FIELDS, GRID_FIELDS, strict=True))}
    if not all(name in fields for name, _ in pairs):
        return ()  # parameters, which share a field
    return tuple((fields[name], value) for name, value in pairs)


EXTREMES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(PRIVACY, ("0.001", "0.999")),
    "epsilon": ("0.001", "1000"),
}
"""For each way to state privacy, a value below and one above all that can be published."""


def privacy_limits(content: DraftContent, key: int, caps: Caps) -> dict[str, list[float]]:
    """Return the smallest and the largest value that a question allows, by way to state privacy.

    The result omits a way that the question's mechanism does not support, and all ways while the
    question has other mistakes.
    """
    # The limits do not depend on the texts that change while a researcher writes.
    text = {"text": {content.own_language: "?"}, "help": {}, "topic": {}, "way": "", "value": ""}
    alone = only_question(content, key).with_question(key, {**content.question(key), **text})
    survey = {**EMPTY_SURVEY, "language": content.own_language}
    return _privacy_limits(replace(alone, survey=survey, plan=EMPTY_PLAN).to_json(), key, caps)


@lru_cache(maxsize=CACHE_SIZE)
def _privacy_limits(text: str, key: int, caps: Caps) -> dict[str, list[float]]:
    limits, alone = {}, DraftContent.from_json(text)
    for way, extremes in EXTREMES.items():
        ends = [_nearest_allowed(alone, key, way, value, caps) for value in extremes]
        if all(ends):
            limits[way] = [float(Fraction(end)) for end in ends]
    return limits


def _nearest_allowed(content: DraftContent, key: int, way: str, value: str, caps: Caps) -> str:
    """Return the allowed value nearest to a value, or "" if there is none."""
    question = {**content.question(key), "way": way, "value": value}
    definition = definition_from(content.with_question(key, question))
    language = content.own_language
    try:
        raw = with_default_texts(in_language(definition, language, language), language)
        _QUESTION.validate_python(raw["pages"][0]["questions"][0], context=caps)
    except ValidationError as error:
        messages = [entry["msg"] for entry in error.errors(include_url=False, include_input=False)]
        nearest = dict(nearest_values(messages[0])) if len(messages) == 1 else {}
        return nearest["value"] if set(nearest) == {"value"} else ""
    except (TypeError, ValueError):  # an invalid language
        return ""
    return value


def _locate(place: Place, text: str, content: DraftContent) -> Mistake:
    match place:
        case ("pages", int(i), "questions", int(j), *steps):
            return _in_question(steps, text, content, content.pages[i].questions[j])
        case ("pages", int(i), "questions"):
            return Mistake(NO_QUESTIONS, "title", page=content.pages[i].key)
        case ("pages", int(i), *steps):
            return Mistake(
                text, "title", page=content.pages[i].key, language=_language_of(steps, content)
            )
        case ("together", int(i), *_):
            return Mistake(text, "together_with", question=_last_member(content, i))
        case (str(name), *steps):
            return Mistake(text, name, language=_language_of(steps, content))
        case _:
            return Mistake(text)


def _last_member(content: DraftContent, place: int) -> int | None:
    """Return the key of the last question that a declaration lists and the draft contains."""
    ids = content.survey["together"][place]["questions"]
    keys = {question["id"]: question["key"] for question in content.questions}
    return next((keys[name] for name in reversed(ids) if name in keys), None)


def _in_question(
    steps: list[Any], text: str, content: DraftContent, question: Mapping[str, Any]
) -> Mistake:
    field, key = _field(steps, text), question["key"]
    if field == "options" and len(steps) > 1 and isinstance(steps[1], int):
        options = nonempty_options(question)
        # The usual labels of a yes/no question are no options of the draft.
        field = f"option-{options[steps[1]]['key']}" if steps[1] < len(options) else ""
    return Mistake(text, field, question=key, language=_language_of(steps, content))


NO_QUESTIONS = "this page has no questions; add one or remove the page"

FIELDS: Mapping[str, str] = {
    **dict.fromkeys(PRIVACY, "value"),
    **{name: f"{name}_label" for name in (OPT_OUT_ID, NOT_APPLICABLE_ID, NONE_ID)},
    "state": "value",
    "options": "options",
    "parameters": "parameters",
}
"""The field of a mistake, by its key in the file or by the first word of the message."""


def _field(steps: list[Any], text: str) -> str:
    match steps:
        case ("ask_if", "options", *_):
            return "ask_options"
        case ("ask_if", *_):
            return "ask_question"
        case (str(name), *_) if name in FIELDS or name in EMPTY_QUESTION:
            return FIELDS.get(name, name)
    # A mistake of the whole question begins with the key that it is about.
    first = text.split(" ", 1)[0].split(".", 1)[0]
    return FIELDS.get(first, first if first in EMPTY_QUESTION else "")


def _language_of(steps: list[Any] | tuple[Any, ...], content: DraftContent) -> str:
    """Return the language at the end of a mistake's path, or an empty string."""
    return steps[-1] if steps and steps[-1] in content.languages else ""
