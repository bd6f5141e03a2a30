"""Rankings: the share of first places and the mean rank of every option, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from survey.errors import ChannelError, NoBaseError
from survey.estimator.core.arguments import checked_arguments, checked_level, whole_counts
from survey.estimator.numbers.mean import Mean, mean
from survey.estimator.shares.answered_shares import AnsweredShares, answered_shares
from survey.estimator.shares.proportions import Proportions, proportions
from survey.mechanism import WeightTable
from survey.mechanism.ranking import (
    first_choice_channel,
    first_choice_counts,
    first_or_order_shape,
    rank_values,
)


@dataclass(frozen=True, repr=False)
class Ranking:
    """Estimates of a ranking of m options.

    first      share of each option's first places and of each opt-out among all, (m + opt-outs,)
    answered   share of each option's first places among people who ranked the options, (m,); None
               without opt-outs, or if hardly anybody ranked the options
    mean_rank  from 1 (first place) to m (last place), among people who ranked the options, (m,);
               empty if hardly anybody ranked them
    """

    first: Proportions
    answered: AnsweredShares | None
    mean_rank: tuple[Mean, ...]

    def __repr__(self) -> str:
        ranks = ", ".join(f"{rank.estimate:.2f}" for rank in self.mean_rank)
        return f"Ranking(first={self.first!r}, mean_rank=[{ranks}])"


@checked_arguments
def ranking(
    counts: ArrayLike, channel: WeightTable, *, level: float = 0.95, simultaneous: bool = False
) -> Ranking:
    """Estimate shares of first places and mean ranks from the counts of a ranking's reports.

    `counts` has one count per report of a `first_or_order` channel. First places are estimated like
    shares of single answers (`proportions`, `answered_shares`); all orders of some options count as
    one report that says nothing about first places. The mean rank of option i is

        1 + sum over j of P(j is preferred to i)

    and is estimated like the mean of a number from 1 to m (`mean`), with pseudo-values that are
    unbiased for every ranking. `simultaneous` intervals cover all options at once with probability
    `level`, by Bonferroni's inequality for mean ranks. Raises ChannelError for another channel,
    CountsError for impossible counts, DesignError for an impossible level. Sources: Marden 1995,
    chapter 2; Fieller 1954; Johnson 1978 (skewness).

    For the simulated coverage of both at level .95, see `tests/estimator/shares/test_ranking.py`.

    >>> from survey.mechanism.ranking import first_or_order
    >>> counts = [300, 150, 150, 200, 100, 200, 100, 150, 150]
    >>> [round(rank.estimate, 2) for rank in ranking(counts, first_or_order(3, 1)).mean_rank]
    [2.2, 2.2, 1.6]
    """
    checked_level(level)
    shape = first_or_order_shape(channel)
    if shape is None:
        raise ChannelError("a ranking needs a channel from `first_or_order`")
    c = whole_counts(counts, channel.counted, "one per report")
    marginal, merged = first_choice_channel(channel), first_choice_counts(c, channel)
    arguments: dict[str, Any] = {"level": level, "simultaneous": simultaneous}
    answered, ranks = None, mean_ranks(c, channel, **arguments)
    if channel.no_answers:
        opt_outs = range(shape.m, shape.m + channel.no_answers)
        try:
            answered = answered_shares(merged, marginal, tuple(opt_outs), **arguments)
        except NoBaseError:
            answered = None
    return Ranking(proportions(merged, marginal, **arguments), answered, ranks)


@checked_arguments
def mean_ranks(
    counts: ArrayLike, channel: WeightTable, *, level: float = 0.95, simultaneous: bool = False
) -> tuple[Mean, ...]:
    """Return the mean rank of every option; empty if hardly anybody ranked the options."""
    shape = first_or_order_shape(channel)
    if shape is None:
        raise ChannelError("a ranking needs a channel from `first_or_order`")
    per_option = mean_rank_level(shape.m, level, simultaneous=simultaneous)
    try:
        return tuple(
            mean(counts, channel, rank_values(channel, option), level=per_option)
            for option in range(shape.m)
        )
    except NoBaseError:
        return ()


def mean_rank_level(m: int, level: float, *, simultaneous: bool) -> float:
    """Return the level of each of m intervals: 1 - (1-level)/m for simultaneous coverage.

    >>> mean_rank_level(5, 0.95, simultaneous=True)
    0.99
    """
    return 1 - (1 - level) / m if simultaneous else level
