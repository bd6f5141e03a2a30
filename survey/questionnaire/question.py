"""What all questions have: a text, options that are no answer, one statement of privacy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    StrictBool,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from survey.catalogue import SOURCE, say
from survey.errors import ChannelError
from survey.mechanism import AnyChannel
from survey.mechanism.design import exact_fraction, format_fraction
from survey.questionnaire.designs import DESIGNS, PRIVACY, Asked, names_for
from survey.questionnaire.grid import Grid
from survey.questionnaire.kinds import KINDS, Kind
from survey.questionnaire.privacy import build_channel, state
from survey.questionnaire.texts import Frozen, Identifier, Line, Option, Passage, Text
from survey.settings import Caps

MAX_OPTIONS = 100
"""Most options of a question, the ones that are there by themselves among them."""

OPT_OUT_ID = "prefer_not_to_say"
NOT_APPLICABLE_ID = "does_not_apply"
NONE_ID = "none_of_these"

SPECIAL: Mapping[str, str] = {
    NONE_ID: say(SOURCE, "option.noneOfThese"),
    NOT_APPLICABLE_ID: say(SOURCE, "option.doesNotApply"),
    OPT_OUT_ID: say(SOURCE, "option.preferNotToSay"),
}
"""Options that are there by themselves, last, in this order: their ids and usual labels."""


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
    prefer_not_to_say: StrictBool | Line = True
    does_not_apply: StrictBool | Line = False
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

    def _size_mistake(self, fewest: int) -> ChannelError | None:
        """What is wrong with the number of options or points, of which so many are needed."""
        most = MAX_OPTIONS - len(self.special)
        number = len(self.ordinary)
        if fewest <= number <= most:
            return None
        return ChannelError(
            f"{number} options where {fewest} to {most} are allowed beside the {len(self.special)} "
            f"that are there by themselves; the nearest allowed number is "
            f"{min(max(number, fewest), most)}"
        )

    def _channel_under(self, caps: Caps) -> tuple[str, AnyChannel]:
        kind = self.type
        if self.mechanism is not None and self.mechanism not in names_for(kind):
            raise ChannelError(
                f'mechanism "{self.mechanism[:40]}" is none of a {kind} question: '
                f"{', '.join(names_for(kind))}"
            )
        stated = state(kind, self.mechanism, self.asked, self._written())
        self._check_parameters(stated.design)
        if mistake := self._size_mistake(DESIGNS[stated.design].fewest):
            raise ChannelError(f"mechanism {stated.design}: {mistake}")
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
    def kind(self) -> Kind:
        """The class of the question's type."""
        return KINDS[self.type]

    @property
    def shuffled(self) -> bool:
        """Whether each device shows the options in an order of its own."""
        return False

    @property
    @abstractmethod
    def asked(self) -> Asked:
        """What the question offers to its channel."""

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
    def stated(self) -> dict[str, str]:
        """What was written of the question's privacy, by its way: {"epsilon": "1"}."""
        return {way: format_fraction(value) for way, value in self._written().items()}

    @property
    def design(self) -> str:
        """The name of the design that the question runs."""
        return self._design

    @property
    def channel(self) -> AnyChannel:
        """The integer channel that the one stated privacy means."""
        return self._channel
