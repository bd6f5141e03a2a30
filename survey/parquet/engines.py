"""The engines that count: what each opens, imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from survey.parquet.reading import Export

Table = Any
Value = Any
"""`ibis.Table` and `ibis.Value`: names of an extra, without which there are no such types."""

Opened = Callable[[Export], AbstractContextManager[Table]]
"""The reports of an export as a table of an engine, for as long as the context lasts."""


def engine_named(name: str) -> Opened:
    """An engine of `ENGINES`; ImportError without its extra."""
    if name == "duckdb":
        from survey.parquet.on_duckdb import duckdb_table

        return duckdb_table
    from survey.parquet.on_pyspark import pyspark_table

    return pyspark_table


def first_line(error: Exception) -> str:
    """What an engine's error says, without what it was doing."""
    return str(error).partition("\n")[0]
