"""The nearest allowed values of what was refused: none is said that was not built and checked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from survey.errors import ChannelError
from survey.mechanism.design import GRID, format_fraction

Values = Mapping[str, Any]
"""What can be changed, by the names that researchers write."""

Chances = Fraction | tuple[Fraction, ...]
"""One chance, of the first of two options, or one per option."""

STEPS_TO_EVEN = GRID
"""At so many steps chances are all the same."""


def refusal(
    mistake: str, written: Values, candidates: Iterable[Values], allows: Callable[..., bool]
) -> ChannelError:
    """The error that says a mistake, and the first candidate that is allowed.

    `candidates` come from the nearest on; each holds what it changes among `written`. `allows` is
    asked about all values by their names; it builds what they mean. Without a candidate that it
    allows, the mistake stands alone.

    >>> refusal("too long", {"low": 0, "high": 9}, [{"high": 5}, {"low": 8}],
    ...         lambda low, high: high - low == 1)
    ChannelError('too long; the nearest allowed value is low = 8')
    """
    found = first_allowed(written, candidates, allows)
    return ChannelError(mistake if found is None else f"{mistake}; {suggestion(found)}")


def first_allowed(
    written: Values, candidates: Iterable[Values], allows: Callable[..., bool]
) -> Values | None:
    """What the first candidate changes that is allowed; None without one."""
    for candidate in candidates:
        if allows(**{**written, **candidate}):
            return {name: value for name, value in candidate.items() if value != written[name]}
    return None


def suggestion(changed: Values) -> str:
    """The changes in words, as they are written in a file.

    >>> suggestion({"step": 2, "high": Fraction(1, 2)})
    'the nearest allowed value is step = 2 with high = 0.5'
    """
    said = [f"{name} = {format_value(value)}" for name, value in changed.items()]
    return (
        "the nearest allowed value is "
        + said[0]
        + "".join(f" {'and' if i else 'with'} {one}" for i, one in enumerate(said[1:]))
    )


def format_value(value: Any) -> str:
    """A value as it is written in a definition file.

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
    """What an error says is wrong, without what it suggests for that value alone.

    >>> mistake_of(ChannelError("yes = 2 must be below 1; the nearest allowed value is 0.999"))
    'yes = 2 must be below 1'
    """
    return str(error).partition("; the nearest")[0]


def first_towards(allows: Callable[[int], bool], start: int, end: int) -> int | None:
    """The first index from `start` on towards `end` that is allowed, near enough.

    Asked about at distances from both ends that double, so that neither what is near is passed
    over nor what ends just before `end`; between a step that is allowed and the one before that
    is not, the edge is found by halving. What is returned was asked about, whatever lies between.

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
    moved = [share + (Fraction(1, k) - share) * steps / STEPS_TO_EVEN for share in shares]
    found = [max(round(share * GRID), 1) for share in moved]
    # The largest takes what rounding left over.
    found[found.index(max(found))] += GRID - sum(found)
    return found
