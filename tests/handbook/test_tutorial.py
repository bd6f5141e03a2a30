"""The tutorial notebook runs from its first to its last cell, and its estimates are right."""

from __future__ import annotations

import json
import re

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT

NOTEBOOK = ROOT / "survey" / "handbook" / "tutorial" / "analysis.ipynb"
CHECK = """
assert abs(slept.estimate[0] - badly.mean()) < 0.1
assert abs(data.mean("hours").estimate - hours.mean()) < 0.5
assert abs(table.estimate[0, 0] - (badly & tired).mean()) < 0.1
"""


def outputs(cell) -> list[dict[str, object]]:
    return [output.get("data", {}) for output in cell.get("outputs", [])]


@pytest.mark.web
@pytest.mark.filterwarnings("default")
def test_the_tutorial_runs_and_its_estimates_are_near_the_truth():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # The last cell removes the files; the check needs what the other cells have computed.
    notebook.cells.insert(-1, nbformat.v4.new_code_cell(CHECK))
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [str(data.get("text/html")) for cell in notebook.cells for data in outputs(cell)]
    assert sum("vegaEmbed" in text for text in shown) == 2
    captions = re.findall("<caption>(.*?)</caption>", " ".join(shown))
    assert "Proportions: 95% intervals, method feldman-cousins, n = 2,000." in captions


def test_the_tutorial_is_stored_without_outputs():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert codes
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in codes)
    assert NOTEBOOK.stat().st_size < 20_000
