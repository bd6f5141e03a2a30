"""Export released reports as Parquet, and count exports with engines made for large data.

Both functions need the extra `parquet`; the engine `pyspark` also needs the extra `scale`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from survey.errors import SettingsError, require_extra
from survey.parquet.engines import ENGINES, load_engine
from survey.store import PublishedSurvey, Store

if TYPE_CHECKING:
    from survey.parquet.counting import Reports
    from survey.parquet.export import Manifest

__all__ = ["ENGINES", "export_reports", "open_reports"]


def export_reports(
    store: Store,
    survey: PublishedSurvey,
    directory: Path,
    progress: Callable[[int], object],
    *,
    with_debiased: bool = False,
) -> Manifest:
    """Write the released reports of a survey version into a directory.

    `with_debiased` adds columns whose plain averages are the published shares and means. Calls
    `progress` after each block with its number of reports. Raises ConflictError for a directory
    that contains anything but an earlier export of the same version, and MissingPartError without
    the extra.
    """
    with require_extra("parquet"):
        from survey.parquet.export import write_reports
    return write_reports(store, survey, directory, progress, with_debiased=with_debiased)


@contextmanager
def open_reports(directory: Path, engine: str) -> Iterator[Reports]:
    """Open the reports of an export for counting by one of `ENGINES`.

    Raises NotFoundError if there is no export, StoreError if the export is incomplete,
    SettingsError for an unknown engine, and MissingPartError for one that is not installed.
    """
    if engine not in ENGINES:
        raise SettingsError(f"engine = {engine!r} must be one of {', '.join(ENGINES)}")
    with require_extra("parquet"):
        from survey.parquet.counting import Reports
        from survey.parquet.export import read_export
    with require_extra(ENGINES[engine]):
        open_table = load_engine(engine)
    export = read_export(directory)
    with open_table(export.parts) as table:
        yield Reports(export.survey, export.manifest, table)
