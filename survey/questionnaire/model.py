"""A survey as its researcher writes it: frozen types that refuse what cannot be asked privately.

Types of question are a closed list: free text, files and places cannot be randomized.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from survey.errors import ChannelError
from survey.mechanism import SubsetSelection, from_epsilon, from_keep_probability, grr
from survey.mechanism.design import exact_fraction

PRIVACY = {
    "truth_probability": grr,
    "keep_probability": from_keep_probability,
    "epsilon": from_epsilon,
}
"""The three ways to state a question's privacy, each with its constructor."""

MAX_OPTIONS = 100
MAX_QUESTIONS = 200
OPT_OUT_ID = "prefer_not_to_say"
OPT_OUT_LABEL = "Prefer not to say"
YES_NO = ({"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"})


def _without_controls(text: str) -> str:
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", text):
        raise ValueError("must not contain control characters")
    return text


def _trimmed(value: Any) -> Any:
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_trimmed), AfterValidator(_without_controls)]
Line = Annotated[Text, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\n]*$")]
Passage = Annotated[Text, StringConstraints(max_length=10_000)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]


class Frozen(BaseModel):
    """Base of all parts of a survey: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Option(Frozen):
    """One answer that can be chosen."""

    id: Identifier
    label: Line


class Question(Frozen):
    """A question with its options and exactly one statement of its privacy."""

    id: Identifier
    type: Literal["yes_no", "single_choice"]
    text: Annotated[Text, StringConstraints(min_length=1, max_length=1_000)]
    help: Passage = ""
    options: tuple[Option, ...] = Field(min_length=2, max_length=MAX_OPTIONS)
    prefer_not_to_say: bool | Line = True
    truth_probability: Fraction | None = None
    keep_probability: Fraction | None = None
    epsilon: Fraction | None = None

    @model_validator(mode="before")
    @classmethod
    def _yes_no_has_its_options(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("type") == "yes_no":
            return {"options": YES_NO, **data}
        return data

    @field_validator(*PRIVACY, mode="before")
    @classmethod
    def _exact(cls, value: Any, info: ValidationInfo) -> Fraction:
        try:
            return exact_fraction(value, str(info.field_name))
        except ChannelError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _is_private(self) -> Question:
        if self.type == "yes_no" and [option.id for option in self.options] != ["yes", "no"]:
            raise ValueError('options of a yes_no question have the ids "yes" and "no", in order')
        if len(self.all_options) > MAX_OPTIONS:
            raise ValueError(f"at most {MAX_OPTIONS} options with the one to prefer not to say")
        try:
            self.channel  # noqa: B018  a question that exists has its channel
        except ChannelError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def opt_out(self) -> str:
        """Id of the option that an untouched question becomes, or empty."""
        return OPT_OUT_ID if self.prefer_not_to_say else ""

    @property
    def all_options(self) -> tuple[Option, ...]:
        """The options as respondents see them, "prefer not to say" last."""
        if not self.prefer_not_to_say:
            return self.options
        label = OPT_OUT_LABEL if self.prefer_not_to_say is True else self.prefer_not_to_say
        return (*self.options, Option(id=OPT_OUT_ID, label=label))

    @property
    def channel(self) -> SubsetSelection:
        """The integer channel that the one stated privacy means for this many options."""
        stated = [name for name in PRIVACY if getattr(self, name) is not None]
        if len(stated) != 1:
            raise ChannelError(
                f"state one of {', '.join(PRIVACY)}, "
                + (f"not {' and '.join(stated)}" if stated else "here or for the whole survey")
            )
        return PRIVACY[stated[0]](len(self.all_options), getattr(self, stated[0]))


class Page(Frozen):
    """Questions shown together."""

    title: Annotated[Text, StringConstraints(max_length=300, pattern=r"^[^\n]*$")] = ""
    questions: tuple[Question, ...] = Field(min_length=1)


class Survey(Frozen):
    """A whole survey, before publication."""

    slug: Slug
    title: Line
    language: Language = "en"
    introduction: Passage = ""
    contact: Passage = ""
    thanks: Passage = ""
    pages: tuple[Page, ...] = Field(min_length=1)

    @property
    def questions(self) -> Iterator[Question]:
        """All questions in the order of their codes in a report."""
        return (question for page in self.pages for question in page.questions)
