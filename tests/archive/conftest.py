"""Every test of copies runs on both databases, unless its file names one."""

from __future__ import annotations

from tests.store.conftest import direct_access, settings

__all__ = ["direct_access", "settings"]
