"""Validation of arguments: their kinds, counts, levels and numbers of reports."""

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
from survey.mechanism import BitVector, SubsetSelection, WeightTable
from survey.mechanism.arrays import Booleans, Floats, Integers

NUMBERS = "numbers"
"""What an array of numbers is annotated with becomes, among alternatives."""

LISTS = (list, tuple, Sequence)

P = ParamSpec("P")
R = TypeVar("R")

CHANNELS = (SubsetSelection, BitVector, WeightTable)
COUNTED = ("counts", "joint_counts", "supports", "reports", "columns", "yes", "a", "b")
"""Arguments that are counts or reports, refused as CountsError; channels as ChannelError."""

NAMED_ELSEWHERE = ("level",)
"""Arguments that every estimator refuses in words of its own."""

SHOWN = 60
"""So much of a wrong argument is repeated."""


def checked_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The function, refusing arguments that are not what its annotations say.

    Raises ChannelError, CountsError or DesignError, "NAME = VALUE must be ...".

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
    def kinds() -> dict[str, Any]:
        return get_type_hints(function)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            kind = Any if name in NAMED_ELSEWHERE else kinds().get(name, Any)
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            for one in value if several else (value,):
                if not fits(one, kind):
                    raise _refusal(name, one, kind)
        return function(*args, **kwargs)

    return checked


def fits(value: object, kind: Any) -> bool:
    """Whether a value is of the kind that an annotation names; unknown annotations fit all.

    >>> from survey.mechanism import grr
    >>> fits([1, 2], ArrayLike), fits(["a"], ArrayLike), fits(grr(2, "3/4"), BitVector)
    (True, False, False)
    """
    return any(_fits(value, one) for one in _alternatives(kind))


def _fits(value: object, kind: Any) -> bool:
    origin = get_origin(kind)
    if kind is Any:
        return True
    if kind is NUMBERS:
        return _are_numbers(value)
    if origin is Literal:
        return isinstance(value, str)
    if origin in LISTS:
        return _is_list(value, get_args(kind))
    if origin is Mapping:
        return isinstance(value, Mapping)
    if kind in (int, float):
        number = Integral if kind is int else Real
        return isinstance(value, number) and not isinstance(value, bool) and _is_small(value)
    return isinstance(value, kind | np.bool_ if kind is bool else kind)


def _alternatives(kind: Any) -> list[Any]:
    """The members of a union; those that make up ArrayLike, and arrays, are NUMBERS."""
    members = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    numbers = set(get_args(ArrayLike))
    if numbers <= set(members):
        return [NUMBERS, *(one for one in members if one not in numbers)]
    return [NUMBERS if get_origin(one) is np.ndarray else one for one in members]


def _is_list(value: object, of: tuple[Any, ...]) -> bool:
    """Whether it has a length and an order, and each thing in it is of the kind."""
    if isinstance(value, str | bytes | Mapping | Set):
        return False
    if not isinstance(value, Sized) or not isinstance(value, Iterable):
        return False
    if getattr(value, "ndim", 1) == 0:
        return False
    if len(of) > 1 and of[-1] is not Ellipsis and len(value) != len(of):
        return False
    return all(map(fits, value, _each(of, len(value))))


def _each(of: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """The kind of each of so many things: those of a pair, or all the same."""
    return of if len(of) > 1 and of[-1] is not Ellipsis else of[:1] * size


def _are_numbers(value: object) -> bool:
    """Numbers of one shape; whole ones of any size."""
    try:
        array = np.asarray(value)
    except ValueError:
        return False
    if array.dtype.kind == "O":
        return array.size > 0 and all(map(_is_small, array.flat))
    return array.dtype.kind in "biuf"


def _is_small(number: object) -> bool:
    """Whether it is a number that can become a float: whole ones may be too large."""
    if isinstance(number, int):
        return abs(number) <= sys.float_info.max
    return isinstance(number, Real)


def _refusal(name: str, value: object, kind: Any) -> SurveyError:
    """Of a list with one wrong thing in it, that thing's."""
    lists = [one for one in _alternatives(kind) if get_origin(one) in LISTS]
    if len(lists) == 1 and _is_list(value, (Any,)):
        things = list(cast("Iterable[object]", value))
        kinds = _each(get_args(lists[0]), len(things))
        for place, (one, of) in enumerate(zip(things, kinds, strict=False)):
            if not fits(one, of):
                return _refusal(f"{name}[{place}]", one, of)
    shown = " ".join(repr(value).split())
    if len(shown) > SHOWN:
        shown = f"{shown[:SHOWN]}..."
    whole = "whole " if name.partition("[")[0] in COUNTED else ""
    text = f"{name} = {shown} must be {_wanted(kind, whole)}"
    if any(isinstance(one, type) and one in CHANNELS for one in _named(kind)):
        return ChannelError(text)
    return CountsError(text) if whole else DesignError(text)


def _named(kind: Any) -> list[Any]:
    """All alternatives, those of what is in lists too."""
    found = _alternatives(kind)
    return found + [
        each for one in found if get_origin(one) in LISTS for each in _named(get_args(one)[0])
    ]


def _wanted(kind: Any, whole: str = "") -> str:
    """What would have been right, in words."""
    return " or ".join(dict.fromkeys(_words(one, whole) for one in _alternatives(kind)))


def _words(kind: Any, whole: str) -> str:
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
        of = [_wanted(one, whole) for one in get_args(kind) if one is not Ellipsis]
        return f"a list of {', '.join(of)}"
    return f"a {getattr(kind, '__name__', 'name')}"


LARGEST_N = 10**10
"""More reports than there are people; the intervals are accurate up to here."""

LEVELS = (1e-6, 1 - 1e-9)
"""The levels of intervals: beyond them the double precision of 1 - level runs out."""


MAX_LABELS = 6
"""An error message about labels repeats at most this many."""

LARGEST_NUMBER = 1e150
"""Numbers of a larger size have squares that cannot be computed with."""


def checked_level(level: float) -> float:
    """The level of an interval, or DesignError.

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
    """The number as an int; neither 2.0 nor True nor "2" is one.

    >>> checked_whole(np.int64(2), "n")
    2
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise error(f"{name} = {number!r} must be a whole number")
    return int(number)


def within_reach(numbers: Floats) -> Booleans:
    """Where a number is finite and its square too; nan is not."""
    return np.asarray(np.abs(numbers) <= LARGEST_NUMBER)


def checked_values(values: Sequence[float | None] | ArrayLike, truths: int) -> Floats:
    """The number that each true answer stands for, nan where it is no answer (None)."""
    try:
        x = np.array([nan if v is None else v for v in np.asarray(values, dtype=object)], float)
    except (TypeError, ValueError):
        raise ValueError("values must be numbers, None where a truth is no answer") from None
    if x.shape != (truths,):
        raise ValueError(f"{x.size} values for {truths} true answers: one for each, None for none")
    numbers = x[~np.isnan(x)]
    if not within_reach(numbers).all() or len(set(numbers.tolist())) < 2:
        raise ValueError(
            f"values must be finite numbers of at most {LARGEST_NUMBER:g} in size, at least two "
            "of them different"
        )
    return x


def aligned(counts: ArrayLike, axes: Sequence[int] | None = None) -> NDArray[Any]:
    """Return counts as an array, with labelled entries in the order of their labels.

    The entries of a pandas Series or DataFrame carry labels: those of `value_counts()` come in
    order of frequency. Along each of the `axes` (default: all) the labels must be the codes
    0 to size - 1, each once, in any order. Arrays and lists have no labels and stay as they are.

    Raises CountsError for any other labels, because they do not say which option is meant.
    """
    values = np.asarray(counts)
    for axis, attribute in enumerate(("index", "columns")):
        labels = getattr(counts, attribute, None)
        # Lists have a method of this name.
        if labels is None or callable(labels) or axis >= values.ndim:
            continue
        if axes is None or axis in axes or axis - values.ndim in axes:
            values = np.take(values, _order_of(np.asarray(labels)), axis=axis)
    return values


def _order_of(labels: NDArray[Any]) -> Integers:
    """Return the places of the labels 0, 1, ... in this order, or raise CountsError."""
    size = len(labels)
    try:
        order = np.argsort(labels, kind="stable")
        if labels.ndim == 1 and (labels[order] == np.arange(size)).all():
            return order
    except TypeError:
        # Labels of different kinds have no order.
        pass
    shown = ", ".join(map(repr, labels.tolist()[:MAX_LABELS]))
    raise CountsError(
        f"counts are labelled {shown}{', ...' * (size > MAX_LABELS)}: labels must be the codes 0 "
        f"to {size - 1}, each once; use reindex(range(k), fill_value=0), or pass an array in the "
        "order of the options"
    )


def whole_counts(counts: ArrayLike, size: int, what: str) -> Integers:
    """The counts as int64 of shape (size,), or the reason why they are none."""
    try:
        values = np.asarray(counts)
    except ValueError:
        raise CountsError(f"counts must be one row of {size} whole numbers: {what}") from None
    if values.shape == (size,):
        values = aligned(counts)
    if values.shape != (size,):
        raise CountsError(f"counts of shape {values.shape} must have shape ({size},): {what}")
    if values.dtype.kind not in "iuf":
        raise CountsError(f"counts must be whole numbers, not {values.dtype}")
    if values.dtype.kind == "f":
        # A half-precision number cannot be compared with the largest n.
        values = values.astype(np.float64)
    for wrong, reason in (
        (~np.isfinite(values) | (values != np.floor(values)), "must be a whole number"),
        (values < 0, "must not be negative"),
        (values > size * LARGEST_N, f"is above {LARGEST_N:,} reports"),
    ):
        if wrong.any():
            place = int(np.argmax(wrong))
            raise CountsError(f"counts[{place}] = {values[place]} {reason}")
    return values.astype(np.int64)


def reports_from(total: int, each: int, n: int | None) -> int:
    """How many reports add `each` to the total of the counts; a stated `n` must agree."""
    if total % each:
        raise CountsError(f"the counts add up to {total}; a report adds {each}, so {each} divides")
    return checked_n(total // each, n)


def checked_n(n: int, stated: int | None) -> int:
    """The number of reports, within what can be estimated from."""
    n = checked_whole(n, "n")
    if stated is not None and checked_whole(stated, "n") != n:
        raise CountsError(f"n = {stated} but the counts are those of {n} reports")
    if not 1 <= n <= LARGEST_N:
        raise CountsError(f"n = {n}: an estimate needs 1 to {LARGEST_N:,} reports")
    return n


def check_at_most(counts: Integers, most: Integers, of: str) -> None:
    """Refuse a count above what it is a part of."""
    above = counts > most
    if above.any():
        place = int(np.argmax(above))
        raise CountsError(f"counts of option {place}: {counts[place]} of {most[place]} {of}")


def bit_counts(
    counts: ArrayLike, channel: BitVector, n: int | None
) -> tuple[Integers, Integers, int]:
    """Of reported bits: ones per option, reports that ask about it, and the number of reports.

    `counts` are ones per option, with `n` stated; of a channel that samples its options times
    asked, then ones, which tell n.
    """
    if channel.is_sampled:
        c = whole_counts(counts, 2 * channel.m, "times asked, then ones, per option")
        reports, ones = c[: channel.m], c[channel.m :]
        n = reports_from(int(reports.sum()), channel.sampled, n)
        check_at_most(reports, np.full(channel.m, n), "reports ask about it")
    else:
        ones = whole_counts(counts, channel.m, "ones per option")
        if n is None:
            raise CountsError("counts of ones do not tell n: state the number of reports")
        n = checked_n(n, None)
        reports = np.full(channel.m, n)
    check_at_most(ones, reports, "reports hold it")
    return ones, reports, n
