"""Poisoning: how far fabricated reports can move an estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import checked_arguments, whole_counts
from survey.estimator.core.pseudo_values import left_inverse, pseudo_values
from survey.estimator.core.result import Result
from survey.estimator.numbers.mean import Mean, mean
from survey.estimator.shares.answered import AnsweredShares, answered_shares
from survey.estimator.shares.binomial import POPULATION, Proportions
from survey.estimator.shares.option_pairs import OptionPairs, holding_both, of_two_bits
from survey.estimator.shares.proportions import membership, proportions
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats, Integers

Estimated = Proportions | AnsweredShares | Mean | OptionPairs

FAKES = (0.01, 0.05, 0.10)
"""Parts of all reports that the worst cases take as fake."""


@dataclass(frozen=True, eq=False, repr=False)
class Poisoning(Result):
    """What fakes among the n reports can do; arrays have one entry per estimate.

    estimate           of all reports, fakes included; linear, unclipped
    margin             half of its interval: (conf_high - conf_low)/2
    largest_shift      one more fake among the n reports moves the estimate by up to this
    fakes_per_margin   fakes that move it by one margin, at least 1
    low_1, high_1      where the estimate of the honest reports alone lies if 1 % of all are fake,
                       whatever these reported; in [0, 1] (of a mean: in the range of the values)
    low_5 ... high_10  the same for 5 % and 10 %
    n                  reports
    level, method      of the interval

    The bands bound manipulation only; the interval of the estimate comes on top.
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
        """Fakes that move each estimate so far, from 1 to n; `distance` in its unit."""
        return _needed(np.asarray(distance), self.largest_shift, self.n)


@checked_arguments
def poisoning(
    found: Proportions,
    channel: AnyChannel,
    *,
    patterns: Sequence[Sequence[int]] | None = None,
) -> Poisoning:
    """Bound what fake reports can have done to each of the shares found through a channel.

    `found` is what `proportions` or `set_shares` gave, with `patterns` what `subset_shares` did;
    the margins are those of its intervals, whatever their level, method and target.

    A fake that takes the place of an average report moves the estimate by
    max(g_max - estimate, estimate - g_min)/n, for options of p and q up by (1 - lambda)/((p-q) n),
    lambda = q + (p-q) pi. With a part b of fakes among the n reports the honest ones alone would
    give (estimate - b g)/(1 - b) for some g between the two extremes: the band. It is exact: no
    fakes can do more, and a report that is always the same extreme one does as much.

    Where every report holds only some options (sampled bits) all fakes may claim to have been
    asked about the same one; where as many reports bear on an option as there are fakes, nothing
    is left, and the band is [0, 1]: so it is, around no estimate, of an option that nobody was
    asked about. Of patterns one report moves an option's share by
    (1 - lambda_j)/((p-q) n), lambda_j the part of reports whose pattern holds it.
    For other estimates there are `poisoning_of_mean`, `poisoning_of_answered`,
    `poisoning_of_no_answers`, `poisoning_of_pairs`.
    Sources: Cheu, Smith, Ullman 2021; Cao, Jia, Gong 2021 (the attack that reaches the bound).

    Raises ChannelError for shares that are not those of this channel's options, CountsError for
    counts in their place.

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
        # N_j of the patterns hold option j: reported with N_j q when it was not ticked.
        holding = membership(patterns, channel.k, options).sum(axis=1)
        return bounded(found, *binary_ends(channel, holding * channel.q))
    if options != channel.options:
        raise ChannelError(f"{options} shares, of a channel that has {channel.options} options")
    if isinstance(channel, WeightTable):
        G = left_inverse(channel)
        return bounded(found, G.min(axis=1), G.max(axis=1))
    return bounded(found, *binary_ends(channel, np.full(options, channel.q)))


def binary_ends(channel: SubsetSelection | BitVector, q: Floats) -> tuple[Floats, Floats]:
    """The least and largest of (supported - q)/D, supported 0 or 1."""
    D = channel.p - channel.q
    least, most = np.sort(np.stack([-q, 1 - q]) / D, axis=0)
    return least, most


@checked_arguments
def poisoning_of_mean(
    counts: ArrayLike,
    channel: SubsetSelection | WeightTable,
    values: Sequence[float | None] | ArrayLike,
    *,
    level: float = 0.95,
) -> Poisoning:
    """Bound what fakes can have done to a mean among those who answered; arguments as in `mean`.

    Arrays have shape (1,), estimate and margin are those of `mean`, which refuses what it refuses:
    NoBaseError where hardly anybody seems to have answered.

    The mean is A/B, the means of pseudo-values a (the answer, 0 for none) and b (whether there was
    one); without the fakes it is (A - b' a_j)/(B - b' b_j), b' their part, for some report j, or
    between two such. Where that would leave no answers the band is all of the values.

    >>> from survey.mechanism.numeric import one_bit
    >>> found = poisoning_of_mean([500, 500], one_bit(11, 1), range(11))
    >>> round(float(found.largest_shift[0]), 4), found.fakes_per_margin.tolist()
    (0.0108, [63])
    """
    found = mean(counts, channel, values, level=level)
    x = np.array([math.nan if v is None else v for v in np.asarray(values, dtype=object)], float)
    answered = ~np.isnan(x)
    middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
    # As `mean` reads them: values on [-1, 1].
    a = pseudo_values(channel, np.where(answered, (x - middle) / half, 0.0), found.n).values
    b = np.ones(a.size)
    if not answered.all():
        b = pseudo_values(channel, answered.astype(np.float64), found.n).values
    f = whole_counts(counts, a.size, "one per report") / found.n
    A, B, one = float(f @ a), float(f @ b), 1 / found.n
    at = (found.estimate - middle) / half
    moved = _ratios(A * (1 - one) + one * a, B * (1 - one) + one * b)
    bands = [_ratios(A - part * a, B - part * b) for part in FAKES]
    return poisoned(
        found,
        np.array([found.estimate]),
        half * np.array([max(moved[1] - at, at - moved[0])]),
        middle + half * np.clip(np.array(bands), -1.0, 1.0)[:, :, None],
    )


def _ratios(top: Floats, bottom: Floats) -> tuple[float, float]:
    """The least and the largest quotient; all of [-1, 1] where nobody may be left below."""
    if bottom.min() <= 0:
        return -1.0, 1.0
    return float((top / bottom).min()), float((top / bottom).max())


def bounded(shares: Proportions | OptionPairs, least: Floats, most: Floats) -> Poisoning:
    """The bounds of shares whose reports have pseudo-values from least to most, shape (k,)."""
    asked = shares.reports > 0
    estimate, reports = np.where(asked, shares.estimate, 0.0), np.maximum(shares.reports, 1)
    shift = np.maximum(most - estimate, estimate - least) / reports
    parts = [np.where(asked, part * shares.n / reports, 1.0) for part in FAKES]
    ends = np.array([_band(estimate, least, most, part) for part in parts])
    return poisoned(
        shares,
        np.where(asked, estimate, np.nan),
        np.where(asked, shift, 1.0),
        np.clip(ends, 0.0, 1.0),
    )


def _band(estimate: Floats, least: Floats, most: Floats, part: Floats) -> tuple[Floats, Floats]:
    """(estimate - b g)/(1 - b) at both extremes of g; everything where b reaches 1."""
    left = np.where(part < 1, 1 - part, np.nan)
    low, high = (estimate - part * most) / left, (estimate - part * least) / left
    return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)


def poisoned(found: Estimated, estimate: Floats, shift: Floats, ends: Floats) -> Poisoning:
    """The result, from the bands of all `FAKES` as ends of shape (3, 2, estimates)."""
    margin = np.atleast_1d((found.conf_high - found.conf_low) / 2)
    (low_1, high_1), (low_5, high_5), (low_10, high_10) = ends
    return Poisoning(
        estimate=estimate,
        margin=margin,
        largest_shift=shift,
        fakes_per_margin=_needed(margin, shift, found.n),
        low_1=low_1,
        high_1=high_1,
        low_5=low_5,
        high_5=high_5,
        low_10=low_10,
        high_10=high_10,
        n=found.n,
        level=found.level,
        method=found.method,
    )


def _needed(distance: Floats, shift: Floats, n: int) -> Integers:
    """Fakes, each of which moves an estimate by the shift, for the distance; from 1 to n."""
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
    """Bound what fakes can have done to shares among those who answered, one per answer.

    Arguments as in `answered_shares`. The share is pi/A, the means of pseudo-values a (of the
    option) and b (of any answer); without a part f of fakes it is (pi - f a)/(A - f b) for one
    kind of report, or between two of them. Where that would leave no answers it may be anything.
    Of sampled options it is the least top over the largest bottom and the other way round, which
    no fakes can exceed and hardly any reach. NoBaseError as `answered_shares`.

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
    if isinstance(channel, BitVector) and channel.is_sampled:
        moved, *bands = _sampled_ranges(counts, channel, no_answers, shares)
    else:
        kinds = _kinds(channel, shares, no_answers, patterns)
        A, one = shares.answered, 1 / shares.n
        pi = shares.estimate * A
        moved = _range((1 - one) * pi, (1 - one) * A, -one, kinds)
        bands = [_range(pi, A, part, kinds) for part in FAKES]
    shift = np.maximum(moved[1] - shares.estimate, shares.estimate - moved[0])
    # Of an option without reports nothing is known: one report can move it anywhere.
    has_reports = shares.reports > 0
    nothing_known = np.array([0.0, 1.0])[None, :, None]
    ends = np.where(has_reports, np.clip(np.array(bands), 0.0, 1.0), nothing_known)
    return poisoned(shares, shares.estimate, np.where(has_reports, shift, 1.0), ends)


@checked_arguments
def poisoning_of_no_answers(found: Proportions, channel: WeightTable) -> Poisoning:
    """Bound what fakes can have done to each share that `no_answer_shares` found.

    ChannelError for shares that are not those of this channel's no answers.

    >>> from survey.estimator import no_answer_shares
    >>> from survey.mechanism.numeric import one_bit
    >>> channel = one_bit(11, 1, no_answers=1)
    >>> poisoning_of_no_answers(no_answer_shares([500, 480, 300], channel), channel).low_5.tolist()
    [0.0]
    """
    if found.estimate.size != channel.no_answers:
        raise ChannelError(
            f"{found.estimate.size} shares, of a channel that has {channel.no_answers} no answers"
        )
    truths = range(channel.truths - channel.no_answers, channel.truths)
    values = [pseudo_values(channel, np.eye(1, channel.truths, t)[0], found.n) for t in truths]
    g = np.stack([each.values for each in values])
    return bounded(found, g.min(axis=1), g.max(axis=1))


def _range(pi: Floats, A: float, part: float, kinds: _Kinds) -> tuple[Floats, Floats]:
    """The least and largest (pi - f a)/(A - f b) of all kinds; [0, 1] where nobody may be left."""
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


def _supports(channel: SubsetSelection | BitVector, S: int) -> list[tuple[int, int]]:
    """Whether a report can support the option, with how many of the S no-answer options."""
    if isinstance(channel, BitVector):
        return [(own, silent) for own in (0, 1) for silent in range(S + 1)]
    d, others = channel.d, channel.k - S - 1
    return [
        (own, silent)
        for own in (0, 1)
        for silent in range(S + 1)
        if 0 <= d - own - silent <= others
    ]


def _sampled_ranges(
    counts: ArrayLike, channel: BitVector, no_answers: Sequence[int], shares: AnsweredShares
) -> list[tuple[Floats, Floats]]:
    """Of one fake more and of all `FAKES`: from the bounds of each option's share alone."""
    # The intervals of these are not used: the cheapest will do.
    every = proportions(counts, channel, n=shares.n, level=shares.level, interval="wilson")
    alone = poisoning(every, channel)
    silent = np.unique(np.asarray(no_answers, dtype=np.int64))
    bands = [(alone.estimate - alone.largest_shift, alone.estimate + alone.largest_shift)]
    bands += [(alone.low_1, alone.high_1), (alone.low_5, alone.high_5)]
    bands += [(alone.low_10, alone.high_10)]
    return [_quotients(low, high, shares.option, silent) for low, high in bands]


def _quotients(
    low: Floats, high: Floats, answers: Integers, silent: Integers
) -> tuple[Floats, Floats]:
    """The range of top/(1 - sum of the silent), each within its own; [0, 1] if none may be left."""
    least, most = 1 - high[silent].sum(), 1 - low[silent].sum()
    if least <= 0:
        return np.zeros(answers.shape), np.ones(answers.shape)
    return (
        np.minimum(low[answers] / most, low[answers] / least),
        np.maximum(high[answers] / least, high[answers] / most),
    )


@checked_arguments
def poisoning_of_pairs(
    found: OptionPairs,
    channel: BitVector | SubsetSelection,
    *,
    patterns: Sequence[Sequence[int]] | None = None,
) -> Poisoning:
    """Bound what fake reports can have done to each share of a pair, as `poisoning` does.

    `found` is what `bit_pairs` gave, with `patterns` what `option_pairs` did. Of bits the
    pseudo-value of a report is g_a g_b, g = (bit - q)/(p-q); of patterns (supported - N q)/(p-q),
    N patterns holding both. Of sampled options all fakes may claim to have been asked about both.

    Raises ChannelError for another channel than the pairs are of, CountsError where the number of
    reports is not known.

    >>> from survey.estimator import bit_pairs
    >>> channel = BitVector(2, 2, 3, 1)
    >>> bounds = poisoning_of_pairs(bit_pairs([[300, 200, 200, 300]], channel, [(0, 1)]), channel)
    >>> bounds.low_5.round(3).tolist(), bounds.high_5.round(3).tolist()
    ([0.355], [0.513])
    """
    if patterns is None:
        least, most = _of_bits(found, channel)
    else:
        least, most = _of_patterns(found, channel, patterns)
    if not found.n:
        raise CountsError(
            "sampled options do not tell how many reports there are: give bit_pairs n"
        )
    return bounded(found, least, most)


def _of_bits(found: OptionPairs, channel: BitVector | SubsetSelection) -> tuple[Floats, Floats]:
    if not isinstance(channel, BitVector) or found.second.max() >= channel.m:
        raise ChannelError(
            "the pairs are not of this channel's options; of patterns, give patterns"
        )
    both = of_two_bits(channel)[0][0]
    return np.full(found.first.size, both.min()), np.full(found.first.size, both.max())


def _of_patterns(
    found: OptionPairs, channel: BitVector | SubsetSelection, patterns: Sequence[Sequence[int]]
) -> tuple[Floats, Floats]:
    if not isinstance(channel, SubsetSelection):
        raise ChannelError("patterns are reported by generalized randomized response")
    first, second, both = holding_both(patterns, channel.k, int(found.second.max()) + 1)
    if not (np.array_equal(first, found.first) and np.array_equal(second, found.second)):
        raise ChannelError("the pairs are not those of these patterns")
    return binary_ends(channel, both.sum(axis=1) * channel.q)
