"""Every page, file and interface contains the same released reports and no pending reports."""

from __future__ import annotations

import csv
import io
import os
import re
from zipfile import ZipFile

import openpyxl
import pytest
from click.testing import CliRunner
from prometheus_client.registry import CollectorRegistry

from survey.cli import main
from survey.ops.health import Gauges
from survey.store import StoredReport
from tests.api.conftest import LATEST, Program, make_token
from tests.browser.research import add_released
from tests.conftest import EMAIL
from tests.web.researchers import send, sign_in

RELEASED, PENDING = 3_017, 24
RESULTS = "/research/surveys/small/1"


def counts_in_csv(text: str) -> set[str]:
    """Return the numbers of reports that the rows of a CSV file state."""
    return {row["n_reports"] for row in csv.DictReader(io.StringIO(text))}


def count_reports(answer) -> int:
    packed = io.BytesIO(answer.data)
    answer.close()
    with ZipFile(packed) as members:
        return len(members.read("reports.csv").splitlines()) - 1


def counts_in_workbook(content: bytes) -> set[str]:
    counts = set()
    for sheet in openpyxl.load_workbook(io.BytesIO(content), read_only=True):
        head, *rows = sheet.iter_rows(values_only=True)
        if "n_reports" in head:
            counts |= {str(row[head.index("n_reports")]) for row in rows}
    return counts


@pytest.mark.security
def test_small_groups_page_files_api_command_and_figures_agree_on_what_is_released(
    client, store, small, researcher, settings, monkeypatch
):
    add_released(store, small, RELEASED)
    pending = [StoredReport(os.urandom(16), "", bytes(2)) for _ in range(PENDING)]
    store.add_reports([(small.key, report) for report in pending])
    assert sign_in(client).status_code == 302
    program = Program(client, make_token(store, store.researcher(EMAIL).key))
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    counts = {
        "page": set(re.findall(r"([\d,]+) released responses", client.get(RESULTS).text)),
        "list": set(re.findall(r'<p class="progress">([\d,]+)', client.get("/research/").text)),
        "csv": counts_in_csv(client.get(f"{RESULTS}/estimates.csv").text),
        "xlsx": counts_in_workbook(client.get(f"{RESULTS}/estimates.xlsx").data),
        "microdata": {count_reports(send(client, f"{RESULTS}/microdata", form="csv"))},
        "api": counts_in_csv(program.get(f"{LATEST}/estimates", accept="text/csv").text),
        "api's file": {count_reports(program.get(f"{LATEST}/exports/reports.zip"))},
        "command": counts_in_csv(CliRunner().invoke(main, ["export", "small"]).output),
        "figures": {released_gauge(store)},
    }
    numbers = {
        name: {int(str(item).replace(",", "")) for item in items} for name, items in counts.items()
    }
    assert numbers == {name: {RELEASED} for name in counts}


def released_gauge(store) -> int:
    registry = CollectorRegistry()
    registry.register(Gauges(store, "0" * 64, dict))
    return int(registry.get_sample_value("survey_reports_released"))
