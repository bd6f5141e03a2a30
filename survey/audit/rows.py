"""The rows of large weight tables, weight by weight: as the client makes them and as promised."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from survey.audit.check import Check
from survey.audit.exact import shown
from survey.mechanism import WeightTable


def check_rows(table: WeightTable, seen: Sequence[str]) -> Check:
    """Compare the SHA-256 of each row's weights, written with commas."""
    name = f"rows of {shown(table)}"
    promised = [_digest(row) for row in table.weights.tolist()]
    wrong = [truth for truth, row in enumerate(promised) if seen[truth] != row]
    if wrong:
        return Check("channels", name, False, f"truth {wrong[0]}: the client makes another row")
    return Check("channels", name, True, f"all {table.truths * table.reports:,} weights are equal")


def _digest(row: Sequence[int]) -> str:
    return hashlib.sha256(",".join(map(str, row)).encode("ascii")).hexdigest()
