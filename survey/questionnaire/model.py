"""A survey as its researcher writes it: frozen types that refuse what cannot be asked privately.

Types of question are a closed list: free text, files and places cannot be randomized.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from survey.errors import ChannelError
from survey.mechanism import SubsetSelection
from survey.mechanism.design import exact_fraction
from survey.questionnaire.privacy import PRIVACY, build_channel
from survey.settings import Caps

MAX_OPTIONS = 100
MAX_QUESTIONS = 200
OPT_OUT_ID = "prefer_not_to_say"
OPT_OUT_LABEL = "Prefer not to say"
YES_NO = ({"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"})


BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Characters that show nothing although Unicode calls them letters, marks or symbols."""


def _without_controls(text: str) -> str:
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", text):
        raise ValueError("must not contain control characters")
    # They reorder what follows: a label could read as the opposite of what is counted.
    if re.search(r"[\u202a-\u202e\u2066-\u2069]", text):
        raise ValueError(
            "must not contain direction control characters (U+202A to U+202E, U+2066 to U+2069)"
        )
    return text


def _empty_if_invisible(text: str) -> str:
    return text if any(_is_visible(character) for character in text) else ""


def _is_visible(character: str) -> bool:
    return (
        unicodedata.category(character) not in ("Cc", "Cf", "Zl", "Zp", "Zs")
        and character not in BLANKS
        and not re.match(r"[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]", character)
    )


def _trimmed(value: Any) -> Any:
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else value


Text = Annotated[
    str,
    BeforeValidator(_trimmed),
    AfterValidator(_without_controls),
    AfterValidator(_empty_if_invisible),
]
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
    _channel: SubsetSelection = PrivateAttr()

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
    def _is_private(self, info: ValidationInfo) -> Question:
        if self.type == "yes_no" and [option.id for option in self.options] != ["yes", "no"]:
            raise ValueError('options of a yes_no question have the ids "yes" and "no", in order')
        if len(self.all_options) > MAX_OPTIONS:
            raise ValueError(f"at most {MAX_OPTIONS} options with the one to prefer not to say")
        caps = info.context if isinstance(info.context, Caps) else Caps()
        try:
            self._channel = self._channel_under(caps)
        except ChannelError as error:
            raise ValueError(str(error)) from None
        return self

    def _channel_under(self, caps: Caps) -> SubsetSelection:
        stated = [name for name in PRIVACY if getattr(self, name) is not None]
        if len(stated) != 1:
            raise ChannelError(
                f"state one of {', '.join(PRIVACY)}, "
                + (f"not {' and '.join(stated)}" if stated else "here or for the whole survey")
            )
        return build_channel(stated[0], getattr(self, stated[0]), len(self.all_options), caps)

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
        return self._channel


class Page(Frozen):
    """Questions shown together."""

    title: Annotated[Text, StringConstraints(max_length=300, pattern=r"^[^\n]*$")] = ""
    questions: tuple[Question, ...] = Field(min_length=1)


class Survey(Frozen):
    """A whole survey, before publication; an instance's `Caps` are the validation context."""

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
