"""Every test of copies runs on both databases, unless its file names one."""

from __future__ import annotations

from tests.store.conftest import outside, settings

__all__ = ["outside", "settings"]
