"""How far fakes could have moved the shares of people who ticked both options of a pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError, CountsError
from survey.estimator.arguments import checked_arguments
from survey.estimator.option_pairs import OptionPairs, holding_both, of_two_bits
from survey.estimator.poisoning import Poisoning, binary_ends, bounded
from survey.mechanism import BitVector, SubsetSelection

Floats = NDArray[np.float64]


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

    >>> from survey.estimator.option_pairs import bit_pairs
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
