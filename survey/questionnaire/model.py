"""A survey as its researcher writes it, and the privacy loss of its questions together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Literal, Protocol

from pydantic import AfterValidator, Field, PrivateAttr, StrictBool, StrictInt, StringConstraints

from survey.mechanism.accounting import total_ratio
from survey.questionnaire.kinds import BaseQuestion, Question
from survey.questionnaire.texts import Frozen, Language, Line, Passage, Slug, Text

MAX_QUESTIONS = 200

Theme = Literal["", "blue", "plum", "slate"]
"""The accent colors of respondents' pages; "" is the standard one."""


def _is_https(address: str) -> str:
    if address and not address.startswith("https://"):
        raise ValueError("must begin with https://")
    return address


Address = Annotated[
    str, StringConstraints(max_length=300, pattern=r"^[!-~]*$"), AfterValidator(_is_https)
]


class Page(Frozen):
    """Questions shown together."""

    title: Annotated[Text, StringConstraints(max_length=300, pattern=r"^[^\n]*$")] = ""
    questions: tuple[Question, ...] = Field(min_length=1)


class Survey(Frozen):
    """A survey before publication; the instance's `Caps` are the validation context.

    `bucket` says how much of a release's date is stored. `access` says whether everybody with the
    link may answer, or only invited people. `kiosk` is for shared devices, on which nothing is
    stored. `quick_exit` is the destination of "Leave now", an empty page when empty.
    """

    slug: Slug
    title: Line
    language: Language = "en"
    introduction: Passage = ""
    consent: Passage = ""
    ethics: Passage = ""
    helpline: Passage = ""
    contact: Passage = ""
    thanks: Passage = ""
    allow_skip_logic: StrictBool = False
    questions_per_person: StrictInt | None = None
    bucket: Literal["none", "day", "week"] = "none"
    access: Literal["open", "invitation"] = "open"
    kiosk: StrictBool = False
    theme: Theme = ""
    quick_exit: Address = ""
    pages: tuple[Page, ...] = Field(min_length=1)
    _translations: Mapping[str, Survey] = PrivateAttr(default_factory=dict)

    @property
    def translations(self) -> Mapping[str, Survey]:
        """The survey in each of its other languages, by language."""
        return self._translations

    def translated(self, translations: Mapping[str, Survey]) -> Survey:
        """Return the survey with its translations."""
        survey = self.model_copy()
        survey._translations = dict(translations)
        return survey

    @property
    def questions(self) -> Iterator[BaseQuestion]:
        """All questions, in the order of their codes in a report."""
        return (question for page in self.pages for question in page.questions)

    @property
    def groups(self) -> list[list[str]]:
        """Questions that are drawn together: one question and all that depend on it."""
        return groups_of(self.questions)

    @property
    def drawn(self) -> int:
        """The number of groups that each respondent is asked."""
        return self.questions_per_person or len(self.groups)

    @property
    def total_ratio(self) -> Fraction:
        """e^epsilon of everything one respondent sends."""
        ratios = {question.id: question.channel.ratio for question in self.questions}
        return total_ratio_of(self.groups, ratios, self.drawn)


class Condition(Protocol):
    """The condition of a question."""

    @property
    def question(self) -> str: ...


class Dependent(Protocol):
    """A question that may depend on an earlier one."""

    @property
    def id(self) -> str: ...
    @property
    def ask_if(self) -> Condition | None: ...


def groups_of(questions: Iterable[Dependent]) -> list[list[str]]:
    """Return the ids of each independent question together with those of all that depend on it.

    `questions` are in the survey's order: each comes after the one it depends on.
    """
    first: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for question in questions:
        parent = question.ask_if.question if question.ask_if else question.id
        first[question.id] = first.get(parent, question.id)
        groups.setdefault(first[question.id], []).append(question.id)
    return list(groups.values())


def linked_ratios(
    groups: Iterable[Iterable[str]], ratios: Mapping[str, Fraction]
) -> dict[str, Fraction]:
    """Return e^epsilon of all reports that depend on the answer to a question, for each question.

    A skipped question counts as "does not apply", so the reports of a whole group depend on each of
    its answers.

    >>> linked_ratios([["a", "b"], ["c"]], {"a": Fraction(2), "b": Fraction(3), "c": Fraction(5)})
    {'a': Fraction(6, 1), 'b': Fraction(6, 1), 'c': Fraction(5, 1)}
    """
    linked: dict[str, Fraction] = {}
    for group in map(list, groups):
        together = total_ratio(ratios[name] for name in group)
        linked |= dict.fromkeys(group, together)
    return linked


def total_ratio_of(
    groups: Iterable[Iterable[str]], ratios: Mapping[str, Fraction], drawn: int
) -> Fraction:
    """Return e^epsilon of a survey that draws `drawn` of its groups for each respondent.

    This is the product over the groups with the greatest privacy loss. `ratios` maps the id of a
    question to its e^epsilon.

    >>> ratios = {"a": Fraction(2), "b": Fraction(5), "c": Fraction(3)}
    >>> total_ratio_of([["a", "b"], ["c"]], ratios, 1)
    Fraction(10, 1)
    """
    together = (total_ratio(ratios[name] for name in group) for group in groups)
    return total_ratio(sorted(together, reverse=True)[:drawn])
