"""The base class of all results: frozen, a table in notebooks, rows for programs."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import fields
from itertools import product
from typing import Any

import numpy as np

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

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def head(self) -> dict[str, Any]:
        """Return the single numbers and texts that describe the whole result, by name."""
        return {
            name: value
            for name, value in self._values().items()
            if isinstance(value, str | int | float | np.number)
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one mapping per estimate, in plain values: its index, all columns and the head."""
        columns, head = self._columns(), {k: _plain(v) for k, v in self.head().items()}
        if not columns:
            return [head]
        shape = next(iter(columns.values())).shape
        names = self._names(len(shape))
        return [
            {
                **dict(zip(names, place, strict=True)),
                **{name: _plain(column[place]) for name, column in columns.items()},
                **head,
            }
            for place in product(*map(range, shape))
        ]

    def __repr__(self) -> str:
        head = ", ".join(f"{name}={_short(value)}" for name, value in self.head().items())
        lines = [f"{type(self).__name__}({head})"]
        if columns := self._columns():
            rows = self.to_rows()
            names = [*self._names(next(iter(columns.values())).ndim), *columns]
            cells = [[_short(row[name]) for name in names] for row in rows[:SHOWN_ROWS]]
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
        columns = self._columns()
        rows = self.to_rows()
        first = next(iter(columns.values()), None)
        names = [*self._names(first.ndim), *columns] if first is not None else [*self.head()]
        head = ", ".join(f"{name} {_short(value)}" for name, value in self.head().items())
        return (
            f"<table><caption>{html.escape(type(self).__name__)}"
            f"{': ' + html.escape(head) if columns else ''}</caption><thead>"
            + _html_row("th", names)
            + "</thead><tbody>"
            + "".join(_html_row("td", [_short(row[name]) for name in names]) for row in rows)
            + "</tbody></table>"
        )

    def _values(self) -> Mapping[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _columns(self) -> dict[str, np.ndarray[Any, Any]]:
        arrays = {n: v for n, v in self._values().items() if isinstance(v, np.ndarray) and v.ndim}
        largest = max(arrays.values(), key=lambda array: array.size, default=np.empty(()))
        shape = arrays.get("estimate", largest).shape
        return {name: value for name, value in arrays.items() if value.shape == shape}

    def _names(self, axes: int) -> tuple[str, ...]:
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


def _html_row(tag: str, cells: list[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
