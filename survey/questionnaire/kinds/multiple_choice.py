"""Questions whose answer is a set of options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from pydantic import StrictInt

from survey.errors import ChannelError
from survey.mechanism import multiple_choice
from survey.questionnaire.designs import DESIGNS, AnswerSpace
from survey.questionnaire.kinds.base import Answer, Kind, PublishedQuestion, Shares, SharesAndMeans
from survey.questionnaire.kinds.question import MAX_OPTIONS, OptionsQuestion
from survey.questionnaire.texts import Line


class MultipleChoice(Kind):
    """Any number of options up to a maximum, or none of them.

    The shares of simulated respondents say how many tick each option.
    """

    type = "multiple_choice"
    label = "Any number of several answers"
    has_pictures = True
    icon = "M4 4h16v16H4zM8 12l3 3 5-6"
    is_multiple = True
    mechanisms = ("bits", "sampled_options", "half_space", "subsets")
    mechanism = "bits"
    fields = ("options", "max_ticks", "shuffle_options", "none_of_these_label")
    whole_fields = ("max_ticks",)

    def recommend_mechanism(self, space: AnswerSpace, epsilon: Fraction) -> str:
        """Return the design with the smallest variance of a share."""
        sizes = space.ordinary, space.ticks, space.alone
        return multiple_choice.smallest_variance(*sizes, epsilon)[0]

    def source(self, form: Mapping[str, Any]) -> dict[str, Any]:
        limited = form["max_ticks"] != len(form["options"])
        return super().source(form) | ({"max_ticks": form["max_ticks"]} if limited else {})

    def count_truths(self, question: PublishedQuestion) -> int:
        return len(question.patterns if question.by_patterns else question.options)

    def default_shares(self, question: PublishedQuestion) -> list[float]:
        ordinary = _count_ordinary_options(question)
        return [0.4 / (1 + i) if i < ordinary else 0.0 for i in range(len(question.options))]

    def normalize_shares(self, question: PublishedQuestion, shares: list[float]) -> list[float]:
        return shares

    def draw_answers(
        self, question: PublishedQuestion, shares: Shares, n: int, rng: np.random.Generator
    ) -> list[Answer]:
        """Draw each tick independently; respondents keep the first `max_ticks`."""
        rows = rng.random((n, len(shares))) < np.array(shares)
        return [_keep_ticks(question, np.flatnonzero(row).tolist()) for row in rows]

    def option_answer(self, question: PublishedQuestion, option: int) -> Answer:
        return (option,)

    def true_shares(self, question: PublishedQuestion, shares: Shares) -> SharesAndMeans:
        """P(an option is ticked and kept): the first `max_ticks`, or one that excludes the others.

        The number of ticks before an option is Poisson-binomial, convolved option by option.
        """
        ordinary = _count_ordinary_options(question)
        before = np.array([1.0])
        probabilities = []
        for share in shares[:ordinary]:
            probabilities.append(share * float(before[: question.max_ticks].sum()))
            before = np.convolve(before, [1 - share, share])
        nothing, remaining = float(before[0]), 1.0
        for share in shares[ordinary:]:
            probabilities.append(nothing * remaining * share)
            remaining *= 1 - share
        probabilities[ordinary] += nothing * remaining
        return probabilities, {}

    def share_of_any(
        self, question: PublishedQuestion, shares: Mapping[str, float], options: Sequence[str]
    ) -> float | None:
        ordinary = {option.id for option in question.options[: _count_ordinary_options(question)]}
        ticks = [shares[name] for name in options if name in ordinary]
        alone = sum(shares[name] for name in options if name not in ordinary)
        if len(ticks) > 1 and (question.max_ticks < len(ordinary) or question.ask_if):
            return None  # one tick then tells about another
        return alone + 1 - math.prod(1 - share for share in ticks)


def _count_ordinary_options(question: PublishedQuestion) -> int:
    return len(question.options) - question.alone


def _keep_ticks(question: PublishedQuestion, ticks: Sequence[int]) -> Answer:
    """Return as many ticks as allowed, else one option that excludes the others."""
    ordinary = _count_ordinary_options(question)
    ticked = [i for i in ticks if i < ordinary][: question.max_ticks]
    alone = [i for i in ticks if i >= ordinary]
    return tuple(ticked) or tuple(alone[:1]) or (ordinary,)


class MultipleChoiceQuestion(OptionsQuestion):
    """Any number of options up to a maximum, or none of them."""

    type: Literal["multiple_choice"]
    none_of_these: Literal[True] | Line = True
    """Label of the option for none, which is always offered."""

    max_ticks: StrictInt | None = None
    """Maximum number of options that a person can tick."""

    def _check(self) -> None:
        # The number of options comes first: the allowed maximum of ticks follows from it.
        design = DESIGNS.get(self.mechanism or "")
        maximum = min(MAX_OPTIONS, design.options) if design else MAX_OPTIONS
        if mistake := self._size_mistake(2, maximum):
            raise mistake
        if self.max_ticks is not None and not 1 <= self.max_ticks <= len(self.options):
            nearest = min(max(self.max_ticks, 1), len(self.options))
            raise ChannelError(
                f"max_ticks = {self.max_ticks} is not possible with {len(self.options)} options; "
                f"the nearest allowed value is max_ticks = {nearest}"
            )

    @property
    def ticks(self) -> int:
        """The maximum of ordinary options that may be ticked."""
        return self.max_ticks or len(self.options)

    @property
    def answer_space(self) -> AnswerSpace:
        return AnswerSpace(len(self.options), 0, self.ticks, len(self.special))
