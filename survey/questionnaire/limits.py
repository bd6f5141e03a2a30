"""Limits of what can be published: the caps on privacy loss, and the nearest allowed values.

Every value that an error suggests was built and checked first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from survey.errors import ChannelError
from survey.mechanism import AnyChannel, WeightTable
from survey.mechanism.channel import MAX_GRID
from survey.mechanism.composition import log_rounded_up
from survey.mechanism.exact_numbers import GRID, format_fraction
from survey.questionnaire.designs import Chances, Statement, Values
from survey.settings import Caps

MAX_TRUTH_PROBABILITY = Fraction(99, 100)
"""Highest truth probability that can be published; the client has the same maximum."""

MAX_CELLS = 5 * MAX_GRID**2
"""Maximum sum of the squares of the numbers of values of all number, date and ranking questions.

The number of cells of a channel's matrix is such a square. Each million cells takes about a tenth
of a second in the builder and in the results.
"""


def build_channel(statement: Statement, caps: Caps) -> AnyChannel:
    """Build the channel of a statement.

    Raises ChannelError, with the nearest value in thousandths that can be published.

    >>> from survey.questionnaire.designs import AnswerSpace
    >>> space = AnswerSpace(2, 0)
    >>> build_channel(Statement("grr", "truth_probability", Fraction(3, 4), space), Caps()).ratio
    Fraction(3, 1)
    >>> build_channel(Statement("grr", "epsilon", Fraction(13), space), Caps())
    Traceback (most recent call last):
    survey.errors.ChannelError: epsilon = 13 is too weak for 2 options: truth probability is at \
most 0.99 and epsilon at most 8; the nearest allowed value is epsilon = 4.595
    """
    try:
        channel = statement.build(statement.value)
    except ChannelError as error:
        raise _refusal(statement, caps, error) from None
    # The estimator could invert Warner's cards below one half too, but no device runs them.
    if is_too_weak(channel, caps, statement.parts) or statement.value <= statement.useless:
        raise _refusal(statement, caps, None)
    return channel


def work_mistake(values: Sequence[int]) -> str | None:
    """Return the mistake in the numbers of values of all such questions together, if any.

    >>> work_mistake([1_000] * 5), work_mistake([101] * 200)
    (None, None)
    >>> work_mistake([1_000] * 60)
    'has 60 number, date or ranking questions with up to 1,000 values each, which would take too \
long to compute; choose larger steps or rank fewer options, so that each has at most 288 values'
    """
    if sum(n**2 for n in values) <= MAX_CELLS:
        return None
    return (
        f"has {len(values)} number, date or ranking questions with up to {max(values):,} values "
        "each, which would take too long to compute; choose larger steps or rank fewer options, so "
        f"that each has at most {isqrt(MAX_CELLS // len(values)):,} values"
    )


def total_mistake(total: Fraction, questions: int, caps: Caps) -> str | None:
    """Return what is wrong with the sum of all questions, with the nearest epsilon for equal ones.

    `total` is e^epsilon of everything that one respondent sends about `questions` questions.
    """
    epsilon = log_rounded_up(total)
    if epsilon <= caps.survey:
        return None
    equal = Fraction(int(Fraction(min(caps.survey / questions, caps.question)) * GRID), GRID)
    return (
        f"total epsilon {epsilon:.4g} of {questions} questions is above the cap of "
        f"{caps.survey}; "
        + (
            "the nearest allowed value for equal questions is "
            f"epsilon = {format_fraction(equal)} each"
            if equal
            else "ask fewer questions"
        )
    )


def is_too_weak(channel: AnyChannel, caps: Caps, parts: int = 1) -> bool:
    """Whether a channel, or the total epsilon of `parts` reports with it, is above a cap."""
    if best_guess_probability(channel) > MAX_TRUTH_PROBABILITY:
        return True
    return log_rounded_up(channel.ratio**parts) > caps.question


def best_guess_probability(channel: AnyChannel) -> Fraction:
    """P(the best guess from a report is right), for the truth where it is largest.

    p of a report or a bit; for a table the sum over the reports that are likeliest under a truth:
    several reports that mean the same count as one.
    """
    if isinstance(channel, WeightTable):
        rows = channel.weights
        correct = np.where(rows == rows.max(axis=0), rows, 0).sum(axis=1)
        return Fraction(int(correct.max()), channel.total)
    return channel.exact_p


# The nearest allowed values of a statement of privacy


def _refusal(statement: Statement, caps: Caps, error: ChannelError | None) -> ChannelError:
    """Return the error with the nearest values that can be published."""
    values = {statement.way: statement.value, **statement.chances}
    changes = first_allowed(
        values,
        _candidates(statement, caps),
        lambda **changed: _is_publishable(statement.with_changes(changed), caps),
    )
    if changes is None and error is not None:
        return error  # no value helps: something else is wrong
    nearest = suggestion(changes) if changes else "no value is within the limits of this server"
    return ChannelError(f"{_describe_mistake(statement, caps, error, changes or {})}; {nearest}")


def _informative_channel(statement: Statement) -> AnyChannel | None:
    """Return the channel of a statement, or None if there is none or it carries no information."""
    with suppress(ChannelError):
        if statement.value > statement.useless:
            return statement.build(statement.value)
    return None


def _is_publishable(statement: Statement, caps: Caps) -> bool:
    channel = _informative_channel(statement)
    return channel is not None and not is_too_weak(channel, caps, statement.parts)


def _describe_mistake(
    statement: Statement, caps: Caps, error: ChannelError | None, changes: Values
) -> str:
    """Describe what is wrong with the first value that has to change."""
    way, value = statement.way, statement.value
    stated = f"{way} = {format_fraction(value)}"
    if value <= statement.useless:
        return f"{stated} must be above {statement.useless} for {statement.subject}"
    if error is not None and set(changes) != {way}:
        return mistake_of(error)
    nearest = changes.get(way, value)
    is_weaker = value < nearest if way == "sigma" else value > nearest
    if error is not None and not is_weaker:
        return f"{stated} cannot be made exactly for {statement.subject} of integers up to 2^32"
    name = next(iter(changes), way)
    mistake = f"{stated} is too weak"
    if name != way:
        mistake = f"{name} = {format_value(statement.chances[name])} is too weak with {stated}"
    return (
        f"{mistake} for {statement.subject}: truth probability is at most "
        f"{format_fraction(MAX_TRUTH_PROBABILITY)} and epsilon at most {caps.question}"
    )


def _candidates(statement: Statement, caps: Caps) -> Iterator[Values]:
    """Yield changes, smallest first: of the value, of one parameter, of both."""
    way = statement.way
    if (nearest := _nearest_value(statement, caps)) is not None:
        yield {way: nearest}
    for name, chances in statement.chances.items():
        evener = _even_out(statement, name, chances, caps)
        if evener is not None:
            yield {name: evener}
    for name, chances in statement.chances.items():
        for changed in (evened(chances, 0), evened(chances, STEPS_TO_EVEN)):
            nearest = _nearest_value(statement.with_changes({name: changed}), caps)
            if nearest is not None:
                yield {way: nearest, name: changed}


def _even_out(statement: Statement, name: str, chances: Chances, caps: Caps) -> Chances | None:
    """Return the least even chances that can be published: even chances reveal less."""
    steps = first_towards(
        lambda n: _is_publishable(statement.with_changes({name: evened(chances, n)}), caps),
        0,
        STEPS_TO_EVEN,
    )
    return None if steps is None else evened(chances, steps)


def _nearest_value(statement: Statement, caps: Caps) -> Fraction | None:
    """Return the publishable candidate nearest to the written value, or None."""
    steps = statement.candidates

    def allows(index: int) -> bool:
        return _is_publishable(replace(statement, value=steps[index] * statement.unit), caps)

    rounded = round(statement.value / statement.unit)
    start = min(max((rounded - steps[0]) * steps.step, 0), len(steps) - 1)
    first = replace(statement, value=steps[start] * statement.unit)
    # If the start is only too weak, weaker candidates cannot help and need no search.
    ends = (0,) if _informative_channel(first) is not None else (0, len(steps) - 1)
    indices = [index for end in ends if (index := first_towards(allows, start, end)) is not None]
    if not indices:
        return None
    return steps[min(indices, key=lambda index: abs(index - start))] * statement.unit


# Suggestions

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
