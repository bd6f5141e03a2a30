"""The engines that count: DuckDB in this process, PySpark on this machine or a cluster.

Each engine's packages are imported when the engine is requested, since they belong to extras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from survey.errors import SettingsError, StoreError

Table = Any
Value = Any
"""`ibis.Table` and `ibis.Value`; without the extra these types do not exist."""

OpenTable = Callable[[Sequence[Path]], AbstractContextManager[Table]]
"""Opens the reports of an export as a table of an engine for as long as the context lasts."""

ENGINES = {"duckdb": "parquet", "pyspark": "scale"}
"""Each engine and the extra that installs it."""

VIEW = "reports"


def load_engine(name: str) -> OpenTable:
    """Return the function that opens an export in an engine; ImportError without its extra."""
    return _load_duckdb() if name == "duckdb" else _load_pyspark()


def first_line(error: Exception) -> str:
    """Return an error's first line, which holds the reason without the engine's context."""
    return str(error).partition("\n")[0]


def _load_duckdb() -> OpenTable:
    """Return the function for DuckDB, which runs in this process on all cores."""
    import duckdb
    import ibis

    @contextmanager
    def open_table(parts: Sequence[Path]) -> Iterator[Table]:
        connection = ibis.duckdb.connect()
        try:
            # With partitioning a folder named like a question would replace its column.
            yield connection.read_parquet([*map(str, parts)], hive_partitioning=False)
        except duckdb.Error as error:
            raise StoreError(f"duckdb: {first_line(error)}") from error
        finally:
            connection.disconnect()

    return open_table


def _load_pyspark() -> OpenTable:
    """Return the function for PySpark on the cluster of Spark's settings, or on this machine.

    Spark's workers must see the files under the same path. A running session stays open.
    """
    import ibis
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    def start_session() -> Any:
        builder = SparkSession.builder.appName("survey").config("spark.ui.enabled", "false")
        try:
            return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        except PySparkException as error:
            raise SettingsError(
                f"pyspark did not start; it needs Java 17: {first_line(error)}"
            ) from error

    @contextmanager
    def open_table(parts: Sequence[Path]) -> Iterator[Table]:
        running = SparkSession.getActiveSession()
        session = running or start_session()
        try:
            files = [str(part.absolute()) for part in parts]
            # Ibis reads one file only; Spark reads all of them.
            session.read.parquet(*files).createOrReplaceTempView(VIEW)
            yield ibis.pyspark.connect(session).table(VIEW)
        except (PySparkException, Py4JJavaError) as error:
            raise StoreError(f"pyspark: {first_line(error)}") from error
        finally:
            if running is None:
                session.stop()

    return open_table
