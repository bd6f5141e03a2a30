"""Randomized response: generalized, by coins, cards, dice or an unrelated question, exponential."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from survey.errors import ChannelError
from survey.mechanism.channel import MAX_OPTIONS, WORD_TOTAL, Floats, check_integers
from survey.mechanism.exact_numbers import (
    GRID,
    Probability,
    exact_fraction,
    format_fraction,
    parse_epsilon,
    table_within,
    two_weights,
)
from survey.mechanism.subset_selection import SubsetSelection
from survey.mechanism.weight_table import MAX_EXPLICIT, Explicit, WeightTable


def smallest_truth_probability(k: int) -> Fraction:
    """Return the first p on the grid above 1/k; at 1/k a report carries no information."""
    return Fraction(GRID // k + 1, GRID)


def nearest_truth_probability(k: int, p: Fraction) -> Fraction:
    """Return the allowed truth probability on the grid that is nearest to p."""
    highest = Fraction(GRID - 1, GRID)
    on_grid = Fraction(round(p * GRID), GRID)
    return min(max(on_grid, smallest_truth_probability(k)), highest)


def _check_options(k: int) -> None:
    if type(k) is not int or not 2 <= k <= MAX_OPTIONS:
        nearest = min(max(k, 2), MAX_OPTIONS) if type(k) is int else 2
        raise ChannelError(
            f"k = {k!r} options: a channel needs 2 to {MAX_OPTIONS:,}; the nearest is {nearest}"
        )


def grr(k: int, truth_probability: Probability) -> SubsetSelection:
    """Generalized randomized response with P(report = truth) = p.

    p = T/(T+(k-1)L): from p = a/b take T = a(k-1), L = b-a, divided by their gcd.
    Guarantee: epsilon = ln(p(k-1)/(1-p)), exactly. Source: Warner 1965 (k = 2); Kairouz, Oh,
    Viswanath 2016.

    >>> grr(2, "3/4").to_json()
    {'kind': 'subset_selection', 'k': 2, 'd': 1, 'T': 3, 'L': 1}
    >>> grr(5, 0.85).exact_p
    Fraction(17, 20)
    """
    _check_options(k)
    p = exact_fraction(truth_probability, "truth_probability")
    if not Fraction(1, k) < p < 1:
        nearest = nearest_truth_probability(k, p)
        raise ChannelError(
            f"truth_probability = {format_fraction(p)} must be above 1/{k} and below 1 for {k} "
            f"options; the nearest allowed value is {format_fraction(nearest)}"
        )
    ratio = p * (k - 1) / (1 - p)
    if ratio.numerator + (k - 1) * ratio.denominator > WORD_TOTAL:
        raise ChannelError(
            f"truth_probability = {format_fraction(p)} needs weights above 2^32; "
            f"the nearest allowed value is {format_fraction(nearest_truth_probability(k, p))}"
        )
    return from_ratio(k, ratio.numerator, ratio.denominator)


def from_keep_probability(k: int, keep_probability: Probability) -> SubsetSelection:
    """Report the truth with probability t, otherwise a uniformly random option (the coin form).

    p = t + (1-t)/k. Two fair coins are t = 1/2, hence p = 3/4 at k = 2.

    >>> from_keep_probability(2, "1/2") == grr(2, "3/4")
    True
    """
    _check_options(k)
    t = _parse_share(keep_probability, "keep_probability")
    return grr(k, t + (1 - t) / k)


def from_epsilon(k: int, epsilon: Probability) -> SubsetSelection:
    """Generalized randomized response with the largest representable epsilon up to a maximum.

    L is the largest power of ten up to 10^4 whose total fits in 2^32, T = floor(L e^epsilon),
    in exact decimal arithmetic: floats would give 19,999 for ln 2 at L = 10^4. The channel's
    epsilon exceeds the argument at most by the rounding of a float, 10^-15.

    >>> from_epsilon(2, 1)
    SubsetSelection(k=2, d=1, T=13591, L=5000)
    >>> from_epsilon(2, 1).epsilon <= 1
    True
    """
    _check_options(k)
    T, L = two_weights(epsilon, lambda T, L: T + (k - 1) * L)
    return from_ratio(k, T, L)


def best(k: int, epsilon: Probability) -> SubsetSelection:
    """Subset selection with the d that has the smallest variance at equal shares.

    n Var at pi = 1/k is (d/k)(1-d/k)/(p-q)^2, smallest near d = k/(e^epsilon + 1); for few
    options this is d = 1, generalized randomized response. No channel with a smaller variance is
    known. Source: Ye and Barg 2018, theorem V.

    >>> best(5, 1).d, best(64, 1).d
    (1, 17)
    """
    _check_options(k)
    # Raises ChannelError for an epsilon that is too small for integers.
    two_weights(epsilon, lambda T, L: T + (k - 1) * L)
    ratio = math.exp(float(parse_epsilon(epsilon)))
    d = min(range(1, k), key=lambda d: _relative_variance(k, d, ratio))
    T, L = two_weights(epsilon, lambda T, L: d * T + (k - d) * L)
    return SubsetSelection(k=k, d=d, T=T, L=L)


def _relative_variance(k: int, d: int, ratio: float) -> float:
    # p = d r/(d r + k - d); q as in `SubsetSelection.exact_q`; at pi = 1/k an option is in a share
    # d/k of the reports.
    p = d * ratio / (d * ratio + k - d)
    q = (p * (d - 1) + (1 - p) * d) / (k - 1)
    return (d / k) * (1 - d / k) / (p - q) ** 2


def from_ratio(k: int, T: int, L: int) -> SubsetSelection:
    """Generalized randomized response with weight T for the truth and L for every other option.

    >>> from_ratio(3, 3, 1).exact_p
    Fraction(3, 5)
    """
    check_integers(T=T, L=L)
    divisor = math.gcd(T, L) if L > 0 else 1
    return SubsetSelection(k=k, d=1, T=T // divisor, L=L // divisor)


def from_probabilities(rows: Sequence[Sequence[Fraction]], no_answers: int = 0) -> WeightTable:
    """Return the weight table with exactly these probabilities.

    `rows` has shape (truths, reports) and row sums of 1; the common denominator becomes the
    total. epsilon is the largest log ratio within a column. Raises ChannelError for floats, other
    sums, or a total above 2^32.

    >>> p = Fraction(3, 4)
    >>> from_probabilities([[p, 1 - p], [1 - p, p]]).ratio
    Fraction(3, 1)
    """
    for number, row in enumerate(rows):
        if not all(isinstance(share, Fraction) for share in row):
            raise ChannelError(f"row {number} must consist of fractions: floats are not exact")
        if sum(row) != 1:
            raise ChannelError(f"row {number} adds up to {sum(row)}; it must be 1")
    total = math.lcm(*(share.denominator for row in rows for share in row))
    if total > WORD_TOTAL:
        raise ChannelError(
            "these probabilities need weights above 2^32; state them with fewer digits: "
            "three decimals always fit"
        )
    weights = tuple(tuple(int(share * total) for share in row) for row in rows)
    return WeightTable(Explicit(weights), no_answers)


def warner(p: Probability, no_answers: int = 0) -> WeightTable:
    """Warner's cards: answer the question with probability p, otherwise its opposite.

    P(yes | yes) = P(no | no) = p. epsilon = |ln(p/(1-p))|. Source: Warner 1965.

    >>> warner("3/4").ratio
    Fraction(3, 1)
    """
    share = _parse_share(p, "p")
    return from_probabilities([[share, 1 - share], [1 - share, share]], no_answers)


def two_coins(truth: Probability, yes: Probability, no_answers: int = 0) -> WeightTable:
    """Two coins: on heads (probability `truth`) answer truthfully, on tails toss again.

    The second toss says yes on heads (probability `yes`), whatever the truth is.
    P(yes | yes) = t + (1-t) y, P(yes | no) = (1-t) y. Two fair coins give p = 3/4 and ln 3: a
    share of .2001 is reported as .35005.
    Source: Boruch 1971 (forced response); Dwork and Roth 2014, section 3.2.

    >>> coins = two_coins("1/2", "1/2")
    >>> coins.ratio, coins.matrix.tolist()
    (Fraction(3, 1), [[0.75, 0.25], [0.25, 0.75]])
    """
    y = _parse_share(yes, "yes")
    return forced_response(truth, [y, 1 - y], no_answers)


def forced_response(
    truth: Probability, forced: Sequence[Probability], no_answers: int = 0
) -> WeightTable:
    """A die: report the truth with probability t, otherwise option j with probability f_j.

    P(j | i) = t [i = j] + (1-t) f_j; the k values of `forced` may differ and add up to 1.
    epsilon = ln max_j (1 + t / ((1-t) f_j)). Source: Boruch 1971; Fox and Tracy 1986.

    >>> forced_response("2/3", ["1/2", "1/2"]).matrix.round(4).tolist()  # Nigeria's die
    [[0.8333, 0.1667], [0.1667, 0.8333]]
    """
    t = _parse_share(truth, "truth")
    if isinstance(forced, str) or not isinstance(forced, Sequence):
        raise ChannelError("forced must be a list with one probability per option")
    if len(forced) > MAX_EXPLICIT:
        raise ChannelError(
            f"forced has {len(forced):,} probabilities; the maximum is {MAX_EXPLICIT}"
        )
    shares = [_parse_share(f, f"forced[{j}]") for j, f in enumerate(forced)]
    if sum(shares) != 1:
        raise ChannelError(f"forced adds up to {sum(shares)}, not to 1")
    k = range(len(shares))
    rows = [[(1 - t) * shares[j] + (t if i == j else 0) for j in k] for i in k]
    return from_probabilities(rows, no_answers)


def unrelated_question(p: Probability, prevalence: Probability, no_answers: int = 0) -> WeightTable:
    """Answer with probability p the question, otherwise a harmless one ("Were you born in May?").

    The share u of yes to the harmless question is known. P(yes | yes) = p + (1-p) u and
    P(yes | no) = (1-p) u, which is the channel of a forced response with u.
    Source: Greenberg, Abul-Ela, Simmons, Horvitz 1969.

    >>> unrelated_question("3/4", "1/12").matrix.round(4).tolist()
    [[0.7708, 0.2292], [0.0208, 0.9792]]
    """
    return two_coins(_parse_share(p, "asked"), _parse_share(prevalence, "prevalence"), no_answers)


def _parse_share(value: Probability, name: str) -> Fraction:
    share = exact_fraction(value, name)
    if not 0 < share < 1:
        nearest = Fraction(1 if share <= 0 else GRID - 1, GRID)
        raise ChannelError(
            f"{name} = {format_fraction(share)} must be above 0 and below 1; "
            f"the nearest allowed value is {format_fraction(nearest)}"
        )
    return share


LARGEST_UTILITY = 10**9


def exponential(
    utility: Sequence[Sequence[float]], epsilon: Probability, no_answers: int = 0
) -> WeightTable:
    """The exponential mechanism: P(j | i) proportional to exp(eps u[i][j] / (2 d)).

    `utility` has shape (truths, reports); d is the largest difference within a column.
    Guarantee: at most epsilon. Source: McSherry and Talwar 2007.

    >>> exponential([[1, 0], [0, 1]], 1).epsilon <= 1
    True
    """
    u = _utility_table(utility)
    difference = float(np.ptp(u, axis=0).max())
    if difference == 0:
        raise ChannelError(
            "all rows of the utility table are equal: the reports would carry no information"
        )

    def table(eps: float) -> WeightTable:
        scores = np.exp(eps * (u - u.max(axis=1, keepdims=True)) / (2 * difference))
        rows = _equal_rows(scores / scores.sum(axis=1, keepdims=True))
        return WeightTable(Explicit(rows), no_answers)

    return table_within(epsilon, table)


def _utility_table(utility: Sequence[Sequence[float]]) -> Floats:
    try:
        u = np.asarray(utility, dtype=np.float64)
    except (TypeError, ValueError):
        u = np.empty(0)
    if u.ndim != 2 or not u.size or not (np.abs(u) <= LARGEST_UTILITY).all():
        raise ChannelError(
            "a utility table has one row per truth, all of the same length, with finite numbers "
            f"up to {LARGEST_UTILITY:,}"
        )
    return u


def _equal_rows(rows: Floats) -> tuple[tuple[int, ...], ...]:
    """Round rows up to integers, then lower each row's largest weight to reach a common sum."""
    # One third of 2^32, because each of two truths that are not an answer adds at most as much.
    total = WORD_TOTAL // 3
    weights = np.maximum(np.ceil(rows * total), 1).astype(np.int64)
    target = int(weights.sum(axis=1).min())
    weights[np.arange(len(weights)), weights.argmax(axis=1)] -= weights.sum(axis=1) - target
    return tuple(tuple(int(weight) for weight in row) for row in weights)
