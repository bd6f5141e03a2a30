"""Every test of the store runs on both databases, unless its file names one."""

from __future__ import annotations

import pytest

from survey.settings import Settings
from tests.store.databases import KINDS, DirectAccess


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest) -> Settings:
    found: Settings = request.getfixturevalue(f"{request.param}_settings")
    return found


@pytest.fixture
def outside(settings: Settings) -> DirectAccess:
    return DirectAccess(settings.database)
