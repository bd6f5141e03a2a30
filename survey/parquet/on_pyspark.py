"""PySpark: on the cluster that Spark's own settings name, else on all cores of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ibis
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from survey.errors import SettingsError, StoreError
from survey.parquet.engines import Table, first_line
from survey.parquet.reading import Export

VIEW = "reports"


@contextmanager
def pyspark_table(export: Export) -> Iterator[Table]:
    """Files read by Spark, whose workers must see them under the same path.

    A session that runs already is used and left running. Raises SettingsError where Spark does
    not start, StoreError for what it cannot read.
    """
    running = SparkSession.getActiveSession()
    session = running or _started()
    try:
        files = [str(part.absolute()) for part in export.parts]
        # By Spark itself: Ibis reads one file.
        session.read.parquet(*files).createOrReplaceTempView(VIEW)
        yield ibis.pyspark.connect(session).table(VIEW)
    except (PySparkException, Py4JJavaError) as error:
        raise StoreError(f"pyspark: {first_line(error)}") from error
    finally:
        if running is None:
            session.stop()


def _started() -> Any:
    builder = SparkSession.builder.appName("survey").config("spark.ui.enabled", "false")
    try:
        return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except PySparkException as error:
        raise SettingsError(
            f"pyspark did not start; it needs Java 17: {first_line(error)}"
        ) from error
