"""How far fakes could have moved shares among those who answered, and shares of no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import ChannelError
from survey.estimator.answered import AnsweredShares, answered_shares
from survey.estimator.arguments import checked_arguments
from survey.estimator.binomial import POPULATION
from survey.estimator.poisoning import FAKES, Poisoning, bounded, poisoned, poisoning
from survey.estimator.proportions import membership, proportions
from survey.estimator.pseudo_values import left_inverse, pseudo_values
from survey.estimator.shares import Proportions
from survey.mechanism import BitVector, SubsetSelection, WeightTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
AnyChannel = SubsetSelection | BitVector | WeightTable


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
    return poisoned(shares, shares.estimate, shift, np.clip(np.array(bands), 0.0, 1.0))


@checked_arguments
def poisoning_of_no_answers(found: Proportions, channel: WeightTable) -> Poisoning:
    """Bound what fakes can have done to each share that `no_answer_shares` found.

    ChannelError for shares that are not those of this channel's no answers.

    >>> from survey.estimator.table_shares import no_answer_shares
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
