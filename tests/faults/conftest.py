"""Faults are tested on SQLite unless a test asks for both kinds, or names the other."""

from __future__ import annotations

import pytest

from survey.settings import Settings
from tests.store.databases import KINDS


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    """Of the kind that `on_both` or `on_postgresql` names, else SQLite's."""
    kind = getattr(request, "param", KINDS[0])
    found: Settings = request.getfixturevalue(f"{kind}_settings")
    return found
