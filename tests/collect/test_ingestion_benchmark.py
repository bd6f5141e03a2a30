"""The benchmark of ingestion runs, and refuses other responses and other numbers of reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.benchmarks.ingestion import GROUP, NOOP, Case, main, run_case


@pytest.mark.web
@pytest.mark.parametrize(
    ("server", "without", "n"), [("granian", ["single"], 2), ("gthread", [], 3)]
)
def test_the_benchmark_of_ingestion_runs(capsys, server, without, n):
    short = f"--server {server} --workers 1 --connections 4 --seconds 1 --rounds 1"
    main([*short.split(), "--without", "peer", "postgresql", *without])
    output = capsys.readouterr().out
    assert "durable / empty" in output
    assert output.count("{'201'") == n


@pytest.mark.web
def test_the_benchmark_of_ingestion_fails_for_another_status_or_number_of_reports(tmp_path):
    case = Case("granian", 1, 64, "sqlite", GROUP)
    database = f"sqlite:///{tmp_path / 'load.db'}"
    with run_case(case, database, tmp_path / "keys", 4) as trial:
        trial.load(4, 1)
        trial.check_rows(trial.rounds[0]["statuses"]["201"], 4)
        with pytest.raises(SystemExit, match=r"reports \(found 0\)"):
            trial.check_rows(0, 4)
        empty = replace(trial, case=replace(case, work=NOOP))
        with pytest.raises(SystemExit, match=r"0 to 0 reports \(found 1\)"):
            empty.check_rows(1, 4)
        with pytest.raises(SystemExit, match="every status must be 201"):
            replace(trial, url=f"{trial.url}/x").load(4, 1)
