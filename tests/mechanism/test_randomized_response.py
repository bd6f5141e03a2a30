"""The classical designs: exact probabilities, exact epsilon, and published estimates."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.errors import ChannelError
from survey.mechanism.randomized_response import (
    forced_response,
    from_probabilities,
    two_coins,
    unrelated_question,
    warner,
)
from tests.cases import each_case

SHARES = st.fractions(min_value="1/50", max_value="49/50", max_denominator=50)


def test_two_fair_coins_have_p_three_quarters_and_ln_3_and_recover_the_share():
    coins = two_coins("1/2", "1/2")
    assert coins.ratio == 3
    truth = np.array([0.2001, 0.7999])
    reported = truth @ coins.matrix
    assert reported[0] == pytest.approx(0.35005)
    np.testing.assert_allclose(np.linalg.solve(coins.matrix.T, reported), truth)


@pytest.mark.slow
@given(SHARES, SHARES)
def test_coins_of_any_bias_have_the_textbooks_probabilities(t, y):
    coins = two_coins(t, y)
    yes, no = coins.weights[:, 0] / coins.total
    assert yes == pytest.approx(float(t + (1 - t) * y))
    assert no == pytest.approx(float((1 - t) * y))
    # epsilon = ln max over the two reports of 1 + t / ((1-t) f)
    assert coins.ratio == max(1 + t / ((1 - t) * f) for f in (y, 1 - y))


@given(SHARES.filter(lambda p: p != Fraction(1, 2)))
def test_warners_cards_are_symmetric_also_below_one_half(p):
    assert warner(p).ratio == max(p, 1 - p) / min(p, 1 - p)


def test_a_die_with_unequal_faces_is_exact():
    table = forced_response("1/2", ["1/2", "1/3", "1/6"])
    assert table.weights.tolist() == [[9, 2, 1], [3, 8, 1], [3, 2, 7]]
    assert table.total == 12
    assert table.ratio == 7


def test_an_unrelated_question_of_known_share_is_a_forced_response():
    assert unrelated_question("2/3", "1/4") == two_coins("2/3", "1/4")


def test_nigerias_die_gives_the_published_share():
    """831 of 2,435 said yes with 1/6 forced each way (Blair, Imai, Zhou 2015): .2619."""
    channel = forced_response("2/3", ["1/2", "1/2"])
    reported = np.array([831, 2435 - 831]) / 2435
    assert np.linalg.solve(channel.matrix.T, reported)[0] == pytest.approx(0.2619, abs=5e-5)


@each_case(
    ("make", "words"),
    [
        (lambda: warner("1/2"), "all rows are equal"),
        (lambda: warner(0), "above 0"),
        (lambda: two_coins(1, "1/2"), "below 1"),
        (lambda: two_coins("1/2", 0), "above 0"),
        (lambda: forced_response("1/2", ["1/2", "1/3"]), "5/6, not to 1"),
        (lambda: from_probabilities([[Fraction(1, 2), Fraction(1, 3)]] * 2), "must be 1"),
        (lambda: two_coins("1/99991", "1/99989"), "2\\^32"),
        (lambda: unrelated_question("1/2", math.nan), "not a number"),
    ],
)
def test_an_impossible_design_is_rejected(make, words):
    with pytest.raises(ChannelError, match=words):
        make()
