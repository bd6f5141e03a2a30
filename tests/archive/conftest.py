"""Tests of copies run on both databases unless their module selects one."""

from __future__ import annotations

from tests.store.conftest import direct_access, settings

__all__ = ["direct_access", "settings"]
