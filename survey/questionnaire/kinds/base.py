"""What every question type can tell about itself: one subclass of `Kind` per type.

Code outside this package calls `question.kind` and never compares names of types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from survey.errors import DesignError
from survey.mechanism import AnyChannel, BitVector, HalfSpace, SubsetSelection, multiple_choice
from survey.mechanism.channel import Codes, Integers
from survey.mechanism.joint_response import JointChannel, JointMechanism
from survey.mechanism.simulation import truths
from survey.questionnaire.designs import AnswerSpace
from survey.questionnaire.texts import Frozen, Identifier, Option
from survey.respondent_texts import SOURCE, say

Answer = int | tuple[int, ...]
"""A true answer: the index of an option or of a grid point, or those of the ticked options.

A ranking has the indices of the options, from the first place to the last."""

Shares = Sequence[float]
"""The shares that simulated respondents are drawn from, in the order of `Kind.share_names`."""

SharesAndMeans = tuple[list[float], Mapping[str, float]]
"""The share of each option, and the means of those who answer.

The key of the mean of a number or score is "", that of an option's mean rank the option's id."""

OPT_OUT_ID = "prefer_not_to_say"
NOT_APPLICABLE_ID = "does_not_apply"
NONE_ID = "none_of_these"

SPECIAL_KEYS: Mapping[str, str] = {
    NONE_ID: "option.noneOfThese",
    NOT_APPLICABLE_ID: "option.doesNotApply",
    OPT_OUT_ID: "option.preferNotToSay",
}
"""Options that are added automatically, last and in this order: id to the key of their label."""

USUAL_KEYS: Mapping[str, str] = {"yes": "option.yes", "no": "option.no", **SPECIAL_KEYS}
"""Options with a label in the languages of the interface: id to the key of the label."""

SPECIAL: Mapping[str, str] = {name: say(SOURCE, key) for name, key in SPECIAL_KEYS.items()}
"""Default labels of the options that are added automatically, by id."""

ASKED_PREFIX = b"\x01"
"""Prefix of a stored code in a survey that draws questions; a question not drawn is all zeros."""


class AskIf(Frozen):
    """The condition of a question: an earlier answer that is one of these options."""

    question: Identifier
    """Id of a question on an earlier page."""

    options: tuple[Identifier, ...] = Field(min_length=1)
    """Ids of the options after which this question is asked."""


LARGEST = 10**12
"""Maximum of a grid's integers, up to which every device computes exactly."""

EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Grid:
    """`points` values: value i is (low + i step) / 10^decimals; for dates, days since 1970-01-01.

    >>> Grid(low=0, step=5, points=3, decimals=1, unit="km").values
    (0.0, 0.5, 1.0)
    """

    low: int
    step: int
    points: int
    decimals: int = 0
    unit: str = ""

    @property
    def values(self) -> tuple[float, ...]:
        """The value of each point."""
        scale = 10**self.decimals
        return tuple((self.low + i * self.step) / scale for i in range(self.points))

    @property
    def range(self) -> float:
        """The difference of the largest and the smallest value."""
        return float((self.points - 1) * self.step / 10**self.decimals)

    def to_json(self) -> dict[str, Any]:
        """Return the form in a definition."""
        return asdict(self)


@dataclass(frozen=True)
class JointResponse:
    """Questions whose answers are randomized jointly. Each one's `channel` is the marginal one.

    `questions` are their ids in the survey's order, `channel` is the one over all combinations of
    their options, the last question fastest; or a half-space, in which the bit of a question is the
    position of its option, 0 or 1.
    """

    questions: tuple[str, ...]
    channel: JointChannel

    @property
    def mechanism(self) -> JointMechanism:
        """How the answers are randomized: over all combinations of options, or in a half-space."""
        return "half_space" if isinstance(self.channel, HalfSpace) else "grr"

    def to_json(self) -> dict[str, Any]:
        """Return the form in the definition of each of the questions."""
        return {"questions": list(self.questions), "channel": self.channel.to_json()}


@dataclass(frozen=True)
class MatrixRow:
    """The matrix of which a question is a row: its id, the text of all rows, and the row's own."""

    id: str
    text: str
    row: str

    def to_json(self) -> dict[str, str]:
        """Return the form in a definition."""
        return asdict(self)


class Kind:
    """Everything that the Python side knows about one question type.

    is_numeric    an answer is a number or a day on a grid; the options are only opt-outs
    is_date       the grid counts days since 1970-01-01
    is_multiple   an answer is a set of options
    is_ordered    the options have an order, and the grid holds their scores
    is_binary     the answers are yes and no
    has_pictures  the options may have pictures
    is_matrix     publishing turns each row into a question, and all rows share one epsilon
    is_ranking    an answer is an order of all options; each option has a mean rank

    label         the name of the type in the builder
    icon          its icon there: the path of lines in 24 by 24 pixels
    mechanisms    the designs that a question of this type may name
    mechanism     the design of a question that names none
    fields        the draft's fields that only some types have and this one uses
    whole_fields  those of `fields` that hold whole numbers
    """

    type: ClassVar[str] = ""
    label: ClassVar[str] = ""
    icon: ClassVar[str] = ""
    is_numeric: ClassVar[bool] = False
    is_date: ClassVar[bool] = False
    is_multiple: ClassVar[bool] = False
    is_ordered: ClassVar[bool] = False
    is_binary: ClassVar[bool] = False
    has_pictures: ClassVar[bool] = False
    is_matrix: ClassVar[bool] = False
    is_ranking: ClassVar[bool] = False
    mechanisms: ClassVar[tuple[str, ...]] = ()
    mechanism: ClassVar[str] = "grr"
    fields: ClassVar[tuple[str, ...]] = ()
    whole_fields: ClassVar[tuple[str, ...]] = ()

    @property
    def is_single(self) -> bool:
        """Whether an answer is exactly one of the options."""
        return not self.is_numeric and not self.is_multiple and not self.is_ranking

    @property
    def is_listed(self) -> bool:
        """Whether an answer is one or several options, so that conditions can refer to it."""
        return not self.is_numeric and not self.is_ranking

    # The written question

    def count_values(self, form: Mapping[str, Any]) -> int:
        """Return the number of values, days or orders that a written question distinguishes.

        Return 0 if the question is invalid or of a type with few values.
        """
        return 0

    def default_options(self, language: str = SOURCE) -> list[dict[str, str]]:
        """Return the options of a question whose researcher wrote none."""
        return []

    @property
    def default_special(self) -> Mapping[str, bool]:
        """Which automatic options a question has when nothing is written about them."""
        return {OPT_OUT_ID: True, NONE_ID: self.is_multiple}

    def recommend_mechanism(self, space: AnswerSpace, epsilon: Fraction) -> str:
        """Return the design with the smallest error; raises ChannelError where none exists."""
        return self.mechanism

    def source(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of this type as a researcher would have written them.

        `form` is the canonical form with its ordinary options only; labels and unit are in all
        languages. `slider` is empty without a slider.
        """
        return {"options": form["options"]} if form["options"] else {}

    # The published question

    def count_truths(self, question: PublishedQuestion) -> int:
        """Return how many options the question's channel must have."""
        return len(question.options)

    def describe(self, question: PublishedQuestion) -> str:
        """Return what there is to answer, in words: "3 options"."""
        match question.channel:
            case BitVector(is_sampled=True, sampled=sampled, m=m):
                return f"{sampled} of {m} options"
            case SubsetSelection(k=k, d=d) if d > 1:
                return f"{k} options, {d} in a report,"
        return f"{len(question.options)} options"

    def truth(self, question: PublishedQuestion, answer: Answer) -> Answer:
        """Return the channel's input for an answer; KeyError for an impossible answer."""
        return answer

    def count_ranked(self, question: PublishedQuestion) -> int:
        """Return the number of ranked options; 0 for questions that are not rankings."""
        return 0

    def share_channel(self, question: PublishedQuestion) -> AnyChannel:
        """Return the channel from options to reports that is used to estimate shares."""
        return question.channel

    def share_counts(self, question: PublishedQuestion, counts: Integers) -> Integers:
        """Return the counts of the reports of `share_channel`."""
        return counts

    # Simulated respondents. Shares are those of the options; kinds say what else there is.

    def share_labels(self, question: PublishedQuestion) -> list[str]:
        """Return what each share is about, for people."""
        return [option.label for option in question.options]

    def share_names(self, question: PublishedQuestion) -> list[str]:
        """Return what each share is about, for programs."""
        return [option.id for option in question.options]

    def default_shares(self, question: PublishedQuestion) -> list[float]:
        """Return shares that fall from the first option on, with few opt-outs."""
        none = {question.opt_out, question.not_applicable} - {""}
        weights = [
            0.1 if option.id in none else 1 / (1 + i) for i, option in enumerate(question.options)
        ]
        return [weight / sum(weights) for weight in weights]

    def normalize_shares(self, question: PublishedQuestion, shares: list[float]) -> list[float]:
        """Scale the shares to a sum of 1; raises DesignError when all are 0."""
        total = sum(shares)
        if not total:
            raise DesignError(f"{question.text}: at least one share must be above 0")
        return [share / total for share in shares]

    def draw_answers(
        self, question: PublishedQuestion, shares: Shares, n: int, rng: np.random.Generator
    ) -> list[Answer]:
        """Draw the true answers of n simulated respondents."""
        return [int(i) for chunk in truths(shares, n, rng) for i in chunk]

    def option_answer(self, question: PublishedQuestion, option: int) -> Answer:
        """Return the answer that choosing this option alone means."""
        return option

    def true_shares(self, question: PublishedQuestion, shares: Shares) -> SharesAndMeans:
        """Return the exact share of each option and the means of those who answer."""
        return list(shares), {}

    def share_of_any(
        self, question: PublishedQuestion, shares: Mapping[str, float], options: Sequence[str]
    ) -> float | None:
        """P(an answer is one of these options); None where it does not follow from the shares."""
        return sum(shares[name] for name in options)


class GridKind(Kind):
    """A type whose answers are points of a grid; the options, behind the points, are opt-outs."""

    is_numeric = True
    mechanisms = (
        *("geometric", "laplace", "gaussian"),
        *("square_wave", "one_bit", "piecewise", "hybrid", "optimal_piecewise"),
    )
    mechanism = "hybrid"

    def recommend_mechanism(self, space: AnswerSpace, epsilon: Fraction) -> str:
        """Return the design with the smallest worst variance, of one bit, hybrid and piecewise.

        A file must always give the same definition, so the optimal piecewise mechanism, which came
        later, must be named. The planner names it where its interval is the narrowest.
        """
        from survey.estimator.numbers.mean import smallest_worst_variance

        return smallest_worst_variance(space.ordinary, epsilon, space.no_answers)

    def count_truths(self, question: PublishedQuestion) -> int:
        return _points(question) + len(question.options)

    def describe(self, question: PublishedQuestion) -> str:
        return f"a grid of {_points(question):,} points"

    def share_labels(self, question: PublishedQuestion) -> list[str]:
        where = "Where the mean lies between lowest (0) and highest (100)"
        return [where, *super().share_labels(question)]

    def share_names(self, question: PublishedQuestion) -> list[str]:
        return ["position of the mean", *super().share_names(question)]

    def default_shares(self, question: PublishedQuestion) -> list[float]:
        return [0.4, *[0.05] * len(question.options)]

    def normalize_shares(self, question: PublishedQuestion, shares: list[float]) -> list[float]:
        return shares

    def draw_answers(
        self, question: PublishedQuestion, shares: Shares, n: int, rng: np.random.Generator
    ) -> list[Answer]:
        """Draw binomial grid points around the mean, and opt-outs behind them."""
        mean, *silent = shares
        if sum(silent) >= 1:
            raise DesignError(
                f"{question.text}: the shares of the opt-out answers must add up to less than 100%"
            )
        points = _points(question)
        choices = rng.choice(1 + len(silent), size=n, p=[1 - sum(silent), *silent])
        values = rng.binomial(points - 1, mean, n)
        return [
            int(points + choice - 1 if choice else value)
            for choice, value in zip(choices, values, strict=True)
        ]

    def option_answer(self, question: PublishedQuestion, option: int) -> Answer:
        return _points(question) + option

    def true_shares(self, question: PublishedQuestion, shares: Shares) -> SharesAndMeans:
        if question.grid is None:
            return list(shares), {}
        low, high = question.grid.values[0], question.grid.values[-1]
        return list(shares[1:]), {"": low + shares[0] * (high - low)}


def _points(question: PublishedQuestion) -> int:
    return question.grid.points if question.grid else 0


KINDS: dict[str, Kind] = {}
"""Every type of a published question by its name, filled when the package is imported."""

WRITTEN_KINDS: dict[str, Kind] = {}
"""Every type that a researcher can write, including matrices, which are not published as such."""


@dataclass(frozen=True)
class PublishedQuestion:
    """A question as it is asked, with the channel that every device runs for it.

    `options` are all options as shown; of number and date questions only the opt-outs. `grid` holds
    the values of numbers and dates, and the scores of a scale. `alone` counts the options at the
    end of a multiple choice that exclude all others. `stated` is what the researcher wrote about
    privacy, by way, for codebooks. `nullable` says whether the survey draws its questions, so that
    a report may leave this one out. Questions with the same `topic` reveal something about the same
    subject. `joint` is set if the answer is randomized jointly with those to other questions, and
    `matrix` if the question is a row of a matrix; `text` then joins the texts of both.
    """

    id: str
    type: str
    text: str
    options: tuple[Option, ...]
    grid: Grid | None
    max_ticks: int
    alone: int
    opt_out: str
    not_applicable: str
    ask_if: AskIf | None
    mechanism: str
    stated: Mapping[str, str]
    channel: AnyChannel
    nullable: bool
    topic: str = ""
    joint: JointResponse | None = None
    matrix: MatrixRow | None = None

    @property
    def kind(self) -> Kind:
        """The class of the question's type."""
        return KINDS[self.type]

    @property
    def device_channel(self) -> AnyChannel:
        """The channel that devices run: that of the joint response, if the question has one."""
        return self.joint.channel if self.joint else self.channel

    @property
    def code_bytes(self) -> int:
        """Bytes that an answer to this question takes in a stored report."""
        return self.channel.code_bytes + self.nullable

    def encode(self, code: object) -> bytes:
        """Return the stored bytes of a code; raises ChannelError that says what it must be."""
        if not self.nullable:
            return self.channel.encode(code)
        if code is None:
            return bytes(self.code_bytes)
        return ASKED_PREFIX + self.channel.encode(code)

    def count(self, codes: Codes) -> tuple[int, Integers]:
        """Return how many respondents were asked, and the counts of their codes.

        `codes` has the shape (n, code_bytes).
        """
        n_asked, counts = self.count_segments(codes, [len(codes)])
        return int(n_asked[0]), counts[0]

    def count_segments(self, codes: Codes, sizes: Sequence[int]) -> tuple[Integers, Integers]:
        """Return, for each segment, how many respondents were asked, and the counts of their codes.

        `codes` has the shape (n, code_bytes); the sizes of its consecutive segments add up to n.
        The first array has the shape (segments,), the second (segments, counted).
        """
        n_asked = np.array(sizes)
        if self.nullable:
            is_asked = codes[:, 0] == ASKED_PREFIX[0]
            segments = np.repeat(np.arange(len(sizes)), sizes)
            n_asked = np.bincount(segments[is_asked], minlength=len(sizes))
            codes = codes[is_asked, 1:]
        return n_asked, self.channel.count_segments(np.ascontiguousarray(codes), n_asked.tolist())

    def truth(self, answer: int | Sequence[int]) -> Answer:
        """Return the channel's input for an answer: an option or grid index, or the ticked options.

        Raises KeyError for ticks that exclude each other.
        """
        if self.kind.is_ranking:
            return self.kind.truth(self, answer if isinstance(answer, int) else tuple(answer))
        if isinstance(answer, int):
            return answer
        if self.by_patterns:
            return {pattern: i for i, pattern in enumerate(self.patterns)}[tuple(sorted(answer))]
        return tuple(int(option in answer) for option in range(len(self.options)))

    @cached_property
    def patterns(self) -> tuple[multiple_choice.Pattern, ...]:
        """The sets of options that the truths of a multiple choice by subsets stand for."""
        return multiple_choice.patterns(len(self.options) - self.alone, self.max_ticks, self.alone)

    @property
    def by_patterns(self) -> bool:
        """Whether a multiple choice is asked by generalized randomized response over its sets."""
        return self.kind.is_multiple and isinstance(self.channel, SubsetSelection)
