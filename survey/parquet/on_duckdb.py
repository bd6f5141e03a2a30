"""DuckDB: in this process, on all cores of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import ibis

from survey.errors import StoreError
from survey.parquet.engines import Table, first_line
from survey.parquet.reading import Export


@contextmanager
def duckdb_table(export: Export) -> Iterator[Table]:
    """Files read by DuckDB; StoreError for what it cannot read."""
    connection = ibis.duckdb.connect()
    try:
        # Else a folder named like a question would replace its column.
        yield connection.read_parquet([*map(str, export.parts)], hive_partitioning=False)
    except duckdb.Error as error:
        raise StoreError(f"duckdb: {first_line(error)}") from error
    finally:
        connection.disconnect()
