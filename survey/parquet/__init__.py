"""Released reports as Parquet, for engines made for very many of them, and their counts back.

Two functions, both of the extra `parquet`; the engine `pyspark` wants the extra `scale`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from survey.errors import SettingsError
from survey.parquet.directory import ENGINES, Manifest
from survey.store import PublishedSurvey, Store

if TYPE_CHECKING:
    from survey.parquet.counting import Reports

__all__ = ["ENGINES", "Manifest", "export_reports", "open_reports"]


def export_reports(
    store: Store,
    survey: PublishedSurvey,
    directory: Path,
    told: Callable[[int], object],
) -> Manifest:
    """Write the released reports of a version of a survey into a directory.

    `told` hears after each block how many reports it held. Raises ConflictError for a directory
    that holds anything but an earlier export of the same version, SettingsError without the extra.
    """
    with _wanting("parquet"):
        from survey.parquet.export import write_reports
    return write_reports(store, survey, directory, told)


@contextmanager
def open_reports(directory: Path, engine: str) -> Iterator[Reports]:
    """The reports of an export, counted by one of `ENGINES`.

    Raises NotFoundError where there is no export, StoreError for one that is not whole,
    SettingsError for an engine that is unknown or not installed.
    """
    if engine not in ENGINES:
        raise SettingsError(f"engine = {engine!r} must be one of {', '.join(ENGINES)}")
    with _wanting("parquet"):
        from survey.parquet.counting import Reports
        from survey.parquet.engines import load_engine
        from survey.parquet.export import read_export
    with _wanting(ENGINES[engine]):
        opened = load_engine(engine)
    found = read_export(directory)
    with opened(found) as table:
        yield Reports(found.survey, found.manifest, table)


@contextmanager
def _wanting(extra: str) -> Iterator[None]:
    """What is not installed, said by the extra that brings it."""
    try:
        yield
    except ImportError as missing:
        raise SettingsError(
            f"this needs packages that are not installed: pip install 'ldp-survey[{extra}]'"
        ) from missing
