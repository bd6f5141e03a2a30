"""Arrays with masks or labels: rejected, or put in the order of their codes.

`numpy.asarray` drops both: a masked entry becomes an ordinary number, and labels that name another
order are ignored. The labels are those of pandas, recognized without importing it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError, CountsError

MAX_LABELS = 6
"""An error message about labels repeats at most this many."""


def reject_masked(value: object, name: str, error: type[Exception]) -> None:
    """Raise `error` for a masked array: its hidden entries would be read as numbers.

    >>> reject_masked(np.ma.masked_equal([1, 9], 9), "counts", ValueError)
    Traceback (most recent call last):
        ...
    ValueError: counts is a masked array: pass an ordinary array without the masked entries
    """
    # The type is recognized by its attribute, because `numpy.ma` takes time to import.
    if isinstance(value, np.ndarray) and hasattr(value, "mask"):
        raise error(f"{name} is a masked array: pass an ordinary array without the masked entries")


def is_labelled(value: object) -> bool:
    """Return whether a value has labels along its axes, as a pandas Series or DataFrame does."""
    return hasattr(value, "iloc") and hasattr(value, "index")


def axis_labels(value: Any) -> list[Any]:
    """Return the labels of each axis: the index, then the columns; none for other values."""
    if not is_labelled(value):
        return []
    return [value.index, value.columns] if hasattr(value, "columns") else [value.index]


def ordinary_rows(values: Any, name: str) -> NDArray[Any]:
    """Return an array with one row per person and no labels; its columns are options.

    Raises ChannelError for a masked array, CountsError for columns that are not labelled by code.
    """
    reject_masked(values, name, ChannelError)
    array: NDArray[Any] = np.asarray(values)
    for labels in axis_labels(values)[1:]:
        array = in_code_order(array, labels, 1, name)
    return array


def in_code_order(values: NDArray[Any], labels: Any, axis: int, name: str) -> NDArray[Any]:
    """Return the values in the order of their labels, which must be the codes 0, 1, 2, ...

    Raises CountsError for any other labels, because they do not say which option is meant.

    >>> in_code_order(np.array([50, 30, 20]), [2, 0, 1], 0, "counts")
    array([30, 20, 50])
    """
    codes = np.asarray(labels)
    size = len(codes)
    try:
        order = np.argsort(codes, kind="stable")
        if codes.ndim == 1 and (codes[order] == np.arange(size)).all():
            return np.take(values, order, axis=axis)
    except TypeError:
        # Labels of different types have no order.
        pass
    raise CountsError(
        f"{name} is labelled {excerpt(labels)}: labels must be the codes 0 to {size - 1}, each "
        "once; use reindex(range(k), fill_value=0), or pass an array in the order of the options; "
        "proportions, crosstab and difference also take the names of the options as labels=[...]"
    )


def codes_of_labels(names: list[Any], order: list[str], argument: str) -> list[int]:
    """Return the code of each label, its position in `order`.

    Raises CountsError for a label that is unknown, missing or repeated.

    >>> codes_of_labels(["no", "yes"], ["yes", "no"], "counts")
    [1, 0]
    """
    unknown = [name for name in names if name not in order]
    missing = [label for label in order if label not in names]
    for wrong, problem in (
        (unknown, "an unknown label"),
        (missing, "no entry for the label"),
        ([name for name in names if names.count(name) > 1], "several entries for the label"),
    ):
        if wrong:
            hint = "; use reindex(labels, fill_value=0)" if wrong is missing else ""
            raise CountsError(
                f"{argument} has {problem} {wrong[0]!r}: the labels are {excerpt(order)}{hint}"
            )
    return [order.index(name) for name in names]


def excerpt(labels: Any) -> str:
    """Return the first labels for a message.

    >>> excerpt(range(9))
    '0, 1, 2, 3, 4, 5, ...'
    """
    shown = np.asarray(labels[:MAX_LABELS]).tolist()
    return ", ".join(map(repr, shown)) + ", ..." * (len(labels) > MAX_LABELS)
