"""Reports for tests of the store, and a deterministic release that keeps their order."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from survey.store import N_ASKED, BlockColumn, PendingReports, ReleaseContent, StoredReport


def report(number: int, codes: bytes = b"\x00\x01", **fields: object) -> StoredReport:
    return StoredReport(number.to_bytes(16, "big"), **{"stratum": "", "codes": codes, **fields})


def random_reports(n: int) -> list[StoredReport]:
    return [StoredReport(os.urandom(16), "", bytes([i % 3, i // 3 % 3])) for i in range(n)]


def add(store, survey, reports: Sequence[StoredReport]) -> None:
    """Store reports; raise the first error."""
    for error in store.add_reports([(survey.key, report) for report in reports]):
        if error is not None:
            raise error


def release_in_order(groups: Sequence[PendingReports]) -> ReleaseContent:
    """Release reports in the order of the store, one code per byte; extend the newest block."""
    columns: list[BlockColumn] = []
    counts: Counter[tuple[str, str, int, int]] = Counter()
    for group in groups:
        for question, codes in enumerate(zip(*group.codes, strict=True)):
            counts[group.stratum, group.bucket, question, N_ASKED] += len(codes)
            for code in codes:
                counts[group.stratum, group.bucket, question, code] += 1
            block = group.last.columns[question] if group.last else b""
            number = group.last.number if group.last else 0
            data = block + bytes(codes)
            columns.append(
                BlockColumn(group.stratum, group.bucket, question, number, len(data), data)
            )
    return ReleaseContent(columns, counts)
