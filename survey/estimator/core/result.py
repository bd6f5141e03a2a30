"""The base class of all results: frozen, a table in notebooks, rows for programs."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from survey.errors import CountsError, DesignError
from survey.estimator.core.notebook_forms import (
    NUMBERS,
    HtmlTable,
    arrow_table,
    data_frame,
    interval_chart,
)

if TYPE_CHECKING:
    import altair
    import pandas as pd
    import pyarrow as pa

SHOWN_ROWS = 12
"""Maximum number of rows that `repr` prints."""


class Result:
    """Base of frozen dataclasses whose arrays are estimates and whose other fields describe them.

    Arrays with the shape of `estimate` become columns, with one row per entry and its index; a
    result without `estimate` uses the shape of its largest array. Single numbers and texts become
    the head. Other fields (a covariance, parts) are attributes only.
    """

    index_names: tuple[str, ...] = ("option",)
    """Names of the axes of the arrays; arrays with fewer axes use the first names."""

    axis_labels: tuple[tuple[str, ...], ...] = ()
    """Labels along each axis, from `with_labels`; without them, rows have positions from 0."""

    axis_names: tuple[str, ...] = ()
    """Names of the axes from `with_labels`, instead of `index_names`."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def with_labels(self, *axes: Sequence[str], names: Sequence[str] = ()) -> Self:
        """Return the same result with labels along each axis, and names of the axes.

        The labels replace positions in `to_rows`, `to_pandas`, `to_arrow`, `plot` and printed
        tables. Raises CountsError unless each axis has one label per entry, all different.

        >>> from survey.estimator import proportions
        >>> from survey.mechanism import grr
        >>> shares = proportions([700, 1300], grr(2, "3/4")).with_labels(["yes", "no"])
        >>> [(row["option"], round(row["estimate"], 2)) for row in shares.to_rows()]
        [('yes', 0.2), ('no', 0.8)]
        """
        shape = self._shape()
        labels = tuple(tuple(str(label) for label in axis) for axis in axes)
        if tuple(map(len, labels)) != shape:
            raise CountsError(
                f"labels for axes of {[len(axis) for axis in labels]} entries must fit estimates "
                f"of shape {list(shape)}"
            )
        for axis in labels:
            if len(set(axis)) < len(axis):
                repeated = next(label for label in axis if axis.count(label) > 1)
                raise CountsError(f"labels must differ (found {repeated!r} more than once)")
        if names and len(names) != len(shape):
            raise CountsError(f"names = {list(names)} must be one per axis of {list(shape)}")
        labelled = copy.copy(self)
        # The dataclass is frozen; the copy is not shared yet.
        object.__setattr__(labelled, "axis_labels", labels)
        object.__setattr__(labelled, "axis_names", tuple(names))
        return labelled

    def head(self) -> dict[str, Any]:
        """Return the single numbers and texts that describe the whole result, by name."""
        return {
            name: value
            for name, value in self._values().items()
            if isinstance(value, str | int | float | np.number)
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one mapping per estimate, in plain values: its index, all columns and the head."""
        head = {name: _plain(value) for name, value in self.head().items()}
        return [{**row, **head} for row in self._body()] or [head]

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame with one row per estimate; its `attrs` are the head.

        The index has the labels, one level per axis; estimate and interval are columns. A result
        without an axis, such as a mean, is one row. Raises MissingPartError without pandas.
        """
        rows, head = self._body(), {name: _plain(value) for name, value in self.head().items()}
        index = self._names(len(self._shape())) if rows else ()
        return data_frame(rows or [head], index, head)

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow Table: the index and the columns; its metadata are the head.

        Raises MissingPartError without pyarrow.
        """
        head = {name: _plain(value) for name, value in self.head().items()}
        return arrow_table(self._body() or [head], head)

    def plot(self) -> altair.LayerChart | altair.FacetChart:
        """Return an Altair chart: a point and its interval for each estimate, and a line at 0.

        The scale includes 0, except that of a mean, which is the range of the values. A result with
        two axes has a panel for each entry of the first. Raises MissingPartError without Altair,
        DesignError for a result without intervals or with more than two axes.
        """
        rows = self.to_rows()
        names = self._names(len(self._shape()))
        if not set(NUMBERS) <= set(rows[0]) or len(names) > 2:
            raise DesignError(
                f"{type(self).__name__} has no chart: plot() draws estimates with intervals along "
                "one or two axes; to_pandas() returns all numbers"
            )
        marks = [{name: row[name] for name in (*names, *NUMBERS)} for row in rows]
        return interval_chart(marks, names, self.description, self.limits)

    @property
    def limits(self) -> tuple[float, float] | None:
        """The ends of a chart's scale: the range of the values of a mean, otherwise none."""
        low, high = (getattr(self, name, None) for name in ("low", "high"))
        return None if low is None or high is None else (float(low), float(high))

    @property
    def description(self) -> str:
        """What the numbers are, in a sentence: the level, the method, the number of reports."""
        head = self.head()
        level, method = head.get("level"), head.get("method")
        parts = [f"{100 * level:.4g}% intervals"] if isinstance(level, float) else []
        parts += [f"method {method}"] if method else []
        sizes = {name: head[name] for name in ("n", "n_a", "n_b") if name in head}
        parts += [f"{name} = {value:,}" for name, value in sizes.items()]
        return f"{type(self).__name__}: {', '.join(parts)}." if parts else type(self).__name__

    def __repr__(self) -> str:
        head = ", ".join(f"{name}={_short(value)}" for name, value in self.head().items())
        lines = [f"{type(self).__name__}({head})"]
        if rows := self._body():
            names = [*rows[0]]
            axes = len(self._shape())
            cells = [_cells(row, axes) for row in rows[:SHOWN_ROWS]]
            widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
            lines += [
                "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
                for row in (names, *cells)
            ]
            if len(rows) > SHOWN_ROWS:
                lines.append(f"... and {len(rows) - SHOWN_ROWS:,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        body = self._body()
        rows = body or [self.head()]
        axes = len(self._shape()) if body else 0
        return HtmlTable(
            self.description, tuple(rows[0]), [_cells(row, axes) for row in rows], axes
        ).text()

    def _body(self) -> list[dict[str, Any]]:
        """Return one mapping per estimate, of its index and the columns; none without arrays."""
        columns = self._columns()
        if not columns:
            return []
        shape = self._shape()
        names = self._names(len(shape))
        axes: Sequence[Sequence[object]] = self.axis_labels or [range(size) for size in shape]
        columns_of = zip(product(*axes), product(*map(range, shape)), strict=True)
        return [
            {
                **dict(zip(names, labels, strict=True)),
                **{name: _plain(column[place]) for name, column in columns.items()},
            }
            for labels, place in columns_of
        ]

    def _shape(self) -> tuple[int, ...]:
        columns = self._columns()
        return next(iter(columns.values())).shape if columns else ()

    def _values(self) -> Mapping[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _columns(self) -> dict[str, np.ndarray[Any, Any]]:
        arrays = {n: v for n, v in self._values().items() if isinstance(v, np.ndarray) and v.ndim}
        largest = max(arrays.values(), key=lambda array: array.size, default=np.empty(()))
        shape = arrays.get("estimate", largest).shape
        return {name: value for name, value in arrays.items() if value.shape == shape}

    def _names(self, axes: int) -> tuple[str, ...]:
        if self.axis_names:
            return self.axis_names
        if axes <= len(self.index_names):
            return self.index_names[:axes]
        return tuple(f"index_{axis}" for axis in range(axes))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _short(value: Any) -> str:
    if isinstance(value, float | np.floating):
        number = float(value)
        return f"{number:.4f}" if number == 0 or 1e-3 <= abs(number) < 1e5 else f"{number:.4g}"
    return repr(value) if isinstance(value, str) else str(value)


def _cells(row: Mapping[str, Any], axes: int) -> list[str]:
    """Return the texts of a row; those of its index, the first ones, are plain labels."""
    values = [*row.values()]
    return [*map(str, values[:axes]), *map(_short, values[axes:])]
