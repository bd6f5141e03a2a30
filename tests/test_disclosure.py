"""The release policy: no release and no closing changes a group by fewer than 25 reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.disclosure import (
    MINIMUM_REPORTS,
    OTHER_GROUPS,
    closing_names,
    is_full,
    n_to_release,
    release_time,
)

sizes = st.dictionaries(st.text("abc", max_size=4), st.integers(1, 60), max_size=8)


@pytest.mark.security
def test_a_release_publishes_all_it_may_and_leaves_25_to_49_reports_pending():
    for n in range(10_000):
        released = n_to_release(n)
        assert released % MINIMUM_REPORTS == 0
        assert 0 <= released <= n
        assert n < 2 * MINIMUM_REPORTS or 25 <= n - released <= 49


@pytest.mark.security
@given(sizes)
def test_closing_publishes_no_group_of_fewer_than_25_reports(pending):
    names = closing_names(pending)
    published: dict[str, int] = {}
    for stratum, name in names.items():
        assert name in (stratum, OTHER_GROUPS)
        published[name] = published.get(name, 0) + pending[stratum]
    assert all(n >= MINIMUM_REPORTS for n in published.values())
    left_out = sum(n for stratum, n in pending.items() if stratum not in names)
    assert left_out < MINIMUM_REPORTS
    # Groups that are large enough keep their names.
    assert all(names[stratum] == stratum for stratum, n in pending.items() if n >= 25)


@pytest.mark.security
@given(st.integers(0, 3000), st.integers(0, 3000))
def test_the_limit_depends_on_released_reports_only_and_never_stops_a_survey_too_early(n, maximum):
    released = n_to_release(n)
    if is_full(released, maximum):
        assert n >= maximum > 0
    # It overshoots by what arrives until a release, and by less than one step more.
    assert not maximum or n < maximum + 75 or is_full(released, maximum)


def test_release_times_are_whole_hours_days_and_weeks_from_monday():
    monday = 1_795_392_000  # 2026-11-23 00:00 UTC
    for every in (600, 3600, 86_400, 7 * 86_400):
        assert release_time(monday, every) == monday
        assert release_time(monday + every - 0.5, every) == monday
        assert release_time(monday - 1, every) == monday - every
