"""A survey as its researcher writes it, before publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PrivateAttr, StrictBool, StrictInt, StringConstraints

from survey.questionnaire.kinds import BaseQuestion, Question
from survey.questionnaire.privacy_loss import groups_of, total_ratio_of
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
