"""Run all tests of the store on both databases, except in files that name one."""

from __future__ import annotations

import pytest

from survey.settings import Settings
from tests.store.databases import KINDS, DirectAccess


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest) -> Settings:
    value: Settings = request.getfixturevalue(f"{request.param}_settings")
    return value


@pytest.fixture
def direct_access(settings: Settings) -> DirectAccess:
    return DirectAccess(settings.database)
