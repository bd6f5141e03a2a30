"""The formats in which released reports can be downloaded, and the ZIP file of each.

Every ZIP has the reports and the same documents: README, channels, values and codebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile

from survey.results.exports.csv import to_csv
from survey.results.exports.microdata import (
    README_WIDTH,
    write_all_values,
    write_documents,
    write_microdata,
)
from survey.results.exports.package import Package
from survey.results.exports.replication import write_replication
from survey.results.exports.report_table import (
    ReportTable,
    VariableRow,
    codebook_rows,
    read_table,
    write_labels,
)
from survey.results.exports.statistics_files import (
    SPSS,
    STATA,
    LabelLimits,
    shortened_names,
    write_dta,
    write_sav,
)
from survey.store import PublishedSurvey, Store

TABLE_COLUMNS = """Columns of {file}
  codebook.csv lists all columns, with the meaning of each code; codebook.xml is the same in DDI.
  A question with one answer has a column of codes. A multiple choice has a column per option that
  says whether the report names it. Both are randomized: never treat them as true answers.
{debiased}"""
"""The README's text about the columns of files with labels."""

DEBIASED_COLUMNS = """\
  Columns named ID_share_OPTION, ID_mean and ID_rank_OPTION are debiased: their plain average over
  the cells that are not empty is the published estimate. Pages suppress estimates with very wide
  intervals; these columns remain in the file. For the mean of a group, divide the average of
  ID_mean in the group by that of ID_base, if the question has this column: it debiases who
  answered. An empty cell: the respondent was not asked, or the report does not cover the option.
"""
"""The README's text about columns whose averages are published."""


@dataclass(frozen=True)
class ReportFormat:
    """A format: its title, one sentence about its use, and the function that writes the ZIP.

    The function takes a file, the store and the survey, and returns the number of reports.
    """

    title: str
    description: str
    write: Callable[[IO[bytes], Store, PublishedSurvey], int]


def write_table(
    file: IO[bytes],
    store: Store,
    survey: PublishedSurvey,
    name: str,
    write: Callable[[Path, ReportTable], None],
    limits: LabelLimits | None = None,
) -> int:
    """Write a ZIP with the table of reports as the file `name`, and its documents."""
    table = read_table(store, survey)
    columns = TABLE_COLUMNS.format(file=name, debiased=DEBIASED_COLUMNS)
    if limits and (names := shortened_names(table.variables, limits)):
        columns += fill(
            f"{limits.program} limits labels to {limits.variable} {limits.unit} (codes: "
            f"{limits.code:,}). codebook.csv has the full labels of: {', '.join(names)}.",
            README_WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
        )
        columns += "\n"
    with ZipFile(file, "w", ZIP_DEFLATED) as archive, TemporaryDirectory() as directory:
        package = Package(archive)
        write(Path(directory) / name, table)
        write_documents(package, survey, table.tally, columns=columns)
        write_all_values(package, survey, table.tally)
        package.add("codebook.csv", to_csv(codebook_rows(table.variables), VariableRow))
        package.add_file(name, Path(directory) / name)
    return table.tally.n


def _write_labels_file(file: Path, table: ReportTable) -> None:
    with file.open("w", encoding="utf-8", newline="") as text:
        write_labels(text, table)


FORMATS: Mapping[str, ReportFormat] = {
    "csv": ReportFormat(
        "CSV with codes",
        "One row per response and one column per question, with the codes that devices sent. For "
        "your own programs.",
        write_microdata,
    ),
    "labels": ReportFormat(
        "CSV with labels",
        "The same rows with answers in words and one column per option of a multiple choice. For "
        "Excel, R and pandas.",
        partial(write_table, name="reports.csv", write=_write_labels_file),
    ),
    "spss": ReportFormat(
        "SPSS (.sav)",
        "Question texts are variable labels, and answers are value labels. Also opens in PSPP, "
        "jamovi and JASP.",
        partial(write_table, name="reports.sav", write=write_sav, limits=SPSS),
    ),
    "stata": ReportFormat(
        "Stata (.dta)",
        "The same labels for Stata 14 and newer.",
        partial(write_table, name="reports.dta", write=write_dta, limits=STATA),
    ),
    "replication": ReportFormat(
        "Replication package",
        "The responses, the published figures, and two scripts that recompute each figure in R and "
        "in Python. For reviewers and archives.",
        write_replication,
    ),
}
"""The formats by name. Parquet, whose writer is in another package, is added by its users."""
