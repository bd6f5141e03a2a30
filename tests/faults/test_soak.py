"""A server under a steady load does not leak memory or open files."""

from __future__ import annotations

import pytest

from tests.benchmarks.soak import MAX_GROWTH_MB, MAX_NEW_FILES, PER_SECOND, soak

HOUR = 3600


@pytest.mark.long
@pytest.mark.parametrize("seconds", [20, HOUR])
def test_memory_and_open_files_stay_flat_and_every_report_is_stored(seconds, tmp_path):
    result = soak(seconds, tmp_path)
    print(result.responses, result.growth_mb, result.new_files)
    assert result.errors == 0
    # A busy machine sends more slowly, but at least half of the reports.
    assert result.acknowledged > PER_SECOND * seconds / 2
    assert result.stored == result.acknowledged
    assert result.growth_mb <= MAX_GROWTH_MB
    assert result.new_files <= MAX_NEW_FILES
