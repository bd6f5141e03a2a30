"""Validate arguments: their types, counts, levels and numbers of reports.

`checked_arguments` checks what the annotations of a public estimator say: a channel, numbers, a
whole number, a list of them. It also puts labelled arrays in order, so that the functions behind it
receive ordinary arrays. The other functions check which values are possible.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, Sized
from math import nan
from numbers import Integral, Real
from typing import (
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import ChannelError, CountsError, DesignError, SurveyError
from survey.estimator.core.labelled_arguments import arranged_arguments, error_of
from survey.mechanism import BitVector, HalfSpace, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Booleans, Floats, Integers

NUMBERS = "numbers"
"""Stands for `ArrayLike` and for arrays among the alternatives of an annotation."""

LISTS = (list, tuple, Sequence)

CodeChannel = SubsetSelection | WeightTable
"""Channels with one count per report (or per option of a reported set): no bits."""

P = ParamSpec("P")
R = TypeVar("R")

CHANNELS = (SubsetSelection, BitVector, HalfSpace, WeightTable)
CHECKED_ELSEWHERE = ("level",)
"""Arguments that each estimator checks itself, with a specific message."""

MAX_SHOWN = 60
"""Characters of a wrong argument that an error message repeats."""


def checked_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function reject arguments whose types differ from its annotations.

    Raises ChannelError, CountsError or DesignError, "NAME = VALUE must be ...".

    Masked arrays are rejected. Labelled arrays (pandas) become ordinary ones: entries labelled by
    code are put in the order of the codes, and arrays with an entry per person, stratum or class
    must have equal labels in the same order (`labelled_arguments.AXES`). CountsError otherwise.

    >>> @checked_arguments
    ... def half(whole: int) -> float: return whole / 2
    >>> half(3)
    1.5
    >>> half("3")
    Traceback (most recent call last):
        ...
    survey.errors.DesignError: whole = '3' must be a whole number
    """
    signature = inspect.signature(function)

    @functools.cache
    def annotations() -> dict[str, Any]:
        return get_type_hints(function)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        bound.arguments = arranged_arguments(function.__name__, bound.arguments)
        for name, value in bound.arguments.items():
            annotation = Any if name in CHECKED_ELSEWHERE else annotations().get(name, Any)
            is_variadic = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            for item in value if is_variadic else (value,):
                if not fits(item, annotation):
                    raise _type_error(name, item, annotation)
        return function(*bound.args, **bound.kwargs)

    return checked


def fits(value: object, annotation: Any) -> bool:
    """Return whether a value has the annotated type; unknown annotations accept every value.

    >>> from survey.mechanism import grr
    >>> fits([1, 2], ArrayLike), fits(["a"], ArrayLike), fits(grr(2, "3/4"), BitVector)
    (True, False, False)
    """
    return any(_fits(value, alternative) for alternative in _alternatives(annotation))


def _fits(value: object, kind: Any) -> bool:
    origin = get_origin(kind)
    if kind is Any:
        return True
    if kind is NUMBERS:
        return _is_numeric(value)
    if origin is Literal:
        return isinstance(value, str)
    if origin in LISTS:
        return _is_list(value, get_args(kind))
    if origin is Mapping:
        return isinstance(value, Mapping)
    if kind in (int, float):
        number = Integral if kind is int else Real
        return isinstance(value, number) and not isinstance(value, bool) and _fits_in_float(value)
    return isinstance(value, kind | np.bool_ if kind is bool else kind)


def _alternatives(kind: Any) -> list[Any]:
    """Return the members of a union; arrays, and the members of ArrayLike, become NUMBERS."""
    members = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    # NumPy 2.5 and newer define both as aliases, which have no members and no origin `ndarray`.
    numbers = set(get_args(ArrayLike)) or {ArrayLike}
    if numbers <= set(members):
        return [NUMBERS, *(member for member in members if member not in numbers)]
    return [
        NUMBERS if get_origin(member) in (np.ndarray, NDArray) else member for member in members
    ]


def _is_list(value: object, element_types: tuple[Any, ...]) -> bool:
    """Return whether a value has a length and an order, and its elements have the right types."""
    if isinstance(value, str | bytes | Mapping | Set) or getattr(value, "ndim", 1) == 0:
        return False
    if not isinstance(value, Sized) or not isinstance(value, Iterable):
        return False
    kinds = _element_types(element_types, len(value))
    return len(kinds) == len(value) and all(map(fits, value, kinds))


def _element_types(element_types: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """Return the type of each of `size` elements: those of a pair, or the same type for all."""
    is_pair = len(element_types) > 1 and element_types[-1] is not Ellipsis
    return element_types if is_pair else element_types[:1] * size


def _is_numeric(value: object) -> bool:
    """Return whether a value is an array of numbers; integers may have any size."""
    try:
        array = np.asarray(value)
    except ValueError:
        return False
    if array.dtype.kind == "O":
        return array.size > 0 and all(map(_fits_in_float, array.flat))
    return array.dtype.kind in "biuf"


def _fits_in_float(number: object) -> bool:
    """Return whether a number can become a float, which very large integers cannot."""
    if isinstance(number, int):
        return abs(number) <= sys.float_info.max
    return isinstance(number, Real)


def _type_error(name: str, value: object, kind: Any) -> SurveyError:
    """Return the error for a wrong argument, or for the first wrong element of a list."""
    lists = [member for member in _alternatives(kind) if get_origin(member) in LISTS]
    if len(lists) == 1 and _is_list(value, (Any,)):
        items = list(cast("Iterable[object]", value))
        kinds = _element_types(get_args(lists[0]), len(items))
        for position, (item, item_kind) in enumerate(zip(items, kinds, strict=False)):
            if not fits(item, item_kind):
                return _type_error(f"{name}[{position}]", item, item_kind)
    excerpt = " ".join(repr(value).split())
    if len(excerpt) > MAX_SHOWN:
        excerpt = f"{excerpt[:MAX_SHOWN]}..."
    error = error_of(name)
    whole = "whole " if error is CountsError else ""
    text = f"{name} = {excerpt} must be {_describe(kind, whole)}"
    if any(isinstance(item, type) and item in CHANNELS for item in _all_types(kind)):
        return ChannelError(text)
    return error(text)


def _all_types(kind: Any) -> list[Any]:
    """Return all alternatives of a type, including the element types of lists."""
    alternatives = _alternatives(kind)
    lists = [member for member in alternatives if get_origin(member) in LISTS]
    return alternatives + [element for x in lists for element in _all_types(get_args(x)[0])]


def _describe(kind: Any, whole: str = "") -> str:
    """Describe in words what would have been right."""
    return " or ".join(dict.fromkeys(_describe_type(x, whole) for x in _alternatives(kind)))


def _describe_type(kind: Any, whole: str) -> str:
    plain = {
        NUMBERS: f"{whole}numbers, as many in each row",
        int: "a whole number",
        float: "a number",
        bool: "True or False",
        str: "a name",
        type(None): "None",
    }
    if kind in plain:
        return plain[kind]
    if get_origin(kind) in LISTS:
        elements = (_describe(element, whole) for element in get_args(kind) if element is not ...)
        return f"a list of {', '.join(elements)}"
    return f"a {getattr(kind, '__name__', 'name')}"


LARGEST_N = 10**10
"""More reports than there are people. The intervals are accurate up to this number."""

LEVELS = (1e-6, 1 - 1e-9)
"""Range of confidence levels: beyond it, 1 - level loses its double precision."""

LARGEST_NUMBER = 1e150
"""Numbers above this have squares that overflow."""


def checked_level(level: float) -> float:
    """Return the confidence level of an interval, or raise DesignError.

    >>> checked_level(0.95)
    0.95
    """
    if not isinstance(level, Real) or not LEVELS[0] <= level <= LEVELS[1]:
        raise DesignError(
            f"level = {level!r} must be between 0 and 1 ({LEVELS[0]:g} to 1 - 1e-09), "
            "for example 0.95"
        )
    return float(level)


def checked_whole(number: int, name: str, error: type[ValueError] = CountsError) -> int:
    """Return the number as an int; 2.0, True and "2" are rejected.

    >>> checked_whole(np.int64(2), "n")
    2
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise error(f"{name} = {number!r} must be a whole number")
    return int(number)


def within_reach(numbers: Floats) -> Booleans:
    """Return where a number and its square are finite; false for nan."""
    return np.asarray(np.abs(numbers) <= LARGEST_NUMBER)


def checked_values(values: Sequence[float | None] | ArrayLike, truths: int) -> Floats:
    """Return the number that each true answer stands for, nan where it is no answer (None)."""
    try:
        x = np.array([nan if v is None else v for v in np.asarray(values, dtype=object)], float)
    except (TypeError, ValueError):
        raise ValueError("values must be numbers, None where a truth is no answer") from None
    if x.shape != (truths,):
        raise ValueError(
            f"values has {x.size} entries for {truths} true answers: give one for each, None for "
            "no answer"
        )
    numbers = x[~np.isnan(x)]
    if not within_reach(numbers).all() or len(set(numbers.tolist())) < 2:
        raise ValueError(
            f"values must be finite numbers of at most {LARGEST_NUMBER:g} in size, at least two "
            "of them different"
        )
    return x


class NumberDesign(NamedTuple):
    """The channel of a question whose answers are numbers, and the number of each truth.

    None stands for no answer: nan never equals itself, so that no cache would find the design.
    """

    channel: CodeChannel
    values: tuple[float | None, ...]

    @classmethod
    def of(cls, channel: CodeChannel, truths: Floats) -> NumberDesign:
        """Return the design of truths with nan for no answer, as from `checked_values`."""
        return cls(channel, tuple(None if x != x else x for x in truths.tolist()))


def whole_counts(counts: ArrayLike, size: int, meaning: str) -> Integers:
    """Return the counts as int64 of shape (size,), or raise CountsError with the reason."""
    try:
        values = np.asarray(counts)
    except ValueError:
        raise CountsError(f"counts must be one row of {size} whole numbers: {meaning}") from None
    if values.shape != (size,):
        raise CountsError(f"counts of shape {values.shape} must have shape ({size},): {meaning}")
    if values.dtype.kind not in "iuf":
        raise CountsError(f"counts must be whole numbers, not {values.dtype}")
    if values.dtype.kind == "f":
        # A half-precision number cannot be compared with the largest n.
        values = values.astype(np.float64)
    for wrong, reason in (
        (~np.isfinite(values) | (values != np.floor(values)), "must be a whole number"),
        (values < 0, "must not be negative"),
        (values > size * LARGEST_N, f"is above the maximum of {LARGEST_N:,} reports"),
    ):
        if wrong.any():
            position = int(np.argmax(wrong))
            raise CountsError(f"counts[{position}] = {values[position]} {reason}")
    return values.astype(np.int64)


def reports_from(total: int, per_report: int, n: int | None) -> int:
    """Return the number of reports, if each adds `per_report` to the total of the counts.

    Raises CountsError if the total is no multiple of it, or a stated `n` differs.
    """
    if total % per_report:
        raise CountsError(
            f"the counts add up to {total}, but each report adds {per_report}: the sum must be a "
            "multiple"
        )
    return checked_n(total // per_report, n)


def checked_n(n: int, stated: int | None) -> int:
    """Return the number of reports, or raise CountsError unless it is from 1 to `LARGEST_N`."""
    n = checked_whole(n, "n")
    if stated is not None and checked_whole(stated, "n") != n:
        raise CountsError(f"n = {stated}, but the counts come from {n} reports")
    if not 1 <= n <= LARGEST_N:
        raise CountsError(f"n = {n}: an estimate needs 1 to {LARGEST_N:,} reports")
    return n


def check_at_most(counts: Integers, maxima: Integers, meaning: str) -> None:
    """Raise CountsError if a count is larger than its maximum, the count that contains it."""
    above = counts > maxima
    if above.any():
        option = int(np.argmax(above))
        raise CountsError(
            f"counts of option {option}: {counts[option]} of {maxima[option]} {meaning}"
        )


def bit_counts(
    counts: ArrayLike, channel: TickChannel, n: int | None
) -> tuple[Integers, Integers, int]:
    """Return the ones per option, the reports about each option, and the number of reports.

    `counts` are ones per option, and `n` must be stated. If the channel samples its options,
    `counts` are first how often each option was asked, then the ones; these determine n.
    """
    if channel.is_sampled:
        c = whole_counts(counts, 2 * channel.m, "times asked, then ones, per option")
        reports, ones = c[: channel.m], c[channel.m :]
        n = reports_from(int(reports.sum()), channel.sampled, n)
        check_at_most(reports, np.full(channel.m, n), "reports ask about it")
    else:
        ones = whole_counts(counts, channel.m, "ones per option")
        if n is None:
            raise CountsError("counts of ones do not determine n: state the number of reports")
        n = checked_n(n, None)
        reports = np.full(channel.m, n)
    check_at_most(ones, reports, "reports support it")
    return ones, reports, n
