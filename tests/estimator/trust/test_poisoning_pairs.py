"""No fabricated report exceeds the bounds on pairs of options, and the worst reaches them."""

from __future__ import annotations

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError
from survey.estimator import bit_pairs, option_pairs, poisoning_of_pairs
from survey.mechanism import BitVector, HalfSpace, SubsetSelection, grr
from tests.cases import each_case

BANDS = {0.01: "1", 0.05: "5", 0.10: "10"}
PATTERNS = [[0], [1], [0, 1], [0, 1, 2]]


@each_case("part", BANDS)
@each_case("channel", [BitVector(3, 3, 3, 1), BitVector(3, 3, 10, 1), HalfSpace(3, 3, 3, 1, 2)])
def test_every_attack_on_a_pair_of_bits_stays_in_the_band(channel, part):
    n = 4000
    fakes = round(part * n)
    honest = np.array([0.3, 0.25, 0.25, 0.2]) * (n - fakes)
    truth = bit_pairs([honest], channel, [(0, 1)]).estimate[0]
    reached = set()
    for kind in np.eye(4, dtype=int):
        result = poisoning_of_pairs(bit_pairs([honest + fakes * kind], channel, [(0, 1)]), channel)
        low, high = (getattr(result, f"{end}_{BANDS[part]}")[0] for end in ("low", "high"))
        assert low <= truth + 1e-9
        assert truth <= high + 1e-9
        reached |= {name for name, end in (("low", low), ("high", high)) if abs(end - truth) < 1e-9}
    assert reached == {"low", "high"}


@each_case("part", BANDS)
def test_every_attack_on_a_pair_of_patterns_stays_in_the_band_and_the_best_reaches_its_end(part):
    channel, n = grr(4, "0.7"), 4000
    fakes = round(part * n)
    honest = np.array([0.3, 0.25, 0.25, 0.2]) * (n - fakes)
    truth = option_pairs(honest, channel, PATTERNS, 3).estimate
    reached = np.zeros((2, truth.size), dtype=bool)
    for kind in np.eye(4, dtype=int):
        pairs = option_pairs(honest + fakes * kind, channel, PATTERNS, 3)
        result = poisoning_of_pairs(pairs, channel, patterns=PATTERNS)
        ends = np.array([getattr(result, f"{end}_{BANDS[part]}") for end in ("low", "high")])
        assert np.all(ends[0] <= truth + 1e-9)
        assert np.all(truth <= ends[1] + 1e-9)
        reached |= np.abs(ends - truth) < 1e-9
    assert reached.all()


def test_fabricated_reports_of_sampled_options_may_all_be_about_the_pair():
    channel = BitVector(4, 4, 3, 1, sampled=2)
    supports = [[30, 20, 20, 30]]
    bounds = poisoning_of_pairs(bit_pairs(supports, channel, [(0, 1)], n=600), channel)
    # 6 of 600 reports are 6% of the hundred that include both options.
    whole = poisoning_of_pairs(
        bit_pairs([[300, 200, 200, 300]], BitVector(2, 2, 3, 1), [(0, 1)]), BitVector(2, 2, 3, 1)
    )
    assert bounds.low_1[0] < whole.low_5[0]
    assert bounds.high_1[0] > whole.high_5[0]
    assert (bounds.low_10[0], bounds.high_10[0]) == (0, 1)
    with pytest.raises(CountsError, match="give n to bit_pairs"):
        poisoning_of_pairs(bit_pairs(supports, channel, [(0, 1)]), channel)
    with pytest.raises(CountsError, match="n = 90 is below the 100 reports about one pair"):
        bit_pairs(supports, channel, [(0, 1)], n=90)


def test_other_channels_than_those_of_the_pairs_are_rejected():
    pairs = bit_pairs([[300, 200, 200, 300]], BitVector(3, 3, 3, 1), [(0, 2)])
    with pytest.raises(ChannelError, match="not options of this channel"):
        poisoning_of_pairs(pairs, BitVector(2, 2, 3, 1))
    with pytest.raises(ChannelError, match="not options of this channel"):
        poisoning_of_pairs(pairs, SubsetSelection(4, 1, 3, 1))
    with pytest.raises(ChannelError, match="not those of these patterns"):
        poisoning_of_pairs(pairs, grr(4, "0.7"), patterns=PATTERNS)
    with pytest.raises(ChannelError, match="generalized randomized response"):
        poisoning_of_pairs(pairs, BitVector(3, 3, 3, 1), patterns=PATTERNS)


def test_all_pairs_of_one_question_have_equally_many_reports():
    channel = BitVector(3, 3, 3, 1)
    with pytest.raises(CountsError, match="n = 1000, but"):
        bit_pairs([[300, 200, 200, 300], [30, 20, 20, 30]], channel, [(0, 1), (0, 2)])
