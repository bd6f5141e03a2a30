"""The benchmark of releases runs, and finds the rows that it expects."""

from __future__ import annotations

import pytest

from tests.benchmarks.release import SHORT, Instance, measure
from tests.store.databases import KINDS


@pytest.mark.web
@pytest.mark.parametrize("kind", KINDS)
def test_the_benchmark_of_releases_runs_on_each_database(kind, tmp_path, request, capsys):
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'release.db'}"
    else:
        server = request.getfixturevalue("postgresql")
        url = server.create("unmigrated")
    measure(kind, url, tmp_path / "keys", SHORT)
    assert capsys.readouterr().out.count(kind) == 7
    instance = Instance(url, tmp_path / "keys")
    with pytest.raises(RuntimeError, match="rows instead of"):
        instance.check(instance.store.surveys()[0], 1, 1)
    instance.store.close_connections()
    if kind == "postgresql":
        server.drop(url)
