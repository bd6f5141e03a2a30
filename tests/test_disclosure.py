"""Small strata are merged: no total and no difference reveals the answers of one of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.disclosure import (
    MINIMUM_REPORTS,
    OTHER_GROUPS,
    merge_small_groups,
    merge_small_strata,
)
from survey.results.groups import (
    lengthen,
    split_by_link,
    split_by_month,
    split_by_period,
    split_by_week,
)
from survey.store import Tally

sizes = st.dictionaries(st.text("abc", max_size=4), st.integers(1, 60), max_size=8)


@pytest.mark.security
@given(sizes)
def test_no_stratum_below_25_has_its_own_name_unless_it_is_the_only_one(counts):
    names = merge_small_strata(counts)
    assert names.keys() == counts.keys()
    for stratum, name in names.items():
        assert name in (stratum, OTHER_GROUPS)
        assert name == OTHER_GROUPS or counts[stratum] >= MINIMUM_REPORTS or len(counts) == 1


@pytest.mark.security
@given(sizes)
def test_merged_strata_have_at_least_25_reports_unless_that_is_all(counts):
    names = merge_small_strata(counts)
    merged = [counts[stratum] for stratum, name in names.items() if name == OTHER_GROUPS]
    assert sum(merged) >= MINIMUM_REPORTS or len(merged) in (0, len(counts))
    # Otherwise, subtracting the other strata from a total would reveal this one.
    assert len(merged) != 1


@given(sizes)
def test_no_more_strata_are_merged_than_necessary(counts):
    names = merge_small_strata(counts)
    merged = sorted(counts[stratum] for stratum, name in names.items() if name == OTHER_GROUPS)
    if len(counts) > 1 and merged and merged[-1] >= MINIMUM_REPORTS:
        assert sum(merged[:-1]) < MINIMUM_REPORTS


days = st.sampled_from([f"2026-11-{day:02}" for day in range(26, 31)] + ["2026-12-01"])
cells = st.dictionaries(
    st.tuples(st.sampled_from(["", "east", "north", "west"]), days),
    st.integers(1, 60),
    min_size=1,
    max_size=20,
)


@pytest.mark.security
@given(cells)
def test_small_groups_no_totals_of_links_times_or_both_leave_few_reports_when_subtracted(sizes):
    groups = merge_small_groups(sizes)
    atoms: dict[tuple[str, str], int] = {}
    for cell, n in sizes.items():
        atoms[groups[cell]] = atoms.get(groups[cell], 0) + n
    assert min(atoms.values()) >= MINIMUM_REPORTS or len(atoms) == 1
    # Every published total consists of whole atoms; so do all sums and differences of totals.
    by_stratum: dict[str, int] = {}
    for (stratum, _), n in sizes.items():
        by_stratum[stratum] = by_stratum.get(stratum, 0) + n
    links = merge_small_strata(by_stratum)
    for name_of in (
        lambda cell: links[cell[0]],
        lambda cell: groups[cell][1],
        lambda cell: lengthen(groups[cell][1], "week"),
        lambda cell: lengthen(groups[cell][1], "month"),
    ):
        names_by_group: dict[tuple[str, str], set[str]] = {}
        for cell in sizes:
            names_by_group.setdefault(groups[cell], set()).add(name_of(cell))
        assert all(len(names) == 1 for names in names_by_group.values())


@given(cells)
def test_merged_buckets_are_consecutive(sizes):
    spans = {bucket: span for (_, bucket), (_, span) in merge_small_groups(sizes).items()}
    for span in set(spans.values()):
        first, _, last = span.partition("/")
        together = sorted(bucket for bucket in spans if spans[bucket] == span)
        assert (together[0], together[-1]) == (first, last or first)
        assert all(
            spans[bucket] == span for bucket in spans if together[0] <= bucket <= together[-1]
        )


def published(sizes: dict[tuple[str, str], int]) -> np.ndarray:
    """Return an equation for each published table: a row with 1 for each cell in the table."""
    cells = list(sizes)
    tallies = {
        cell: Tally(1, sizes[cell], [sizes[cell]], [list(map(int, np.eye(len(cells))[at]))])
        for at, cell in enumerate(cells)
    }
    rows = [tally.counts[0] for tally in tallies.values()]
    groups = merge_small_groups(sizes)
    tables = [np.sum(rows, axis=0)]
    for split in (split_by_link, split_by_period, split_by_week, split_by_month):
        tables += [tally.counts[0] for tally in split(tallies).values()]
    # A file of individual reports names the link and the period of each report.
    tables += [
        np.array([groups[cell] == group for cell in cells], dtype=int)
        for group in set(groups.values())
    ]
    return np.array(tables)


def is_determined(equations: np.ndarray, target: np.ndarray) -> bool:
    """Return whether the target is a linear combination of the equations."""
    rank = np.linalg.matrix_rank
    return bool(rank(np.vstack([equations, target])) == rank(equations))


@pytest.mark.security
@given(cells)
def test_small_groups_published_tables_solved_as_a_linear_system_determine_no_hidden_one(sizes):
    names, equations = list(sizes), published(sizes)
    everything = sum(sizes.values())
    candidates = [[cell] for cell in names]
    candidates += [
        [cell for cell in names if cell[0] == link] for link in {link for link, _ in names}
    ]
    candidates += [[cell for cell in names if cell[1] == day] for day in {day for _, day in names}]
    for group in candidates:
        n = sum(sizes[cell] for cell in group)
        if n < MINIMUM_REPORTS and n < everything:
            assert not is_determined(equations, np.array([cell in group for cell in names], int))


@pytest.mark.security
def test_small_groups_a_table_that_shows_one_separately_is_detected():
    sizes = {("north", ""): 400, ("south", ""): 20}
    assert not is_determined(published(sizes), np.array([0, 1]))
    assert is_determined(np.array([[1, 1], [1, 0]]), np.array([0, 1]))
