"""The outcome of one check of an audit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what, whether it holds, and what was seen."""

    group: str
    name: str
    ok: bool
    detail: str
