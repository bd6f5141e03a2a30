"""The table of reports as a file for SPSS (.sav) or Stata (.dta), with labels.

Both programs limit the length of labels. Longer ones are shortened; the README lists them, and
codebook.csv has their full text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from survey.errors import SettingsError
from survey.results.exports.report_table import ReportTable, Variable

STATA_VERSION = 15
"""pyreadstat's number for the format 118, the oldest one with Unicode (Stata 14 and newer)."""

ELLIPSIS = "…"


@dataclass(frozen=True)
class LabelLimits:
    """The maximum lengths of labels: of a variable and of a code."""

    program: str
    unit: str
    variable: int
    code: int

    def shorten(self, text: str, maximum: int) -> str:
        """Return a text of at most `maximum` units, with an ellipsis where it was cut.

        >>> SPSS.shorten("äää", 5), SPSS.shorten("äää", 6), STATA.shorten("a" * 81, 80)[-2:]
        ('ä…', 'äää', 'a…')
        """
        line = " ".join(text.split())
        if self._size(line) <= maximum:
            return line
        while self._size(line + ELLIPSIS) > maximum:
            line = line[:-1]
        return line + ELLIPSIS

    def _size(self, text: str) -> int:
        return len(text.encode()) if self.unit == "bytes" else len(text)


SPSS = LabelLimits("SPSS", "bytes", variable=256, code=120)
STATA = LabelLimits("Stata", "characters", variable=80, code=8_000)
"""Sources: IBM SPSS Statistics, "Variable names" and "Value labels"; Stata, "help limits"."""


def shortened_names(variables: tuple[Variable, ...], limits: LabelLimits) -> list[str]:
    """Return the names of the variables of which a label must be shortened."""
    return [
        variable.name
        for variable in variables
        if limits.shorten(variable.label, limits.variable) != variable.label
        or any(limits.shorten(text, limits.code) != text for text in variable.labels.values())
    ]


def write_sav(file: Path, table: ReportTable) -> None:
    """Write the table for SPSS."""
    measures = {v.name: "scale" if v.is_debiased else "nominal" for v in table.variables}
    _write(file, table, SPSS, lambda pyreadstat: pyreadstat.write_sav, variable_measure=measures)


def write_dta(file: Path, table: ReportTable) -> None:
    """Write the table for Stata 14 and newer."""
    _write(file, table, STATA, lambda pyreadstat: pyreadstat.write_dta, version=STATA_VERSION)


def _write(
    file: Path,
    table: ReportTable,
    limits: LabelLimits,
    writer: Callable[[Any], Callable[..., None]],
    **options: Any,
) -> None:
    try:
        import pandas as pd
        import pyreadstat
    except ImportError as missing:
        raise SettingsError(
            "SPSS and Stata files need packages that are not installed: "
            "pip install 'ldp-survey[spss]'"
        ) from missing
    frame = pd.DataFrame(
        {
            variable.name: pd.array(column, dtype=str) if variable.content == "group" else column
            for variable, column in zip(table.variables, table.columns, strict=True)
        }
    )
    definition = table.survey.definition
    writer(pyreadstat)(
        frame,
        str(file),
        # Stata's limit for the name of a data set is 80 characters; SPSS truncates it at 64 bytes.
        file_label=STATA.shorten(f"{definition.slug} {definition.version}: randomized", 60),
        column_labels=[limits.shorten(v.label, limits.variable) for v in table.variables],
        variable_value_labels={
            variable.name: _value_labels(variable, limits)
            for variable in table.variables
            if variable.labels
        },
        **options,
    )


def _value_labels(variable: Variable, limits: LabelLimits) -> dict[int, str]:
    return {code: limits.shorten(label, limits.code) for code, label in variable.labels.items()}
