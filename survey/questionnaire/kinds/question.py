"""Written questions: what all share, and what those with options or with a grid share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictBool,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from survey.errors import ChannelError
from survey.mechanism import AnyChannel
from survey.mechanism.exact_numbers import exact_fraction, format_fraction
from survey.mechanism.joint_response import marginal_response
from survey.progress import advance
from survey.questionnaire.designs import DESIGNS, PRIVACY, AnswerSpace, Statement
from survey.questionnaire.kinds.base import (
    NOT_APPLICABLE_ID,
    OPT_OUT_ID,
    SPECIAL,
    WRITTEN_KINDS,
    AskIf,
    Grid,
    JointResponse,
    Kind,
    MatrixRow,
)
from survey.questionnaire.limits import build_channel
from survey.questionnaire.placeholders import PIPED_TEXTS
from survey.questionnaire.texts import LINE, Frozen, Identifier, Line, Option, Passage, Text
from survey.settings import Caps

MAX_OPTIONS = 100
"""Maximum number of options in a question, including those added automatically."""


def _parse_exactly(value: Any, info: ValidationInfo) -> Fraction:
    try:
        return exact_fraction(value, str(info.field_name))
    except ChannelError as error:
        raise ValueError(str(error)) from None


ExactNumber = Annotated[
    Fraction,
    BeforeValidator(_parse_exactly),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "examples": ["3/4", "0.8"]}]}),
]


class CommonFields(Frozen):
    """The keys that questions of all types have."""

    id: Identifier
    """Name of the question in results, downloads and conditions."""

    type: str
    """Kind of answer."""

    text: Annotated[Text, StringConstraints(min_length=1, max_length=1_000)]
    """What is asked; `{id|words}` shows the earlier answer to a question, or else the words."""

    help: Passage = ""
    """Explanation below the question."""

    topic: Annotated[Text, StringConstraints(max_length=60, pattern=LINE)] = ""
    """What the question reveals something about, together with others of this topic."""

    prefer_not_to_say: StrictBool | Line = True
    """Whether "Prefer not to say" is offered, or a label for it."""

    does_not_apply: StrictBool | Line = False
    """Whether "Does not apply" is offered, or a label for it."""

    ask_if: AskIf | None = None
    """Condition under which the question is asked; needs `allow_skip_logic`."""

    mechanism: str | None = None
    """Design of the randomization; the standard one of the type if it is left out."""

    parameters: dict[str, Any] = Field(default_factory=dict)
    """Parameters of the mechanism."""

    truth_probability: ExactNumber | None = None
    """Probability that the device reports the true answer."""

    keep_probability: ExactNumber | None = None
    """Probability of reporting the true answer instead of drawing an option at random."""

    epsilon: ExactNumber | None = None
    """Privacy loss: a report changes the odds of a guess by a factor of at most e^epsilon."""


class UntypedQuestion(CommonFields):
    """A question of an unknown type: only what all types have in common can be checked."""

    model_config = ConfigDict(extra="ignore")

    type: Any = None
    options: tuple[Option, ...] = ()


class BaseQuestion(CommonFields):
    """A question as its researcher writes it; each type has a subclass.

    `special` options ("prefer not to say", ...) are added automatically behind the `ordinary` ones.
    The privacy is stated in exactly one way; the question's `channel` follows from it.
    """

    _channel: AnyChannel = PrivateAttr()
    _design: str = PrivateAttr()
    _joint: JointResponse | None = PrivateAttr(default=None)
    _matrix: MatrixRow | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _build_channel(self, info: ValidationInfo) -> BaseQuestion:
        caps = info.context if isinstance(info.context, Caps) else Caps()
        try:
            if not self.kind.has_pictures and any(option.picture for option in self.ordinary):
                raise ChannelError(f"a {self.kind.type} question cannot have pictures")
            self._check()
            self._design, self._channel = self._channel_under(caps)
        except ChannelError as error:
            raise ValueError(str(error)) from None
        finally:
            advance()
        return self

    def _check(self) -> None:
        """Check what the type demands; raises ChannelError."""

    def _size_mistake(self, minimum: int, options: int = MAX_OPTIONS) -> ChannelError | None:
        """Return what is wrong with the number of ordinary options, or None.

        `options` is the maximum, including options that are added automatically.
        """
        maximum = options - len(self.special)
        number = len(self.ordinary)
        if minimum <= number <= maximum:
            return None
        return ChannelError(
            f"{number} options where {minimum} to {maximum} are allowed beside the "
            f"{len(self.special)} that are added automatically; the nearest allowed number is "
            f"{min(max(number, minimum), maximum)}"
        )

    def _channel_under(self, caps: Caps) -> tuple[str, AnyChannel]:
        kind = self.kind
        if self.mechanism is not None and self.mechanism not in kind.mechanisms:
            raise ChannelError(
                f'mechanism "{self.mechanism[:40]}" does not exist for a {kind.type} question; '
                f"available: {', '.join(kind.mechanisms)}"
            )
        statement = parse_statement(
            kind, self.mechanism, self.answer_space, self._statements(), self.parts
        )
        self._check_parameters(statement.design)
        if mistake := self._size_mistake(DESIGNS[statement.design].minimum):
            raise ChannelError(f"mechanism {statement.design}: {mistake}")
        return statement.design, build_channel(statement, caps)

    def _statements(self) -> dict[str, Fraction]:
        """Return every statement of privacy in the question, by its way."""
        statements = {way: getattr(self, way) for way in PRIVACY}
        ways = DESIGNS[self.mechanism].ways if self.mechanism else {}
        for way in ways:
            if way not in PRIVACY and way in self.parameters:
                statements[way] = exact_fraction(self.parameters[way], f"parameters.{way}")
        return {way: value for way, value in statements.items() if value is not None}

    def _check_parameters(self, name: str) -> None:
        design = DESIGNS[name]
        names = {way for way in design.ways if way not in PRIVACY} | set(design.parameters)
        if set(self.parameters) != names:
            raise ChannelError(
                f"mechanism {name} has "
                + (f"the parameters {', '.join(sorted(names))}" if names else "no parameters")
            )

    @property
    def kind(self) -> Kind:
        """The class of the question's type."""
        return WRITTEN_KINDS[self.type]

    @property
    def published(self) -> tuple[BaseQuestion, ...]:
        """The questions that are published for this one: itself, or the rows of a matrix."""
        return (self,)

    @property
    def parts(self) -> int:
        """The number of published questions that share the stated epsilon equally."""
        return 1

    @property
    def matrix(self) -> MatrixRow | None:
        """The matrix of which this question is a row, if any."""
        return self._matrix

    @property
    def shuffled(self) -> bool:
        """Whether each device shows the options in its own random order."""
        return False

    @property
    def piped_names(self) -> tuple[str, ...]:
        """The names of the texts that can contain earlier answers: no text of a matrix can."""
        return () if self.matrix else PIPED_TEXTS

    @property
    def slider_labels(self) -> tuple[str, str] | None:
        """The labels of the ends of a slider, or None if the question has no slider."""
        return None

    @property
    def answer_space(self) -> AnswerSpace:
        """The size of what can be answered, as the channel needs it."""
        return AnswerSpace(len(self.ordinary), len(self.special), parameters=self.parameters)

    @property
    def ordinary(self) -> tuple[Option, ...]:
        """The options that are answers."""
        return ()

    @property
    def special(self) -> tuple[Option, ...]:
        """The options that are added automatically."""
        labels = {name: getattr(self, name, False) for name in SPECIAL}
        return tuple(
            Option(id=name, label=SPECIAL[name] if label is True else label)
            for name, label in labels.items()
            if label
        )

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
        """Id of the option that a skipped question becomes, or empty."""
        return NOT_APPLICABLE_ID if self.does_not_apply else ""

    @property
    def grid(self) -> Grid | None:
        """The values of the answers, when these are numbers."""
        return None

    @property
    def ticks(self) -> int:
        """The maximum of ordinary options that may be ticked; 0 when only one is chosen."""
        return 0

    @property
    def stated(self) -> dict[str, str]:
        """What the researcher wrote of the question's privacy, by way: {"epsilon": "1"}."""
        return {way: format_fraction(value) for way, value in self._statements().items()}

    @property
    def design(self) -> str:
        """The name of the question's mechanism design."""
        return self._design

    @property
    def own_channel(self) -> AnyChannel:
        """The integer channel that the stated privacy means."""
        return self._channel

    @property
    def channel(self) -> AnyChannel:
        """The channel of the question's reports, marginal if it is in a joint response."""
        if self._joint is None:
            return self._channel
        return marginal_response(self._joint.channel, len(self.all_options))

    @property
    def joint(self) -> JointResponse | None:
        """The joint response that this question is part of, if any."""
        return self._joint

    def randomize_jointly(self, joint: JointResponse) -> None:
        """Make the question part of a joint response."""
        self._joint = joint


class OptionsQuestion(BaseQuestion):
    """A question whose ordinary options are written out."""

    options: tuple[Option, ...] = Field(min_length=2, max_length=MAX_OPTIONS)
    """Answers to choose from."""

    shuffle_options: StrictBool = False
    """Whether each device shows the options in its own random order."""

    @property
    def shuffled(self) -> bool:
        return self.shuffle_options

    @property
    def ordinary(self) -> tuple[Option, ...]:
        return self.options


class GridQuestion(BaseQuestion):
    """A number or a day between two ends, rounded on the device to a grid."""

    step: Fraction | int
    _grid: Grid = PrivateAttr()

    @abstractmethod
    def _build_grid(self) -> Grid:
        """Return the grid of the fields; raises ChannelError with the nearest valid one."""

    @abstractmethod
    def _too_few_points(self, minimum: int) -> ChannelError:
        """Return the error for fewer points than `minimum`, with the nearest valid grids."""

    def _check(self) -> None:
        self._grid = self._build_grid()

    def _size_mistake(self, minimum: int, options: int = MAX_OPTIONS) -> ChannelError | None:
        return self._too_few_points(minimum) if self._grid.points < minimum else None

    @property
    def grid(self) -> Grid:
        """The numbers that can be reported; days are counted from 1970-01-01."""
        return self._grid

    @property
    def answer_space(self) -> AnswerSpace:
        return AnswerSpace(
            self._grid.points,
            len(self.special),
            step=Fraction(self.step),
            parameters=self.parameters,
        )


def parse_statement(
    kind: Kind,
    design: str | None,
    space: AnswerSpace,
    statements: Mapping[str, Fraction],
    parts: int = 1,
) -> Statement:
    """Return the one design and way that a question means; raises ChannelError for none or two.

    `statements` maps every stated way, from `PRIVACY` or the parameters, to its value. Only an
    epsilon can be divided into several `parts`.
    """
    recommends = design is None and set(statements) == {"epsilon"}
    name = design or kind.mechanism
    ways = [way for way in DESIGNS[name].ways if parts == 1 or way == "epsilon"]
    fitting = [way for way in statements if way in ways]
    unfit = [way for way in statements if way not in ways]
    if unfit or len(fitting) != 1:
        listed = [*fitting, *unfit]
        raise ChannelError(
            f"state {'one of ' if len(ways) > 1 else ''}{', '.join(ways)}, "
            + (f"not {' and '.join(listed)}" if listed else "here or for the whole survey")
            + ("" if not design else f" (mechanism {name})")
        )
    if recommends:
        with suppress(ChannelError):  # building the channel reports this error
            name = kind.recommend_mechanism(space, statements["epsilon"])
    recommend = kind.recommend_mechanism if recommends else None
    return Statement(name, fitting[0], statements[fitting[0]], space, recommend, parts)
