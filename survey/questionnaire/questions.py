"""Questions as a researcher writes them: a closed list of types, each with a private channel.

Free text, files and places cannot be randomized, so there is no type for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from survey.errors import ChannelError
from survey.mechanism import AnyChannel
from survey.mechanism.design import exact_fraction
from survey.questionnaire.designs import DESIGNS, PRIVACY, Asked, names_for
from survey.questionnaire.grid import Grid, date_grid, number_grid
from survey.questionnaire.privacy import build_channel, state
from survey.questionnaire.texts import Frozen, Identifier, Line, Option, Passage, Text
from survey.settings import Caps

MAX_OPTIONS = 100

OPT_OUT_ID = "prefer_not_to_say"
NOT_APPLICABLE_ID = "does_not_apply"
NONE_ID = "none_of_these"

SPECIAL: Mapping[str, str] = {
    NONE_ID: "None of these",
    NOT_APPLICABLE_ID: "Does not apply",
    OPT_OUT_ID: "Prefer not to say",
}
"""Options that are there by themselves, last, in this order: their ids and usual labels."""

YES_NO = ({"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"})


def _exactly(value: Any, info: ValidationInfo) -> Fraction:
    try:
        return exact_fraction(value, str(info.field_name))
    except ChannelError as error:
        raise ValueError(str(error)) from None


Number = Annotated[Fraction, BeforeValidator(_exactly)]


class AskIf(Frozen):
    """When a question is asked: when an earlier one was answered by one of these options."""

    question: Identifier
    options: tuple[Identifier, ...] = Field(min_length=1)


class BaseQuestion(Frozen):
    """What all questions have: a text, the options that are no answer, one statement of privacy."""

    id: Identifier
    type: str
    text: Annotated[Text, StringConstraints(min_length=1, max_length=1_000)]
    help: Passage = ""
    prefer_not_to_say: bool | Line = True
    does_not_apply: bool | Line = False
    ask_if: AskIf | None = None
    mechanism: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    truth_probability: Number | None = None
    keep_probability: Number | None = None
    epsilon: Number | None = None
    _channel: AnyChannel = PrivateAttr()
    _design: str = PrivateAttr()

    @model_validator(mode="after")
    def _is_private(self, info: ValidationInfo) -> BaseQuestion:
        caps = info.context if isinstance(info.context, Caps) else Caps()
        try:
            self._check()
            self._design, self._channel = self._channel_under(caps)
        except ChannelError as error:
            raise ValueError(str(error)) from None
        return self

    def _check(self) -> None:
        """What a type demands of its question; raises ChannelError."""

    def _channel_under(self, caps: Caps) -> tuple[str, AnyChannel]:
        kind = self.type
        if self.mechanism is not None and self.mechanism not in names_for(kind):
            raise ChannelError(
                f'mechanism "{self.mechanism[:40]}" is none of a {kind} question: '
                f"{', '.join(names_for(kind))}"
            )
        stated = state(kind, self.mechanism, self.asked, self._written())
        self._check_parameters(stated.design)
        fewest = DESIGNS[stated.design].fewest
        if self.asked.ordinary < fewest:
            raise ChannelError(f"mechanism {stated.design} needs at least {fewest} points")
        return stated.design, build_channel(stated, caps)

    def _written(self) -> dict[str, Fraction]:
        """Every statement of privacy there is, by its way."""
        stated = {way: getattr(self, way) for way in PRIVACY}
        own = DESIGNS[self.mechanism].ways if self.mechanism else {}
        for way in own:
            if way not in PRIVACY and way in self.parameters:
                stated[way] = exact_fraction(self.parameters[way], f"parameters.{way}")
        return {way: value for way, value in stated.items() if value is not None}

    def _check_parameters(self, name: str) -> None:
        design = DESIGNS[name]
        names = {way for way in design.ways if way not in PRIVACY} | set(design.others)
        if set(self.parameters) != names:
            raise ChannelError(
                f"mechanism {name} has "
                + (f"the parameters {', '.join(sorted(names))}" if names else "no parameters")
            )

    @property
    def asked(self) -> Asked:
        """What the question offers to its channel."""
        raise NotImplementedError

    @property
    def ordinary(self) -> tuple[Option, ...]:
        """The options that are answers."""
        return ()

    @property
    def special(self) -> tuple[Option, ...]:
        """The options that are there by themselves."""
        found = []
        for identifier, usual in SPECIAL.items():
            label = getattr(self, identifier, False)
            if label:
                found.append(Option(id=identifier, label=usual if label is True else label))
        return tuple(found)

    @property
    def all_options(self) -> tuple[Option, ...]:
        """The options as respondents see them."""
        return (*self.ordinary, *self.special)

    @property
    def opt_out(self) -> str:
        """Id of the option that an untouched question becomes, or empty."""
        return OPT_OUT_ID if self.prefer_not_to_say else ""

    @property
    def not_applicable(self) -> str:
        """Id of the option that a question becomes that is not asked, or empty."""
        return NOT_APPLICABLE_ID if self.does_not_apply else ""

    @property
    def grid(self) -> Grid | None:
        """The values the truths stand for, when they stand for numbers."""
        return None

    @property
    def ticks(self) -> int:
        """Most ordinary options that may be ticked; 0 when only one is chosen."""
        return 0

    @property
    def design(self) -> str:
        """The name of the design that the question runs."""
        return self._design

    @property
    def channel(self) -> AnyChannel:
        """The integer channel that the one stated privacy means."""
        return self._channel


class ChoiceQuestion(BaseQuestion):
    """One of several options."""

    type: Literal["yes_no", "single_choice"]
    options: tuple[Option, ...] = Field(min_length=2, max_length=MAX_OPTIONS)

    @model_validator(mode="before")
    @classmethod
    def _yes_no_has_its_options(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("type") == "yes_no":
            return {"options": YES_NO, **data}
        return data

    def _check(self) -> None:
        if self.type == "yes_no" and [option.id for option in self.options] != ["yes", "no"]:
            raise ChannelError('options of a yes_no question have the ids "yes" and "no", in order')
        _check_number(self.all_options)

    @property
    def ordinary(self) -> tuple[Option, ...]:
        return self.options

    @property
    def asked(self) -> Asked:
        return Asked(len(self.options), len(self.special), parameters=self.parameters)


class ScaleQuestion(BaseQuestion):
    """One of several options in order: written out, or the whole numbers from low to high."""

    type: Literal["scale"]
    options: tuple[Option, ...] = Field(default=(), max_length=MAX_OPTIONS)
    low: int | None = None
    high: int | None = None
    low_label: Line | None = None
    high_label: Line | None = None

    def _check(self) -> None:
        numbered = self.low is not None and self.high is not None
        if bool(self.options) == numbered or (self.low is None) != (self.high is None):
            raise ChannelError("a scale has options in order, or low and high, not both")
        if self.options and (self.low_label or self.high_label):
            raise ChannelError("low_label and high_label go with low and high")
        if len(self.ordinary) < 2:
            raise ChannelError("a scale has at least 2 points")
        _check_number(self.all_options)

    @property
    def ordinary(self) -> tuple[Option, ...]:
        if self.options or self.low is None or self.high is None:
            return self.options
        points = range(self.low, min(self.high, self.low + MAX_OPTIONS) + 1)
        ends = {self.low: self.low_label, self.high: self.high_label}
        return tuple(_point(value, ends.get(value)) for value in points)

    @property
    def grid(self) -> Grid:
        """The scores of the ordinary options."""
        return Grid(1 if self.low is None else self.low, 1, len(self.ordinary))

    @property
    def asked(self) -> Asked:
        return Asked(len(self.ordinary), len(self.special), parameters=self.parameters)


class MultipleChoiceQuestion(BaseQuestion):
    """Any number of options, up to a limit, or none of them."""

    type: Literal["multiple_choice"]
    options: tuple[Option, ...] = Field(min_length=2, max_length=MAX_OPTIONS)
    none_of_these: Literal[True] | Line = True
    max_ticks: int | None = None

    def _check(self) -> None:
        if self.max_ticks is not None and not 1 <= self.max_ticks <= len(self.options):
            nearest = min(max(self.max_ticks, 1), len(self.options))
            raise ChannelError(
                f"max_ticks = {self.max_ticks} of {len(self.options)} options; "
                f"the nearest allowed value is {nearest}"
            )
        _check_number(self.all_options)

    @property
    def ordinary(self) -> tuple[Option, ...]:
        return self.options

    @property
    def ticks(self) -> int:
        """Most ordinary options that may be ticked."""
        return self.max_ticks or len(self.options)

    @property
    def asked(self) -> Asked:
        return Asked(len(self.options), 0, self.ticks, len(self.special))


class NumberQuestion(BaseQuestion):
    """A number between two bounds, rounded on the device to a grid."""

    type: Literal["number"]
    low: Number
    high: Number
    step: Number = Fraction(1)
    unit: Annotated[Text, StringConstraints(max_length=40, pattern=r"^[^\n]*$")] = ""
    _grid: Grid = PrivateAttr()

    def _check(self) -> None:
        self._grid = number_grid(self.low, self.high, self.step, self.unit)

    @property
    def grid(self) -> Grid:
        """The numbers that can be reported about."""
        return self._grid

    @property
    def asked(self) -> Asked:
        return Asked(
            self._grid.points, len(self.special), step=self.step, parameters=self.parameters
        )


class DateQuestion(BaseQuestion):
    """A day between two days, rounded on the device to every `step` days."""

    type: Literal["date"]
    low: date
    high: date
    step: int = Field(default=1, ge=1)
    _grid: Grid = PrivateAttr()

    def _check(self) -> None:
        self._grid = date_grid(self.low, self.high, self.step)

    @property
    def grid(self) -> Grid:
        """The days that can be reported about, counted from 1970-01-01."""
        return self._grid

    @property
    def asked(self) -> Asked:
        return Asked(
            self._grid.points,
            len(self.special),
            step=Fraction(self.step),
            parameters=self.parameters,
        )


Question = Annotated[
    ChoiceQuestion | ScaleQuestion | MultipleChoiceQuestion | NumberQuestion | DateQuestion,
    Field(discriminator="type"),
]

TYPES = ("yes_no", "single_choice", "scale", "multiple_choice", "number", "date")


def _check_number(options: tuple[Option, ...]) -> None:
    if len(options) > MAX_OPTIONS:
        raise ChannelError(
            f"at most {MAX_OPTIONS} options with the ones that are there by themselves"
        )


def _point(value: int, label: str | None) -> Option:
    name = f"value_{value}" if value >= 0 else f"value_minus_{-value}"
    return Option(id=name, label=f"{value} ({label})" if label else str(value))
