"""A survey as its researcher writes it: frozen types that refuse what cannot be asked privately."""

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
"""The accents that respondents' pages come in; "" is the usual one."""


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
    """A whole survey, before publication; an instance's `Caps` are the validation context.

    `bucket` is what is kept of the date on which a report is released. `access` says whether
    everybody may answer who has the link, or only who was invited. `kiosk` is for shared devices,
    on which nothing is kept. `quick_exit` is where "Leave now" leads; an empty page when empty.
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
        """The same survey in each of its other languages, by language."""
        return self._translations

    def translated(self, translations: Mapping[str, Survey]) -> Survey:
        """This survey with those of its other languages."""
        survey = self.model_copy()
        survey._translations = dict(translations)
        return survey

    @property
    def questions(self) -> Iterator[BaseQuestion]:
        """All questions in the order of their codes in a report."""
        return (question for page in self.pages for question in page.questions)

    @property
    def groups(self) -> list[list[str]]:
        """Questions that are drawn together: one and all that depend on it."""
        return groups_of(self.questions)

    @property
    def drawn(self) -> int:
        """How many groups each person is asked."""
        return self.questions_per_person or len(self.groups)

    @property
    def total_ratio(self) -> Fraction:
        """e^epsilon of everything one respondent sends."""
        ratios = {question.id: question.channel.ratio for question in self.questions}
        return total_ratio_of(self.groups, ratios, self.drawn)


class Condition(Protocol):
    """What a question depends on."""

    @property
    def question(self) -> str: ...


class Dependent(Protocol):
    """A question that may depend on an earlier one."""

    @property
    def id(self) -> str: ...
    @property
    def ask_if(self) -> Condition | None: ...


def groups_of(questions: Iterable[Dependent]) -> list[list[str]]:
    """The ids of each question that depends on no other, with those of all that depend on it.

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
    """e^epsilon of everything that reports about the answer to one question, for each.

    Who is not asked a question counts as "does not apply" there: the reports of a whole group
    tell about each of its answers.

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
    """e^epsilon of a survey that draws `drawn` of its groups of questions for each person.

    The product over the groups that give away most, whoever they fall to. `ratios` maps a
    question's id to its own.

    >>> ratios = {"a": Fraction(2), "b": Fraction(5), "c": Fraction(3)}
    >>> total_ratio_of([["a", "b"], ["c"]], ratios, 1)
    Fraction(10, 1)
    """
    together = (total_ratio(ratios[name] for name in group) for group in groups)
    return total_ratio(sorted(together, reverse=True)[:drawn])
