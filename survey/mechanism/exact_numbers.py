"""Exact numbers: parse and format probabilities and epsilons, and find integer weights for them."""

from __future__ import annotations

import decimal
import math
from bisect import bisect_left
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

from survey.errors import ChannelError
from survey.mechanism.channel import WORD_TOTAL
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


def two_weights(
    epsilon: Probability, total: Callable[[int, int], int], odds: Fraction = Fraction(1)
) -> tuple[int, int]:
    """Return integers T and L with the largest T/L up to `odds` e^epsilon and above `odds`.

    L is the largest power of ten up to 10^4 with `total(T, L)` up to 2^32, T = floor(L odds
    e^epsilon); the result is reduced to lowest terms. Raises ChannelError if no integers fit.
    """
    exact = parse_epsilon(epsilon)
    for L in (10**4, 10**3, 10**2, 10, 1):
        T = _floor_times_exp(L * odds, exact)
        if L * odds < T and total(T, L) <= WORD_TOTAL:
            return Fraction(T, L).as_integer_ratio()
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


def _floor_times_exp(factor: int | Fraction, exponent: Fraction) -> int:
    """Return floor(factor * e^exponent), computed with 60 decimal digits."""
    with decimal.localcontext(prec=60):
        power = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        # A float such as ln 2 is below the real number; one part in 10^15 restores T = 2L.
        product = factor.numerator * power * (1 + Decimal("1e-15"))
        return int(product / factor.denominator)


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
