"""Poisoning: the largest effect of fabricated reports on an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import (
    CodeChannel,
    checked_arguments,
    checked_values,
    whole_counts,
)
from survey.estimator.core.debiasing import left_inverse, pseudo_values
from survey.estimator.core.result import Result
from survey.estimator.numbers.mean import Mean, mean
from survey.estimator.shares.answered_shares import AnsweredShares, answered_shares
from survey.estimator.shares.multiple_choice import (
    OptionPairs,
    membership,
    pairs_in_patterns,
    two_bit_values,
)
from survey.estimator.shares.proportions import POPULATION, Proportions, proportions
from survey.mechanism import AnyChannel, BitVector, HalfSpace, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Floats, Integers, PureChannel

Estimated = Proportions | AnsweredShares | Mean | OptionPairs

FAKES = (0.01, 0.05, 0.10)
"""Fractions of all reports that the worst cases assume to be fabricated."""


@dataclass(frozen=True, eq=False, repr=False)
class Poisoning(Result):
    """Effect of fabricated reports among the n reports; arrays have one entry per estimate.

    estimate           of all reports, including fabricated ones; linear, unclipped
    margin             half of its interval: (conf_high - conf_low)/2
    largest_shift      maximum effect of one more fabricated report
    fakes_per_margin   fabricated reports that move the estimate by one margin, at least 1
    low_1, high_1      range of the estimate from the honest reports alone if 1 % of all are
                       fabricated, whatever their content; in [0, 1] (for a mean, in the range of
                       the values)
    low_5 ... high_10  the ranges for 5 % and 10 %
    n                  reports
    level, method      of the interval

    The bands cover manipulation only, not the uncertainty of the interval.
    """

    estimate: Floats
    margin: Floats
    largest_shift: Floats
    fakes_per_margin: Integers
    low_1: Floats
    high_1: Floats
    low_5: Floats
    high_5: Floats
    low_10: Floats
    high_10: Floats
    n: int
    level: float
    method: str

    def fakes_for(self, distance: ArrayLike) -> Integers:
        """Return how many fabricated reports move each estimate by a distance, from 1 to n."""
        return _count_fakes(np.asarray(distance), self.largest_shift, self.n)


@checked_arguments
def poisoning(
    found: Proportions, channel: AnyChannel, *, patterns: Sequence[Sequence[int]] | None = None
) -> Poisoning:
    """Bound the effect of fabricated reports on each of the shares estimated through a channel.

    `found` is the result of `proportions` or `set_shares`, or with `patterns` of `subset_shares`;
    the margins are those of its intervals, for every level, method and target.

    A fabricated report that replaces an average report moves the estimate by max(g_max - estimate,
    estimate - g_min)/n, for options of p and q up by (1 - lambda)/((p-q) n), lambda = q + (p-q) pi.
    If a fraction b of the n reports is fabricated, the honest ones alone would give (estimate - b
    g)/(1 - b) for some g between the two extremes: the band. It is exact: no fabricated reports can
    do more, and reports that are always the same extreme one do as much.

    If every report contains only some options (sampled bits), all fabricated reports may claim to
    be about the same one. If they are as many as the reports about an option, the band is [0, 1].
    An option without reports has this band and no estimate. For other estimates use
    `poisoning_of_mean`, `poisoning_of_answered`, `poisoning_of_no_answers`, `poisoning_of_pairs`.
    Sources: Cheu, Smith, Ullman 2021; Cao, Jia, Gong 2021 (the attack that reaches the bound).

    Raises ChannelError for shares that are not those of this channel's options, CountsError for
    counts instead of a result.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> channel = grr(2, "3/4")
    >>> bounds = poisoning(proportions([500, 500], channel), channel)
    >>> bounds.fakes_per_margin.tolist(), bounds.low_10.round(3).tolist()
    ([63, 63], [0.389, 0.389])
    """
    options = found.estimate.size
    if patterns is not None:
        if not isinstance(channel, SubsetSelection):
            raise ChannelError("patterns are reported by generalized randomized response")
        # N_j of the patterns contain option j, reported with N_j q if it was not chosen.
        holding = membership(patterns, channel.k, options).sum(axis=1)
        return bounded(found, *binary_ends(channel, holding * channel.q))
    if options != channel.options:
        raise ChannelError(f"{options} shares, but the channel has {channel.options} options")
    if isinstance(channel, WeightTable):
        G = left_inverse(channel)
        return bounded(found, G.min(axis=1), G.max(axis=1))
    return bounded(found, *binary_ends(channel, np.full(options, channel.q)))


def binary_ends(channel: PureChannel, q: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and largest value of (supported - q)/D, supported 0 or 1."""
    D = channel.p - channel.q
    minimum, maximum = np.sort(np.stack([-q, 1 - q]) / D, axis=0)
    return minimum, maximum


@checked_arguments
def poisoning_of_mean(
    counts: ArrayLike,
    channel: CodeChannel,
    values: Sequence[float | None] | ArrayLike,
    *,
    level: float = 0.95,
) -> Poisoning:
    """Bound the effect of fabricated reports on a mean among those who answered.

    Arguments and errors are those of `mean`. Arrays have shape (1,); estimate and margin are those
    of `mean`.

    The mean is A/B, the means of pseudo-values a (the answer, 0 for none) and b (whether there is
    one). Without the fabricated reports it is (A - b' a_j)/(B - b' b_j), b' their fraction, for
    some report j, or between two such. If that would leave no answers, the band is the range of the
    values.

    >>> from survey.mechanism.numeric import one_bit
    >>> bounds = poisoning_of_mean([500, 500], one_bit(11, 1), range(11))
    >>> round(float(bounds.largest_shift[0]), 4), bounds.fakes_per_margin.tolist()
    (0.0108, [63])
    """
    result = mean(counts, channel, values, level=level)
    x = checked_values(values, channel.truths)
    answered = ~np.isnan(x)
    middle, half = (result.low + result.high) / 2, (result.high - result.low) / 2
    # Values on the scale [-1, 1], as in `mean`.
    a = pseudo_values(channel, np.where(answered, (x - middle) / half, 0.0), result.n).values
    b = np.ones(a.size)
    if not answered.all():
        b = pseudo_values(channel, answered.astype(np.float64), result.n).values
    f = whole_counts(counts, a.size, "one per report") / result.n
    A, B, step = float(f @ a), float(f @ b), 1 / result.n
    at = (result.estimate - middle) / half
    shifted = _ratios(A * (1 - step) + step * a, B * (1 - step) + step * b)
    bands = [_ratios(A - part * a, B - part * b) for part in FAKES]
    return poisoned(
        result,
        np.array([result.estimate]),
        half * np.array([max(shifted[1] - at, at - shifted[0])]),
        middle + half * np.clip(np.array(bands), -1.0, 1.0)[:, :, None],
    )


def _ratios(top: Floats, bottom: Floats) -> tuple[float, float]:
    """Return the smallest and the largest quotient; [-1, 1] if a denominator may be 0."""
    if bottom.min() <= 0:
        return -1.0, 1.0
    return float((top / bottom).min()), float((top / bottom).max())


def bounded(shares: Proportions | OptionPairs, minimum: Floats, maximum: Floats) -> Poisoning:
    """Return the bounds of shares with pseudo-values from minimum to maximum, shape (k,)."""
    has_reports = shares.reports > 0
    estimate, reports = np.where(has_reports, shares.estimate, 0.0), np.maximum(shares.reports, 1)
    shift = np.maximum(maximum - estimate, estimate - minimum) / reports
    parts = [np.where(has_reports, part * shares.n / reports, 1.0) for part in FAKES]
    ends = np.array([_band(estimate, minimum, maximum, part) for part in parts])
    return poisoned(
        shares,
        np.where(has_reports, estimate, np.nan),
        np.where(has_reports, shift, 1.0),
        np.clip(ends, 0.0, 1.0),
    )


def _band(
    estimate: Floats, minimum: Floats, maximum: Floats, part: Floats
) -> tuple[Floats, Floats]:
    """Return (estimate - b g)/(1 - b) at both extremes of g; [0, 1] if b reaches 1."""
    honest = np.where(part < 1, 1 - part, np.nan)
    low, high = (estimate - part * maximum) / honest, (estimate - part * minimum) / honest
    return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)


def poisoned(result: Estimated, estimate: Floats, shift: Floats, ends: Floats) -> Poisoning:
    """Return the result, from the bands of all `FAKES` as ends of shape (3, 2, estimates)."""
    margin = np.atleast_1d((result.conf_high - result.conf_low) / 2)
    names = ("low_1", "high_1", "low_5", "high_5", "low_10", "high_10")
    bands: dict[str, Floats] = dict(zip(names, [end for band in ends for end in band], strict=True))
    return Poisoning(
        estimate=estimate,
        margin=margin,
        largest_shift=shift,
        fakes_per_margin=_count_fakes(margin, shift, result.n),
        **bands,
        n=result.n,
        level=result.level,
        method=result.method,
    )


def _count_fakes(distance: Floats, shift: Floats, n: int) -> Integers:
    """Return how many fabricated reports, each of which shifts an estimate, cover the distance."""
    return np.clip(np.ceil(distance / shift), 1, n).astype(np.int64)


class _Kinds(NamedTuple):
    """Pseudo-values of every kind of report: a of each answer (answers, kinds), b (kinds,)."""

    a: Floats
    b: Floats


@checked_arguments
def poisoning_of_answered(
    counts: ArrayLike,
    channel: AnyChannel,
    no_answers: Sequence[int],
    *,
    n: int | None = None,
    patterns: Sequence[Sequence[int]] | None = None,
    level: float = 0.95,
    simultaneous: bool = False,
    target: str = POPULATION,
) -> Poisoning:
    """Bound the effect of fabricated reports on shares among those who answered, one per answer.

    Arguments as in `answered_shares`. The share is pi/A, the means of pseudo-values a (of the
    option) and b (of any answer). Without a fraction f of fabricated reports it is (pi - f a)/(A -
    f b) for one kind of report, or between two of them. If that would leave no answers, the band is
    [0, 1]. An option without reports has the band [0, 1]. NoBaseError as `answered_shares`.

    >>> from survey.mechanism import grr
    >>> found = poisoning_of_answered([400, 1000, 600], grr(3, "3/4"), [2])
    >>> found.low_5.round(3).tolist(), found.high_5.round(3).tolist()
    ([0.076, 0.803], [0.197, 0.924])
    """
    shares = answered_shares(
        counts,
        channel,
        no_answers,
        n=n,
        patterns=patterns,
        level=level,
        simultaneous=simultaneous,
        target=target,
    )
    if isinstance(channel, TickChannel) and channel.is_sampled:
        shifted, *bands = _sampled_ranges(counts, channel, no_answers, shares)
    else:
        kinds = _kinds(channel, shares, no_answers, patterns)
        A, step = shares.answered, 1 / shares.n
        pi = shares.estimate * A
        shifted = _range((1 - step) * pi, (1 - step) * A, -step, kinds)
        bands = [_range(pi, A, part, kinds) for part in FAKES]
    shift = np.maximum(shifted[1] - shares.estimate, shares.estimate - shifted[0])
    # Of an option without reports nothing is known: one report can move it anywhere.
    has_reports = shares.reports > 0
    nothing_known = np.array([0.0, 1.0])[None, :, None]
    ends = np.where(has_reports, np.clip(np.array(bands), 0.0, 1.0), nothing_known)
    return poisoned(shares, shares.estimate, np.where(has_reports, shift, 1.0), ends)


@checked_arguments
def poisoning_of_no_answers(found: Proportions, channel: WeightTable) -> Poisoning:
    """Bound the effect of fabricated reports on each share from `no_answer_shares`, `found`.

    ChannelError for shares that are not those of this channel's no-answer truths.

    >>> from survey.estimator import no_answer_shares
    >>> from survey.mechanism.numeric import one_bit
    >>> channel = one_bit(11, 1, no_answers=1)
    >>> poisoning_of_no_answers(no_answer_shares([500, 480, 300], channel), channel).low_5.tolist()
    [0.0]
    """
    if found.estimate.size != channel.no_answers:
        raise ChannelError(
            f"{found.estimate.size} shares, but the channel has {channel.no_answers} no answers"
        )
    truths = range(channel.truths - channel.no_answers, channel.truths)
    values = [pseudo_values(channel, np.eye(1, channel.truths, t)[0], found.n) for t in truths]
    g = np.stack([solution.values for solution in values])
    return bounded(found, g.min(axis=1), g.max(axis=1))


def _range(pi: Floats, A: float, part: float, kinds: _Kinds) -> tuple[Floats, Floats]:
    """Return the extremes of (pi - f a)/(A - f b) over all kinds; [0, 1] if A - f b may be 0."""
    bottom = A - part * kinds.b
    if bottom.min() <= 0:
        return np.zeros(pi.shape), np.ones(pi.shape)
    ratios = (pi[:, None] - part * kinds.a) / bottom
    return ratios.min(axis=1), ratios.max(axis=1)


def _kinds(
    channel: AnyChannel,
    shares: AnsweredShares,
    no_answers: Sequence[int],
    patterns: Sequence[Sequence[int]] | None,
) -> _Kinds:
    answers, silent = shares.option, np.unique(np.asarray(no_answers, dtype=np.int64))
    if isinstance(channel, WeightTable):
        a = left_inverse(channel)[answers]
        return _Kinds(a, a.sum(axis=0))
    D = channel.p - channel.q
    if patterns is not None:
        holds = membership(patterns, len(patterns), len(answers) + len(silent))
        g = (holds - holds.sum(axis=1, keepdims=True) * channel.q) / D
        return _Kinds(g[answers], 1 - g[silent].sum(axis=0))
    pairs = np.array(_supports(channel, len(silent)))
    a = np.tile((pairs[:, 0] - channel.q) / D, (len(answers), 1))
    return _Kinds(a, 1 - (pairs[:, 1] - len(silent) * channel.q) / D)


def _supports(channel: SubsetSelection | TickChannel, S: int) -> list[tuple[int, int]]:
    """Return whether a report can support the option, and how many of the S no-answer options."""
    pairs = [(option, silent) for option in (0, 1) for silent in range(S + 1)]
    if isinstance(channel, TickChannel):
        return pairs
    # The remainder of a set of d options comes from the other answers.
    return [pair for pair in pairs if 0 <= channel.d - sum(pair) <= channel.k - S - 1]


def _sampled_ranges(
    counts: ArrayLike,
    channel: BitVector | HalfSpace,
    no_answers: Sequence[int],
    shares: AnsweredShares,
) -> list[tuple[Floats, Floats]]:
    """Return ranges after one more fabricated report and for all `FAKES`, from single options."""
    # The intervals are not used, so choose the fastest.
    every = proportions(counts, channel, n=shares.n, level=shares.level, interval="wilson")
    alone = poisoning(every, channel)
    silent = np.unique(np.asarray(no_answers, dtype=np.int64))
    bands = [
        (alone.estimate - alone.largest_shift, alone.estimate + alone.largest_shift),
        (alone.low_1, alone.high_1),
        (alone.low_5, alone.high_5),
        (alone.low_10, alone.high_10),
    ]
    return [_quotients(low, high, shares.option, silent) for low, high in bands]


def _quotients(
    low: Floats, high: Floats, answers: Integers, silent: Integers
) -> tuple[Floats, Floats]:
    """Return the range of top/(1 - sum of the silent); [0, 1] if the bottom may be 0."""
    minimum, maximum = 1 - high[silent].sum(), 1 - low[silent].sum()
    if minimum <= 0:
        return np.zeros(answers.shape), np.ones(answers.shape)
    return (
        np.minimum(low[answers] / maximum, low[answers] / minimum),
        np.maximum(high[answers] / minimum, high[answers] / maximum),
    )


@checked_arguments
def poisoning_of_pairs(
    found: OptionPairs,
    channel: BitVector | HalfSpace | SubsetSelection,
    *,
    patterns: Sequence[Sequence[int]] | None = None,
) -> Poisoning:
    """Bound the effect of fabricated reports on each share of a pair, as `poisoning` does.

    `found` is the result of `bit_pairs`, or with `patterns` of `option_pairs`. For bits the
    pseudo-value of a report is that of `bit_pairs`; for patterns (supported - N q)/(p-q),
    where N patterns contain both. If options are sampled, all fabricated reports may claim to be
    about both.

    Raises ChannelError for another channel than that of the pairs, CountsError if the number of
    reports is unknown.

    >>> from survey.estimator import bit_pairs
    >>> channel = BitVector(2, 2, 3, 1)
    >>> bounds = poisoning_of_pairs(bit_pairs([[300, 200, 200, 300]], channel, [(0, 1)]), channel)
    >>> bounds.low_5.round(3).tolist(), bounds.high_5.round(3).tolist()
    ([0.355], [0.513])
    """
    if patterns is None:
        if not isinstance(channel, TickChannel) or found.second.max() >= channel.m:
            raise ChannelError(
                "the pairs are not options of this channel; for patterns, give patterns"
            )
        values = two_bit_values(channel)[0][0]
        minimum, maximum = (np.full(found.first.size, end) for end in (values.min(), values.max()))
    else:
        minimum, maximum = _pattern_range(found, channel, patterns)
    if not found.n:
        raise CountsError(
            "sampled options do not determine the number of reports: give n to bit_pairs"
        )
    return bounded(found, minimum, maximum)


def _pattern_range(
    pairs: OptionPairs,
    channel: BitVector | HalfSpace | SubsetSelection,
    patterns: Sequence[Sequence[int]],
) -> tuple[Floats, Floats]:
    if not isinstance(channel, SubsetSelection):
        raise ChannelError("patterns are reported by generalized randomized response")
    first, second, contains_both = pairs_in_patterns(
        patterns, channel.k, int(pairs.second.max()) + 1
    )
    if not (np.array_equal(first, pairs.first) and np.array_equal(second, pairs.second)):
        raise ChannelError("the pairs are not those of these patterns")
    return binary_ends(channel, contains_both.sum(axis=1) * channel.q)
