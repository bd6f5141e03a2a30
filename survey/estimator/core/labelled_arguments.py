"""Labelled arguments of public estimators: put in the order of their codes, or rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.errors import CountsError, DesignError, SurveyError
from survey.mechanism.labelled_arrays import (
    axis_labels,
    codes_of_labels,
    excerpt,
    in_code_order,
    is_labelled,
    reject_masked,
)

COUNT_ARGUMENTS = ("counts", "joint_counts", "supports", "reports", "columns", "yes", "a", "b")
"""Names of arguments that are counts or reports: a wrong type of these is a CountsError."""


def error_of(name: str) -> type[SurveyError]:
    """Return the type of error for a wrong argument: CountsError for counts and reports."""
    return CountsError if name.partition("[")[0] in COUNT_ARGUMENTS else DesignError


class Axes(Enum):
    """What the labels of an argument stand for, axis by axis.

    CODES       options or reports along every axis
    LAST_CODES  options or reports along the last axis; rows along the axis before it
    ROWS        people, strata or classes along the first axis; options along the second
    NAMED       as ROWS, but the columns may have any names
    LISTED      a list of arrays, each as ROWS
    """

    CODES = 1
    LAST_CODES = 2
    ROWS = 3
    NAMED = 4
    LISTED = 5


AXES: Mapping[str, Axes] = {
    **dict.fromkeys(
        ("a", "b", "covariance", "estimate", "joint_counts", "margins", "patterns", "prior"),
        Axes.CODES,
    ),
    **dict.fromkeys(("seed", "values"), Axes.CODES),
    **dict.fromkeys(("counts", "report_shares", "supports"), Axes.LAST_CODES),
    **dict.fromkeys(
        ("estimates", "group", "n", "outcome", "p", "parents", "population"), Axes.ROWS
    ),
    **dict.fromkeys(("populations", "reports", "std_errors", "times", "weights", "yes"), Axes.ROWS),
    **dict.fromkeys(("covariates", "predictors"), Axes.NAMED),
    "columns": Axes.LISTED,
}
"""The axes of each argument whose labels matter."""

AXES_OF_TABLES: Mapping[tuple[str, str], Axes] = {
    ("raking_weights", "reports"): Axes.CODES,
    ("standardized_shares", "population"): Axes.CODES,
    ("joint_counts", "sizes"): Axes.CODES,
}
"""The exceptions, by function and argument."""


class _Rows(NamedTuple):
    """An array with one entry per row; its labels are None if it has none."""

    name: str
    size: int
    labels: Any


def arranged_arguments(function: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without labels, in the order of their codes; rows must agree.

    An argument `labels` states the labels of the codes, in order; then a labelled array may have
    these labels instead of the codes. It is one list, or one list per axis of a table.
    """
    rows: list[_Rows] = []
    labels = arguments.get("labels")
    arranged = {
        name: _arranged(
            _with_codes(value, name, labels) if name in LABELLED and labels is not None else value,
            name,
            AXES_OF_TABLES.get((function, name), AXES.get(name)),
            rows,
        )
        for name, value in arguments.items()
    }
    _check_rows(rows)
    return arranged


LABELLED = ("a", "b", "counts", "joint_counts")
"""The arguments to which an argument `labels` applies."""


def _with_codes(value: Any, name: str, labels: Any) -> Any:
    """Return a labelled array with codes instead of the stated labels along each of its axes.

    Codes stay as they are. Raises CountsError for a label that is unknown or missing.
    """
    if not is_labelled(value):
        return value
    present = axis_labels(value)
    stated = [labels] if len(present) == 1 else labels
    if len(stated) != len(present) or isinstance(stated, str):
        raise CountsError(f"labels must be {len(present)} lists, one for each axis of {name}")
    coded = value.copy()
    for axis, (names, order) in enumerate(zip(present, stated, strict=True)):
        if any(isinstance(label, str) for label in names):
            codes = codes_of_labels([*names], [*map(str, order)], name)
            coded = coded.set_axis(codes, axis=axis)
    return coded


def _arranged(value: Any, name: str, axes: Axes | None, rows: list[_Rows]) -> Any:
    """Return a value whose labelled arrays, at any depth, are ordinary arrays; collect its rows."""
    reject_masked(value, name, error_of(name))
    if is_labelled(value):
        return _arranged_array(value, name, axes, rows)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = {
            field: _arranged(getattr(value, field), f"{name}.{field}", AXES.get(field), rows)
            for field in value._fields
        }
        return type(value)(**parts)
    if isinstance(value, Mapping):
        return {key: _arranged(item, f"{name}[{key!r}]", axes, rows) for key, item in value.items()}
    if _may_have_rows(value, axes):
        rows.append(_Rows(name, len(value), None))
    if isinstance(value, list | tuple) and not all(isinstance(item, SCALARS) for item in value):
        inner = INNER_AXES.get(axes)
        items = [
            _arranged(item, f"{name}[{place}]", inner, rows) for place, item in enumerate(value)
        ]
        return items if isinstance(value, list) else tuple(items)
    return value


ROW_AXES = (Axes.ROWS, Axes.NAMED, Axes.LAST_CODES)

SCALARS = (int, float, str, np.generic, type(None))

INNER_AXES: Mapping[Axes | None, Axes] = {
    Axes.CODES: Axes.CODES,
    Axes.LAST_CODES: Axes.CODES,
    Axes.ROWS: Axes.CODES,
    Axes.LISTED: Axes.ROWS,
}
"""The axes of each array in a list: the list itself is the first axis."""


def _may_have_rows(value: Any, axes: Axes | None) -> bool:
    """Return whether a value without labels has an entry for each row."""
    if isinstance(value, np.ndarray):
        depth = value.ndim
    elif isinstance(value, list | tuple):
        depth = 1 if all(isinstance(item, SCALARS) for item in value) else 2
    else:
        return False
    return depth > (1 if axes is Axes.LAST_CODES else 0) and axes in ROW_AXES


def _arranged_array(value: Any, name: str, axes: Axes | None, rows: list[_Rows]) -> Any:
    """Return a labelled array as an ordinary one, in the order of its codes; collect its rows."""
    if axes is None:
        return value
    labels = axis_labels(value)
    values: NDArray[Any] = np.asarray(value)
    has_rows = axes in ROW_AXES and (axes is not Axes.LAST_CODES or values.ndim > 1)
    if has_rows:
        rows.append(_Rows(name, len(values), labels[0]))
    coded = () if axes is Axes.NAMED else range(int(has_rows), values.ndim)
    for axis in coded:
        values = in_code_order(values, labels[axis], axis, name)
    return values


def _check_rows(rows: Sequence[_Rows]) -> None:
    """Raise CountsError if arrays with an entry for each row may be in different orders."""
    for place, second in enumerate(rows):
        for first in rows[:place]:
            if first.size != second.size or first.labels is second.labels is None:
                continue
            pair = [first, second]
            if first.labels is None or second.labels is None:
                # Other labels, such as names or those of a selection, do not contradict positions.
                labelled, other = pair if second.labels is None else pair[::-1]
                is_misaligned = _is_permuted(labelled.labels)
                reason = f"but {other.name} has no labels"
            else:
                labelled, other = pair[::-1]
                is_misaligned = not labelled.labels.equals(other.labels)
                reason = f"but {other.name} is labelled {excerpt(other.labels)}"
            if is_misaligned:
                raise CountsError(
                    f"{labelled.name} is labelled {excerpt(labelled.labels)}, {reason}: give both "
                    f"the same labels in the same order, or pass both without labels "
                    "(`to_numpy()`)"
                )


def _is_permuted(labels: Any) -> bool:
    """Return whether labels are the positions 0, 1, 2, ... in another order."""
    positions = np.asarray(labels)
    if positions.dtype.kind not in "iu":
        return False
    ordered = np.arange(len(positions))
    return bool((np.sort(positions) == ordered).all() and (positions != ordered).any())
