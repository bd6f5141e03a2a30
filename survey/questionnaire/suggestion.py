"""The nearest allowed values for a refused one; each suggestion was built and checked first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from survey.errors import ChannelError
from survey.mechanism.design import GRID, format_fraction

Values = Mapping[str, Any]
"""Values that can be changed, by their names in a definition file."""

Chances = Fraction | tuple[Fraction, ...]
"""The probability of the first of two options, or one probability per option."""

STEPS_TO_EVEN = GRID
"""After this many steps all chances are equal."""


def refusal(
    mistake: str, values: Values, candidates: Iterable[Values], allows: Callable[..., bool]
) -> ChannelError:
    """Return the error for a mistake, with the first candidate that is allowed.

    `candidates` start with the nearest; each holds its changes to `values`. `allows` takes all
    values by name and builds what they mean. Without an allowed candidate there is no suggestion.

    >>> refusal("too long", {"low": 0, "high": 9}, [{"high": 5}, {"low": 8}],
    ...         lambda low, high: high - low == 1)
    ChannelError('too long; the nearest allowed value is low = 8')
    """
    changes = first_allowed(values, candidates, allows)
    return ChannelError(mistake if changes is None else f"{mistake}; {suggestion(changes)}")


def first_allowed(
    values: Values, candidates: Iterable[Values], allows: Callable[..., bool]
) -> Values | None:
    """Return the changes of the first candidate that is allowed, or None."""
    for candidate in candidates:
        if allows(**{**values, **candidate}):
            return {name: value for name, value in candidate.items() if value != values[name]}
    return None


def suggestion(changed: Values) -> str:
    """Return the changes in words, as a definition file writes them.

    >>> suggestion({"step": 2, "high": Fraction(1, 2)})
    'the nearest allowed value is step = 2 with high = 0.5'
    """
    phrases = [f"{name} = {format_value(value)}" for name, value in changed.items()]
    return (
        "the nearest allowed value is "
        + phrases[0]
        + "".join(f" {'and' if i else 'with'} {phrase}" for i, phrase in enumerate(phrases[1:]))
    )


def format_value(value: Any) -> str:
    """Return a value as a definition file writes it.

    >>> format_value((Fraction(1, 2), Fraction(1, 3))), format_value(Fraction(3))
    ('[0.5, "1/3"]', '3')
    """
    if isinstance(value, tuple):
        return f"[{', '.join(map(_entry, value))}]"
    return format_fraction(value) if isinstance(value, Fraction) else str(value)


def _entry(value: Any) -> str:
    text = format_value(value)
    return f'"{text}"' if "/" in text else text


def mistake_of(error: ChannelError) -> str:
    """Return what an error says is wrong, without its suggestion.

    >>> mistake_of(ChannelError("yes = 2 must be below 1; the nearest allowed value is 0.999"))
    'yes = 2 must be below 1'
    """
    return str(error).partition("; the nearest")[0]


def first_towards(allows: Callable[[int], bool], start: int, end: int) -> int | None:
    """Return approximately the first allowed index from `start` towards `end`, or None.

    The search tests indices at doubling distances from both ends, so that it misses neither near
    values nor a range that ends just before `end`. Then it bisects between the first allowed index
    and the refused one before it. The returned index is always allowed.

    >>> first_towards(lambda index: 700 <= index < 990, 0, 1000)
    700
    """
    length, sign = abs(end - start), 1 if end > start else -1
    powers = [2**n - 1 for n in range(length.bit_length() + 1) if 2**n - 1 <= length]
    refused = 0
    for away in sorted({*powers, *(length - power for power in powers)}):
        if allows(start + sign * away):
            between = range(start + sign * refused, start + sign * away, sign)
            first = bisect_left(between, True, key=allows)
            return between[first] if first < len(between) else start + sign * away
        refused = away
    return None


def evened(chances: Chances, steps: int) -> Chances:
    """Return chances in thousandths that add up to 1, moved towards equal ones.

    After `STEPS_TO_EVEN` steps all chances are equal.

    >>> evened(Fraction(1), 0), evened(Fraction(1), 1000)
    (Fraction(999, 1000), Fraction(1, 2))
    >>> [str(chance) for chance in evened((Fraction(1, 2), Fraction(3, 5)), 0)]
    ['91/200', '109/200']
    """
    if isinstance(chances, Fraction):
        first = _thousandths([chances, 1 - chances], steps)[0]
        return Fraction(first, GRID)
    return tuple(Fraction(n, GRID) for n in _thousandths(chances, steps))


def _thousandths(chances: Sequence[Fraction], steps: int) -> list[int]:
    positive = [max(chance, Fraction(0)) for chance in chances]
    k, total = len(chances), sum(positive)
    shares = [chance / total if total else Fraction(1, k) for chance in positive]
    shifted = [share + (Fraction(1, k) - share) * steps / STEPS_TO_EVEN for share in shares]
    rounded = [max(round(share * GRID), 1) for share in shifted]
    # The largest takes the rounding error.
    rounded[rounded.index(max(rounded))] += GRID - sum(rounded)
    return rounded
