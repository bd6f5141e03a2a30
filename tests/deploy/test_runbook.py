"""What the runbook says is stored is what is stored."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.store.databases import Outside

ROW = re.compile(r"^\|[^|]*\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|$", re.M)


def test_the_runbook_lists_every_table_and_column_of_the_database(store, settings):
    text = (ROOT / "deploy/README.md").read_text(encoding="utf-8")
    told = {table: re.findall(r"`(\w+)`", columns) for table, columns in ROW.findall(text)}
    outside = Outside(settings.database)
    tables = outside.run("SELECT name FROM sqlite_master WHERE type = 'table'")
    there = {
        name: [row[1] for row in outside.run(f"PRAGMA table_info('{name}')")] for (name,) in tables
    }
    assert told == there
