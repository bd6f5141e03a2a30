"""Channels for a stated truth probability, keep probability or epsilon."""

from __future__ import annotations

import decimal
import math
from bisect import bisect_left
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

from survey.errors import ChannelError
from survey.mechanism.channel import MAX_OPTIONS, WORD_TOTAL, check_integers
from survey.mechanism.subset_selection import SubsetSelection
from survey.mechanism.weight_table import WeightTable

Probability = Fraction | Decimal | str | float | int
"""Accepted forms of a probability: "3/4", "0.85", Fraction, Decimal, or a float."""

MAX_EPSILON = 12
"""Maximum epsilon of one question in every instance."""

GRID = 1000
"""Error messages suggest multiples of 1/GRID."""

REDUCTIONS = (0.0, *(2.0**power for power in range(-40, -1)))
"""Fractions by which `table_within` lowers epsilon until the rounded integers stay within it."""

MAX_DIGITS = 40
MAX_EXPONENT = 30
"""Limits of a number's digits and exponent: 1e9999999 would take 20 s to convert."""


def exact_fraction(value: Probability, name: str) -> Fraction:
    """Convert a number exactly; a float stands for its shortest decimal.

    Raises ChannelError at once for anything that is not a number or has too many digits.

    >>> exact_fraction(0.85, "truth_probability")
    Fraction(17, 20)
    """
    if isinstance(value, bool):
        raise ChannelError(f"{name} must be a number, not {value}")
    if not isinstance(value, str | float | Decimal | Rational):
        raise ChannelError(f"{name} must be a number, not a {type(value).__name__}")
    try:
        # The repr of a float is its shortest decimal: .1 means 1/10, not the binary fraction.
        exact = repr(float(value)) if isinstance(value, float) else value
        if _is_short(exact):
            return Fraction(exact)
    except (ValueError, ArithmeticError):
        pass
    raise ChannelError(
        f"{name} = {_brief(value)} is not a number of at most {MAX_DIGITS} digits; "
        'write a decimal (0.75) or a fraction ("3/4")'
    )


def _is_short(value: Fraction | Decimal | str | int) -> bool:
    """Return whether a number converts to a fraction quickly; ArithmeticError for a non-number."""
    if isinstance(value, str):
        return len(value) <= MAX_DIGITS and ("/" in value or _is_short(Decimal(value)))
    if isinstance(value, Decimal):
        return (
            value.is_finite()
            and len(value.as_tuple().digits) <= MAX_DIGITS
            and abs(value.adjusted()) <= MAX_EXPONENT
        )
    exact = Fraction(value)
    return bool(max(abs(exact.numerator), exact.denominator) < 10 ** (4 * MAX_DIGITS))


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
    t = exact_fraction(keep_probability, "keep_probability")
    if not 0 < t < 1:
        nearest = Fraction(1 if t <= 0 else GRID - 1, GRID)
        raise ChannelError(
            f"keep_probability = {format_fraction(t)} must be above 0 and below 1; "
            f"the nearest allowed value is {format_fraction(nearest)}"
        )
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
    divisor = math.gcd(T, L)
    return SubsetSelection(k=k, d=d, T=T // divisor, L=L // divisor)


def _relative_variance(k: int, d: int, ratio: float) -> float:
    # p = d r/(d r + k - d); q as in `SubsetSelection.exact_q`; at pi = 1/k an option is in a share
    # d/k of the reports.
    p = d * ratio / (d * ratio + k - d)
    q = (p * (d - 1) + (1 - p) * d) / (k - 1)
    return (d / k) * (1 - d / k) / (p - q) ** 2


def two_weights(epsilon: Probability, total: Callable[[int, int], int]) -> tuple[int, int]:
    """Return integers T > L with the largest T/L up to e^epsilon and `total(T, L)` up to 2^32.

    L is the largest power of ten up to 10^4 that fits, T = floor(L e^epsilon). Raises
    ChannelError if no integers fit.
    """
    exact = parse_epsilon(epsilon)
    for L in (10**4, 10**3, 10**2, 10, 1):
        T = _floor_times_exp(L, exact)
        if L < T and total(T, L) <= WORD_TOTAL:
            return T, L
    raise ChannelError(
        f"epsilon = {format_fraction(exact)} does not fit in exact integers here; "
        f"the nearest allowed value is {format_fraction(_nearest_that_fits(exact, total))}"
    )


def _nearest_that_fits(epsilon: Fraction, total: Callable[[int, int], int]) -> Fraction:
    """Return the smallest epsilon on the grid, or above 1 the largest whose total fits."""
    if epsilon < 1:
        return Fraction(math.floor(math.log1p(1e-4) * GRID) + 1, GRID)
    steps = range(1, MAX_EPSILON * GRID + 1)
    fitting = bisect_left(
        steps, True, key=lambda n: total(_floor_times_exp(1, Fraction(n, GRID)), 1) > WORD_TOTAL
    )
    return Fraction(fitting, GRID)


def parse_epsilon(epsilon: Probability) -> Fraction:
    """Convert an epsilon exactly; ChannelError outside (0, 12]."""
    exact = exact_fraction(epsilon, "epsilon")
    if not 0 < exact <= MAX_EPSILON:
        nearest = Fraction(1, GRID) if exact <= 0 else Fraction(MAX_EPSILON)
        raise ChannelError(
            f"epsilon = {format_fraction(exact)} must be above 0 and at most {MAX_EPSILON}; "
            f"the nearest allowed value is {format_fraction(nearest)}"
        )
    return exact


def _floor_times_exp(factor: int, exponent: Fraction) -> int:
    """Return floor(factor * e^exponent), computed with 60 decimal digits."""
    with decimal.localcontext(prec=60):
        power = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        # A float such as ln 2 is below the real number; one part in 10^15 restores T = 2L.
        return int(factor * power * (1 + Decimal("1e-15")))


def table_within(epsilon: Probability, table: Callable[[float], WeightTable]) -> WeightTable:
    """Return the first table whose epsilon, after rounding to integers, is within the argument.

    `table(eps)` builds a weight table; it is called with slightly smaller values of epsilon.
    """
    maximum = float(parse_epsilon(epsilon))
    for reduction in REDUCTIONS:
        candidate = table(maximum * (1 - reduction))
        if candidate.epsilon <= maximum:
            return candidate
    raise ChannelError(f"epsilon = {maximum:g} does not fit in exact integers on this grid")


def from_ratio(k: int, T: int, L: int) -> SubsetSelection:
    """Generalized randomized response with weight T for the truth and L for every other option.

    >>> from_ratio(3, 3, 1).exact_p
    Fraction(3, 5)
    """
    check_integers(T=T, L=L)
    divisor = math.gcd(T, L) if L > 0 else 1
    return SubsetSelection(k=k, d=1, T=T // divisor, L=L // divisor)


def format_fraction(value: Fraction) -> str:
    """Format a fraction: as a decimal if a short one is exact, otherwise as a/b; never raises.

    >>> format_fraction(Fraction(3, 4)), format_fraction(Fraction(1, 3))
    ('0.75', '1/3')
    >>> format_fraction(Fraction(12))
    '12'
    """
    try:
        decimal_form = str(float(value)).removesuffix(".0")
    except OverflowError:
        return _brief(value)
    return decimal_form if Fraction(decimal_form) == value else _brief(value)


def _brief(value: object) -> str:
    """Format any value with at most `MAX_DIGITS` characters."""
    try:
        text = repr(value) if isinstance(value, str | float) else str(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= MAX_DIGITS else f"{text[: MAX_DIGITS - 3]}..."
