"""The benchmark of the home page runs, and finds the rows that it expects."""

from __future__ import annotations

import pytest

from tests.benchmarks import home
from tests.store.databases import KINDS

pytestmark = pytest.mark.web


@pytest.mark.parametrize("kind", KINDS)
def test_the_benchmark_of_the_home_page_runs_on_each_database(kind, tmp_path, request, capsys):
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'home.db'}"
    else:
        server = request.getfixturevalue("postgresql")
        url = server.create("unmigrated")
    home.measure(kind, url, home.SHORT)
    assert capsys.readouterr().out.count(kind) == 22
    if kind == "postgresql":
        server.drop(url)
