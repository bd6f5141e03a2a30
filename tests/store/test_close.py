"""Closing a survey on both databases, also after an interruption."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta

import pytest

from survey.collect.publication import close
from survey.collect.release import BLOCK_SIZE, ReleaseLoop, compose_release, release
from survey.errors import ClosedError, NotFoundError, StoreBusyError
from survey.mechanism import grr
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import N_ASKED, LastBlock, PendingReports
from tests.conftest import TODAY
from tests.store.reports import add, random_reports, report

OCTET = PublishedQuestion(
    id="q",
    type="single_choice",
    text="Q?",
    options=(),
    grid=None,
    max_ticks=0,
    alone=0,
    opt_out="",
    not_applicable="",
    ask_if=None,
    mechanism="grr",
    stated={},
    channel=grr(256, "3/4"),
    nullable=False,
)
"""A question whose codes fill a byte."""


def test_a_closed_survey_accepts_no_reports_and_releases_the_pending_ones(store, small):
    add(store, small, [report(number) for number in range(7)])
    assert close(store, "small", TODAY)
    with pytest.raises(ClosedError):
        add(store, small, [report(8)])
    add(store, small, [report(3)])  # a resent report is acknowledged
    assert store.tally(small.key).n == 7
    assert not close(store, "small", TODAY)
    with pytest.raises(NotFoundError):
        close(store, "nothing", TODAY)


def test_a_close_that_was_interrupted_is_finished_by_closing_again(store, small):
    add(store, small, [report(number) for number in range(7)])
    store.close_survey("small", TODAY)  # as in a power failure
    assert store.tally(small.key).n == 0
    assert close(store, "small", TODAY)
    assert store.tally(small.key).n == 7


def test_a_close_that_was_interrupted_is_finished_by_the_release_loop(store, small, settings):
    add(store, small, [report(1)])
    store.close_survey("small", TODAY)
    assert ReleaseLoop(store, settings).release_due(0.0) == 1


def test_a_close_whose_rewriting_failed_is_finished_by_closing_again(store, small, monkeypatch):
    add(store, small, random_reports(3000))
    with monkeypatch.context() as patch:

        def fails():
            raise StoreBusyError("full")

        patch.setattr(store, "vacuum", fails)
        patch.setattr(store, "clean_up_after_release", lambda survey: None)
        with pytest.raises(StoreBusyError):
            close(store, "small", TODAY)
    assert store.has_free_pages()
    close(store, "small", TODAY)
    assert not store.has_free_pages()


def test_a_close_during_a_long_read_releases_all_reports_and_can_be_finished(
    store, small, settings
):
    add(store, small, random_reports(40))
    # PostgreSQL rewrites a table only while there are no readers.
    busy = pytest.raises(StoreBusyError, match="or close the survey again when")
    with store.snapshot() as snapshot:
        assert snapshot.rows("inbox", None, 1)
        with busy if settings.database.startswith("postgresql") else nullcontext():
            close(store, "small", TODAY)
        assert store.tally(small.key).n == 40
    close(store, "small", TODAY)
    assert store.n_pending(small.key) == 0
    assert not store.has_free_pages()


def test_ids_of_long_closed_surveys_are_deleted(store, small, settings):
    add(store, small, [report(1)])
    close(store, "small", TODAY)
    loop = ReleaseLoop(store, settings)
    loop.clean_up(TODAY + timedelta(days=7))
    assert store.has_report(small.key, report(1))
    loop.clean_up(TODAY + timedelta(days=8))
    assert not store.has_report(small.key, report(1))


def test_codes_of_a_report_stay_together_through_many_releases(store, small):
    added: list[bytes] = []
    for step in range(4):
        batch = random_reports(25 + 10 * step)
        add(store, small, batch)
        added += [item.codes for item in batch]
        assert release(store, small, 25) == len(batch)
    released_codes = [
        bytes(pair)
        for columns in store.block_columns(small.key, [0, 1])
        for pair in zip(*(column.data for column in columns), strict=True)
    ]
    # Cross-tabulations are exact only if the codes of each report stay together.
    assert sorted(released_codes) == sorted(added)
    assert released_codes != added


def test_blocks_grow_to_their_size_and_then_a_new_one_begins():
    full = [bytes([1]) * (BLOCK_SIZE - 10)]
    content = compose_release([OCTET], [PendingReports("", "", [b"\x02"] * 30, LastBlock(4, full))])
    assert [(c.block, c.n) for c in content.columns] == [(4, BLOCK_SIZE), (5, 20)]
    assert content.counts == {("", "", 0, N_ASKED): 30, ("", "", 0, 2): 30}
    exact = [bytes([1]) * BLOCK_SIZE]
    (column,) = compose_release(
        [OCTET], [PendingReports("", "", [b"\x02"], LastBlock(4, exact))]
    ).columns
    assert column.block == 5
