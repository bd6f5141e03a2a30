"""Exports of every kind of channel, which tests copy, and the engines that count them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from survey.parquet import export_reports
from survey.parquet.engines import ENGINES
from survey.store import PublishedSurvey, Store, find_survey, open_store
from tests.parquet.reports import EVERY, fill, published
from tests.store.reports import add_spare_keys


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two surveys of every kind of channel, and an export of the first."""
    directory = tmp_path_factory.mktemp("whole")
    store = open_store(f"sqlite:///{directory / 'survey.db'}")
    store.migrate()
    add_spare_keys(store)
    every = published(store, list(EVERY))
    for seed, (stratum, n) in enumerate([("north", 300), ("south", 400), ("north", 200)]):
        fill(store, every, n, stratum, seed)
    fill(
        store,
        published(store, list(EVERY), "questions_per_person = 3\n", "drawn"),
        500,
        drawn=0.3,
    )
    export_reports(store, every, directory / "out", lambda n: None)
    store.close_connections()
    return directory


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Iterator[Store]:
    """Return a new copy of the store with the two surveys."""
    shutil.copy(whole / "survey.db", tmp_path / "survey.db")
    opened = open_store(f"sqlite:///{tmp_path / 'survey.db'}")
    yield opened
    opened.close_connections()


@pytest.fixture
def every(store: Store) -> PublishedSurvey:
    """Return the survey of every kind of channel, with 900 released reports of two strata."""
    return find_survey(store, "every")


@pytest.fixture
def drawn(store: Store) -> PublishedSurvey:
    """Return the survey that samples the same questions, with 500 reports."""
    return find_survey(store, "drawn")


@pytest.fixture
def exported(whole: Path, tmp_path: Path) -> Path:
    """Return an export of the survey `every`."""
    shutil.copytree(whole / "out", tmp_path / "exported")
    return tmp_path / "exported"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Start a local cluster for all tests: the start takes longer than any test."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.scale] if extra == "scale" else [])
        for name, extra in ENGINES.items()
    ]
)
def engine(request: pytest.FixtureRequest) -> str:
    """Return each engine in turn; PySpark only if its extra and Java are installed."""
    if request.param == "pyspark":
        request.getfixturevalue("spark")
    return str(request.param)
