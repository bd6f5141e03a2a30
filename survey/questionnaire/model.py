"""A survey as its researcher writes it: frozen types that refuse what cannot be asked privately."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, StringConstraints

from survey.questionnaire.groups import groups_of, total_ratio_of
from survey.questionnaire.question import BaseQuestion
from survey.questionnaire.questions import Question
from survey.questionnaire.texts import Frozen, Language, Line, Passage, Slug, Text

MAX_QUESTIONS = 200


class Page(Frozen):
    """Questions shown together."""

    title: Annotated[Text, StringConstraints(max_length=300, pattern=r"^[^\n]*$")] = ""
    questions: tuple[Question, ...] = Field(min_length=1)


class Survey(Frozen):
    """A whole survey, before publication; an instance's `Caps` are the validation context.

    `bucket` is what is kept of the date on which a report is released.
    """

    slug: Slug
    title: Line
    language: Language = "en"
    introduction: Passage = ""
    contact: Passage = ""
    thanks: Passage = ""
    allow_skip_logic: StrictBool = False
    questions_per_person: StrictInt | None = None
    bucket: Literal["none", "day", "week"] = "none"
    pages: tuple[Page, ...] = Field(min_length=1)

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
